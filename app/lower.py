"""The panel below the map: the mask of a ubatch, the moves of a defrag, or the shift that K is rotated by."""

from functools import partial
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import session
from app.controls import HALVES, ubatch_choice
from app.moment import Moment
from app.panels import LOW, draw, headed
from app.telling import searches
from kvmodel.batch import UBatch
from kvmodel.errors import ParamError
from kvmodel.events import DefragApplied, Event, ShiftApplied
from kvmodel.figures import defrag_figure, defrag_table, mask_figure, mask_table, shift_figure, shift_table
from kvmodel.figures.alt import describe_defrag, describe_mask, describe_shift
from kvmodel.figures.clicks import mask_clicked
from kvmodel.snapshot import PartSnapshot

SHOWN = {"mask": "Mask", "defrag": "Defrag", "shift": "K-shift"}
"""What the panel can show."""

MASK = "mask_chart"

E = TypeVar("E", bound=Event)


def lower(moment: Moment) -> None:
    """What this step has to show: the mask unless another was chosen; inside a step what the beat speaks of."""
    part = session.half(moment.parts)
    moved, turned = last_event(moment, part, DefragApplied), last_event(moment, part, ShiftApplied)
    there = available(moment, part, moved=bool(moved), turned=bool(turned))
    if not there:
        if not searches(moment):
            nothing(moment)
        return
    chosen = next((name for name in (spoken_of(moment), session.visit().view.lower) if name in there), there[0])
    title, beside = headed()
    if len(there) > 1:
        with beside:
            choice(chosen, there)
    if chosen == "mask":
        mask(moment, title, beside)
    elif chosen == "defrag" and moved:
        defrag(moment, title, *moved)
    else:
        shift(part, title, turned[1] if turned else None)


def available(moment: Moment, part: PartSnapshot, *, moved: bool, turned: bool) -> list[str]:
    """What there is to show at this place."""
    if part.is_recurrent:
        return []
    flags = {"mask": bool(moment.ubatches), "defrag": moved, "shift": turned or bool(part.counters["has_shift"])}
    return [name for name, there in flags.items() if there]


def last_event(moment: Moment, part: PartSnapshot, kind: type[E]) -> tuple[int, E] | None:
    """The last event of that kind in the step up to this place, and its frame."""
    frames = moment.timeline.frames_of(moment.step)
    until = frames[-1] if moment.beat is None else moment.beat.frame
    found = [
        (i, event)
        for i in range(frames[0], until + 1)
        for event in moment.timeline.frames[i].events
        if isinstance(event, kind) and event.cache == part.name
    ]
    return found[-1] if found else None


def spoken_of(moment: Moment) -> str:
    """What the beat that is looked at speaks of, empty for none."""
    event = moment.beat.event if moment.beat else None
    return "defrag" if isinstance(event, DefragApplied) else "shift" if isinstance(event, ShiftApplied) else ""


def choice(chosen: str, there: list[str]) -> None:
    """Which of several pictures the panel shows."""
    st.menu_button(
        f"Show {SHOWN[chosen].lower() if chosen != 'shift' else SHOWN[chosen]}",
        there,
        format_func=SHOWN.__getitem__,
        key=session.LOWER_PICKED,
        on_click=session.look_as,
        args=("lower", session.LOWER_PICKED),
    )


def nothing(moment: Moment) -> None:
    """Why there is no picture here."""
    if moment.parts[0].is_recurrent:
        st.markdown("**No mask with states**")
        st.caption("A recurrent model looks at no cells: each sequence's state has taken in all of its tokens.")
        return
    st.markdown("**No mask in this step**" if not moment.beat else "**No mask yet**")
    st.caption("Only a step that stores tokens has one: it tells which cells each of them may look at.")


def mask_of(moment: Moment) -> tuple[int, UBatch] | None:
    """The frame and the ubatch whose mask is shown, None if there is none."""
    if not moment.ubatches or moment.parts[0].is_recurrent:
        return None
    chosen, last = session.visit().view.ubatch, len(moment.ubatches) - 1
    return moment.ubatches[last if chosen is None else min(chosen, last)]


def mask(moment: Moment, title: DeltaGenerator, beside: DeltaGenerator) -> None:
    """Which cells each new token may look at, and why not."""
    with beside:
        frame, ubatch = moment.ubatches[ubatch_choice(len(moment.ubatches))]
    part = session.half(session.parts_at(frame))
    where = f" in the {HALVES[part.name].lower()}" if part.name in HALVES else ""
    title.markdown(f"**{mask_title(len(ubatch))}{where}**")
    try:
        mask_content(moment, part, ubatch)
    except ParamError as problem:
        st.caption(f"This mask is too large to show: {problem}")


def mask_content(moment: Moment, part: PartSnapshot, ubatch: UBatch) -> None:
    """The mask of one ubatch as a picture or a table.

    Raises:
        ParamError: the table of a mask that takes too much memory.
    """
    tokens, causal = moment.timeline.tokens, moment.timeline.scenario.context.causal_attn
    if session.visit().view.tables:
        table = mask_table(part, ubatch, causal=causal, tokens=tokens)
        st.dataframe(table, hide_index=True, height=LOW, lazy=True)
        return
    view = session.visit().view
    asked = None if view.query is None or view.cell is None else (view.query, view.cell)
    figure = mask_figure(part, ubatch, causal=causal, tokens=tokens, selected=asked, theme=session.theme())
    told = describe_mask(part, ubatch, causal=causal)
    draw(figure, alt=told, key=MASK, on_select=partial(ask, part, ubatch), selection_mode="points")


def ask(part: PartSnapshot, ubatch: UBatch) -> None:
    """Take the square of the mask that was clicked."""
    if found := mask_clicked(session.selected(MASK), part, ubatch):
        row, cell = found
        session.visit().look(query=row, cell=cell, panel="why")


def mask_title(n_tokens: int) -> str:
    """Whose mask it is."""
    return f"What each of the {n_tokens:,} new tokens may look at" if n_tokens > 1 else "What the new token may look at"


def defrag(moment: Moment, title: DeltaGenerator, frame: int, event: DefragApplied) -> None:
    """The blocks that a defrag moves, those moved so far at a beat inside it."""
    before = next(part for part in session.parts_at(frame - 1) if part.name == event.cache)
    moved = moment.beat.marks.n_moved if moment.beat and moment.beat.event is event else None
    title.markdown("**The blocks that the defrag moves**")
    if session.visit().view.tables:
        st.dataframe(defrag_table(event.plan), hide_index=True, height=LOW)
    else:
        figure = defrag_figure(before, event.plan, n_moved=moved, theme=session.theme())
        draw(figure, alt=describe_defrag(event.plan, n_moved=moved))


def shift(part: PartSnapshot, title: DeltaGenerator, applied: ShiftApplied | None) -> None:
    """By how many positions the key of each cell is rotated: what the step applied, or what waits."""
    vector = applied.k_shift if applied else None
    title.markdown(f"**{'The rotation applied to' if applied else 'The shift that waits for'} the key of each cell**")
    if session.visit().view.tables:
        st.dataframe(shift_table(part, vector), hide_index=True, height=LOW)
    else:
        draw(shift_figure(part, vector, theme=session.theme()), alt=describe_shift(part, vector))
