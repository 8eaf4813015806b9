"""What a visitor presses: the scenario picker, the stepper bar, and how things are shown."""

import streamlit as st

from app import session
from app.wording import facts, plain
from kvmodel.library import shipped
from kvmodel.limits import MAX_SCENARIO_BYTES
from kvmodel.words import count

TITLE_WIDTH = 460
COLOURS = {"sequence": "sequence", "position": "position", "shift": "pending shift", "changed": "change in this step"}


def header() -> None:
    """The scenario, its configuration, and a way to open another."""
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        with st.container(horizontal=True, vertical_alignment="center"):
            picker()
            badges = [f":gray-badge[{fact}]" for fact in facts(session.scenario())]
            if edits := session.edits():
                badges.append(f":green-badge[{count(edits, 'edit')}]")
            st.markdown(" ".join(badges), width="content")
        opener()


def picker() -> None:
    """Choice among the shipped scenarios; a menu, so that the arrow keys step at once after it."""
    st.menu_button(
        plain(session.scenario().title),
        list(shipped()),
        format_func=lambda name: plain(shipped()[name].title),
        key=session.PICKED,
        on_click=session.choose,
        width=TITLE_WIDTH,
    )


def opener() -> None:
    """A scenario of one's own, from a file or pasted."""
    popover = st.popover(
        "Open a scenario", icon=":material/folder_open:", key=session.OPENING, on_change=session.forget_refusal
    )
    with popover, st.form("open", border=False):
        st.file_uploader(
            "A scenario as a JSON file", "json", key=session.OPEN_FILE, max_upload_size=MAX_SCENARIO_BYTES >> 20
        )
        st.text_area("Or the JSON itself", key=session.OPEN_TEXT, max_chars=MAX_SCENARIO_BYTES, height=120)
        st.form_submit_button("Open this scenario", on_click=session.open_given)
        if refusal := session.open_refused():
            st.error(refusal)


def bar() -> None:
    """First, previous, next, last, and a slider to any step."""
    at, last = session.step(), session.last_step()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("First", shortcut="Home", disabled=not at, on_click=session.go, args=(0,))
        st.button("Previous", shortcut="Left", disabled=not at, on_click=session.move, args=(-1,))
        st.button("Next", shortcut="Right", type="primary", disabled=at == last, on_click=session.move, args=(1,))
        st.button("Last", shortcut="End", disabled=at == last, on_click=session.go, args=(last,))
        st.slider(
            "Step",
            0,
            max(last, 1),
            key=session.STEP,
            disabled=not last,
            format=f"%d of {last}",
            label_visibility="collapsed",
            persist_state="session",
        )
        showing()


def colouring() -> None:
    """What the colours of the cells stand for."""
    st.menu_button(
        f"Colour by {COLOURS[session.colour()]}",
        list(COLOURS),
        format_func=COLOURS.__getitem__,
        key=session.COLOUR_PICKED,
        on_click=session.choose_colour,
    )


def half_choice(name: str, halves: dict[str, str]) -> None:
    """Which half of a pair mask, sequences and memory speak of."""
    st.menu_button(
        halves[name],
        list(halves),
        format_func=halves.__getitem__,
        key=session.HALF_PICKED,
        on_click=session.choose_half,
    )


def showing() -> None:
    """Pictures, or the tables behind them."""
    label = "Show pictures" if session.as_tables() else "Show tables"
    st.button(label, shortcut="T", on_click=session.swap_tables)


def ubatch_choice(step: int, n_ubatches: int) -> int:
    """Which ubatch of a step the mask is shown for, counted from 0; the last one unless chosen."""
    if n_ubatches == 1:
        return 0
    with st.container(horizontal=True, vertical_alignment="center", width="content", gap="xsmall"):
        key = f"ubatch.{step}.{n_ubatches}"
        chosen = st.number_input("Ubatch", 1, n_ubatches, n_ubatches, key=key, label_visibility="collapsed", width=110)
        st.caption(f"of {count(n_ubatches, 'ubatch')}", width="content")
    return int(chosen) - 1
