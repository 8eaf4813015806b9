"""Ask why: the story of one cell, and whether a new token may look at it."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import session
from app.lower import mask_of
from app.moment import Moment
from app.wording import plain
from kvmodel.snapshot import PartSnapshot
from kvmodel.why import cell_story, mask_story

MOST_HISTORY = 12
"""Changes of a cell that are listed, the newest ones."""


def why(moment: Moment) -> None:
    """Which cell, and all there is to say about it."""
    part = session.half(moment.parts)
    cell = session.visit().view.cell
    cell = cell if cell is not None and cell < part.n_cells else None
    key = session.key_for(session.CELL, cell)
    asked, asking = st.columns(2, gap="small")
    asked.number_input(
        "Cell",
        0,
        part.n_cells - 1,
        cell,
        key=key,
        placeholder="click one, or type",
        on_change=session.look_as_given,
        args=(session.CELL, key),
    )
    if cell is None:
        st.caption("Where its content came from, who owns it, what happened to it, and which token sees it.")
        return
    seen(moment, part, cell, asking)
    about(moment, part, cell)


def about(moment: Moment, part: PartSnapshot, cell: int) -> None:
    """What the cell holds, since when, and what it went through."""
    story = cell_story(moment.timeline, moment.frame, part.name, cell)
    text = [f"- Its text: “{plain(story.text)}”"] if story.text else []
    st.markdown("\n".join([*(f"- {plain(line)}" for line in story.sentences), *text]))
    if not story.history:
        return
    st.markdown("**What happened to it**")
    for change in reversed(story.history[-MOST_HISTORY:]):
        st.button(
            plain(change.sentence),
            key=f"history.{change.frame}",
            type="tertiary",
            on_click=session.visit().go,
            args=(change.step,),
        )


def seen(moment: Moment, part: PartSnapshot, cell: int, asking: DeltaGenerator) -> None:
    """Whether one of the new tokens sees the cell; which one is typed at `asking`."""
    found = mask_of(moment)
    if found is None:
        return
    frame, ubatch = found
    stored = next(each for each in session.parts_at(frame) if each.name == part.name)
    row = min(session.visit().view.query or 0, len(ubatch) - 1)
    key = session.key_for(session.QUERY, row)
    asking.number_input(
        "Asked by new token",
        0,
        len(ubatch) - 1,
        row,
        key=key,
        on_change=session.look_as_given,
        args=(session.QUERY, key),
    )
    causal = moment.timeline.scenario.context.causal_attn
    st.markdown(plain(mask_story(stored, ubatch, row, cell, causal=causal, tokens=moment.timeline.tokens)))
