"""What a visitor presses to step and to choose how things are shown."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from app import session
from app.keyboard import stepping_keys
from app.wording import plain
from kvmodel.library import shipped
from kvmodel.words import count

TITLE_WIDTH = 420
WAYS = {"First": "Home", "Previous": "Left arrow", "Next": "Right arrow", "Last": "End"}
"""The keys of the buttons that step."""

COLOURS = {"sequence": "sequence", "position": "position", "shift": "pending shift", "changed": "change in this step"}
HALVES = {"base": "Full half (base)", "swa": "Window half (swa)"}
"""What the halves of a pair are called."""


def picker() -> None:
    """Choice among the shipped scenarios; a menu, so that the arrow keys step at once after it."""
    st.menu_button(
        plain(session.visit().scenario.title),
        list(shipped()),
        format_func=lambda name: plain(shipped()[name].title),
        key=session.PICKED,
        on_click=session.choose,
        width=TITLE_WIDTH,
    )


def bar(*, grain: bool = True) -> None:
    """First, previous, next, last, play, a slider to any step, and the size of a step unless `grain` is False."""
    place = session.visit()
    last, start, end = place.last_step, place.at_start, place.at_end
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        way("First", "first_page", partial(place.go, 0), off=start)
        way("Previous", "arrow_left_alt", partial(place.move, -1), off=start)
        way("Next", "arrow_right_alt", partial(place.move, 1), off=end, icon_position="right", type="primary")
        way("Last", "last_page", partial(place.go, last), off=end, icon_position="right")
        playing = "Pause" if place.playing else "Play"
        st.button(playing, shortcut="P", disabled=not last, on_click=session.swap_playing)
        speed()
        slider(place.view.step, last)
        if grain:
            label = "Step by operation" if place.inside else "Step inside"
            st.button(label, shortcut="I", on_click=place.swap_grain)
        showing()
        stepping_keys()


def way(label: str, icon: str, to: Callable[[], None], *, off: bool, **options: Any) -> None:
    """A button that leads somewhere; its key is told on hover, since the keys are not the buttons' own."""
    st.button(label, icon=f":material/{icon}:", help=WAYS[label], disabled=off, on_click=to, **options)


def slider(step: int, last: int) -> None:
    """Any step at once."""
    key = session.key_for(session.STEP, step)
    st.slider(
        "Step",
        0,
        max(last, 1),
        step,
        key=key,
        disabled=not last,
        format=f"%d of {last}",
        label_visibility="collapsed",
        on_change=session.go_to_slider,
        args=(key,),
    )


def speed() -> None:
    """How fast steps follow while playing."""
    st.menu_button(
        session.SPEEDS[session.speed()],
        list(session.SPEEDS),
        format_func=session.SPEEDS.__getitem__,
        key=session.SPEED_PICKED,
        on_click=session.choose_speed,
    )


def colouring() -> None:
    """What the colours of the cells stand for."""
    st.menu_button(
        f"Colour by {COLOURS[session.visit().view.colour]}",
        list(COLOURS),
        format_func=COLOURS.__getitem__,
        key=session.COLOUR_PICKED,
        on_click=session.look_as,
        args=("colour", session.COLOUR_PICKED),
    )


def half_choice(name: str) -> None:
    """Which half of a pair mask, sequences and memory speak of."""
    st.menu_button(
        HALVES[name],
        list(HALVES),
        format_func=HALVES.__getitem__,
        key=session.HALF_PICKED,
        on_click=session.look_as,
        args=("half", session.HALF_PICKED),
    )


def showing() -> None:
    """Pictures, or the tables behind them."""
    label = "Show pictures" if session.visit().view.tables else "Show tables"
    st.button(label, shortcut="T", on_click=session.visit().swap_tables)


def ubatch_choice(n_ubatches: int) -> int:
    """Which ubatch of a step the mask is shown for, counted from 0; the last one unless chosen."""
    if n_ubatches == 1:
        return 0
    chosen = session.visit().view.ubatch
    chosen = n_ubatches - 1 if chosen is None else min(chosen, n_ubatches - 1)
    key = session.key_for(session.UBATCH, chosen + 1)
    with st.container(horizontal=True, vertical_alignment="center", width="content", gap="xsmall"):
        st.number_input(
            "Ubatch",
            1,
            n_ubatches,
            chosen + 1,
            key=key,
            label_visibility="collapsed",
            width=110,
            on_change=session.choose_ubatch,
            args=(key,),
        )
        st.caption(f"of {count(n_ubatches, 'ubatch')}", width="content")
    return chosen


def panel_choice(panels: dict[str, str]) -> str:
    """Which panel stands beside the map."""
    key = session.key_for(session.PANEL, session.visit().view.panel)
    st.segmented_control(
        "Beside the map",
        list(panels),
        default=session.visit().view.panel,
        format_func=panels.__getitem__,
        key=key,
        label_visibility="collapsed",
        required=True,
        on_change=session.look_as_given,
        args=(session.PANEL, key),
    )
    return session.visit().view.panel
