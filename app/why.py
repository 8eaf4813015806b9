"""Ask why: the story of one cell, and whether a new token may look at it."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import session
from app.lower import mask_of
from app.moment import Moment
from app.wording import plain
from kvmodel.errors import ParamError
from kvmodel.snapshot import PartSnapshot
from kvmodel.why import cell_story, mask_story

MOST_HISTORY = 12
"""Changes of a cell that are listed, the newest ones."""


def why(moment: Moment) -> None:
    """Which cell, and all there is to say about it."""
    part = session.half(moment.parts)
    asked, asking = st.columns(2, gap="small")
    cell = number(asked, "Cell", session.CELL, session.visit().view.cell, part.n_cells, "click one, or type")
    if cell is None:
        st.caption("Where its content came from, who owns it, what happened to it, and which token sees it.")
        return
    seen(moment, part, cell, asking)
    about(moment, part, cell)


def number(
    place: DeltaGenerator, label: str, name: str, value: int | None, n: int, empty: str | None = None
) -> int | None:
    """A number from 0 to below `n` by its name in the view; of another one it says so, and the view stays as it was.

    The input itself has no bounds, since a browser drops a number beyond them without a word.
    """
    key = session.key_for(name, value)
    taken = (name, key, range(n))
    typed = place.number_input(
        label, value=value, step=1, key=key, placeholder=empty, on_change=session.look_as_given, args=taken
    )
    if typed is not None and not 0 <= typed < n:
        st.error(plain(str(ParamError(label.lower(), typed, f"0 to {n - 1}"))))
    return value if value is not None and value < n else None


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
    row = number(asking, "Asked by new token", session.QUERY, row, len(ubatch)) or 0
    causal = moment.timeline.scenario.context.causal_attn
    st.markdown(plain(mask_story(stored, ubatch, row, cell, causal=causal, tokens=moment.timeline.tokens)))
