"""The panels of a step: cells, what happened, the mask, memory. Each reads a moment and places one picture or table."""

import streamlit as st
from plotly.graph_objects import Figure
from streamlit.delta_generator import DeltaGenerator

from app import session
from app.controls import colouring, half_choice, ubatch_choice
from app.session import Moment
from app.wording import call, mib
from kvmodel.advice import advice
from kvmodel.batch import UBatch
from kvmodel.errors import ParamError
from kvmodel.explain import explain
from kvmodel.figures.cells import cells_figure
from kvmodel.figures.mask import mask_figure
from kvmodel.figures.states import states_figure
from kvmodel.figures.tables import cells_table, mask_table, sequences_table, states_table, usage_table
from kvmodel.figures.usage import usage_figure
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import OpResult
from kvmodel.words import count

HALVES = {"base": "Full half (base)", "swa": "Window half (swa)"}
"""What the halves of a pair are called."""

HALF_WIDTH = 335
"""Pixels of one of two maps side by side."""

TALL, LOW = 300, 200
"""Pixels of a table in the place of the map, and of a lower picture or table."""

MAX_SENTENCES = 60
"""Sentences listed for one step; a batch of thousands of ubatches has more."""


def cells(moment: Moment) -> None:
    """The map of the cells, or its table."""
    title, beside = headed()
    title.markdown(f"**{cells_title(moment)}**")
    if not session.as_tables() and not holds_states(moment.parts[0]):
        with beside:
            colouring()
    if len(moment.parts) == 1:
        one_map(moment, moment.parts[0])
        return
    with st.container(horizontal=True, gap="small"):
        for part in moment.parts:
            with st.container(width=HALF_WIDTH, gap="xsmall"):
                st.caption(f"{HALVES[part.name]}: {count(part.n_cells, 'cell')}")
                one_map(moment, part, HALF_WIDTH)


def one_map(moment: Moment, part: PartSnapshot, width: int | None = None) -> None:
    """The cells of one part: a map, states with their tails and sources, or a table."""
    tokens, theme, changed = moment.timeline.tokens, session.theme(), moment.changed[part.name]
    states = holds_states(part)
    if session.as_tables():
        table = states_table(part, tokens=tokens) if states else cells_table(part, tokens=tokens)
        st.dataframe(table, hide_index=True, height=TALL, lazy=True)
    elif states:
        draw(states_figure(part, before=before(moment), tokens=tokens, theme=theme))
    else:
        colour = session.colour()
        draw(cells_figure(part, colour=colour, changed=changed, tokens=tokens, width=width, theme=theme))


def before(moment: Moment) -> PartSnapshot | None:
    """The states before the step, None at the start."""
    return session.parts_at(moment.timeline.frame_of(moment.step - 1))[0] if moment.step else None


def holds_states(part: PartSnapshot) -> bool:
    """Whether a cell holds the state of a sequence instead of one token."""
    return "tail" in part.arrays


def headed() -> tuple[DeltaGenerator, DeltaGenerator]:
    """The first line of a panel: a place for its title, and one at the right."""
    line = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
    return line.container(width="content"), line.container(width="content")


def draw(figure: Figure) -> None:
    """Place a picture, in its own colours."""
    st.plotly_chart(figure, theme=None, config={"displayModeBar": False})


def cells_title(moment: Moment) -> str:
    """What the map shows at this step."""
    if not moment.step:
        return f"{count(sum(part.n_cells for part in moment.parts), 'cell')}, all empty"
    return f"Cells after :green[{call(moment.timeline.scenario.ops[moment.step - 1])}]"


def happened(moment: Moment) -> None:
    """The events of the step in sentences; a failure first, with what to do about it."""
    st.markdown("**What happened**")
    if moment.result and moment.result.failed:
        failure(moment, moment.result)
    if not moment.step:
        first_look(moment)
        return
    if note := moment.timeline.scenario.ops[moment.step - 1].note:
        st.text(note)
    sentences = [explain(event) for event in moment.timeline.events_of(moment.step)[:MAX_SENTENCES]]
    st.markdown("\n".join(f"1. {sentence}" for sentence in sentences))


def failure(moment: Moment, result: OpResult) -> None:
    """What went wrong, and what would mend it."""
    events = moment.timeline.events_of(moment.step)
    wrong = result.error or result.message or explain(events[-1])
    st.error("\n".join([wrong, "", *(f"- {remedy}" for remedy in advice(moment.timeline, moment.step))]))


def first_look(moment: Moment) -> None:
    """What a visitor sees before the first operation."""
    scenario = moment.timeline.scenario
    st.markdown("Each square is a cell: room for the K and V of one token. Press **Next**, or the right arrow key.")
    for text in filter(None, (scenario.description, scenario.source)):
        st.text(text)


def sequences(moment: Moment) -> None:
    """Which sequences are in the cache."""
    table = sequences_table(session.half(moment.parts))
    if len(table):
        st.table(table, border="horizontal", hide_index=True)


def mask(moment: Moment) -> None:
    """Which cells each new token may look at, and why not."""
    if holds_states(moment.parts[0]):
        st.markdown("**No mask with states**")
        st.caption("A recurrent model looks at no cells: each sequence's state has taken in all of its tokens.")
        return
    if not moment.ubatches:
        st.markdown("**No mask in this step**")
        st.caption("Only a step that stores tokens has one: it tells which cells each of them may look at.")
        return
    title, beside = headed()
    with beside:
        frame, ubatch = moment.ubatches[ubatch_choice(moment.step, len(moment.ubatches))]
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
    if session.as_tables():
        table = mask_table(part, ubatch, causal=causal, tokens=tokens)
        st.dataframe(table, hide_index=True, height=LOW, lazy=True)
    else:
        draw(mask_figure(part, ubatch, causal=causal, tokens=tokens, theme=session.theme()))


def mask_title(n_tokens: int) -> str:
    """Whose mask it is."""
    return f"What each of the {n_tokens:,} new tokens may look at" if n_tokens > 1 else "What the new token may look at"


def memory(moment: Moment) -> None:
    """How full the cache is, over all steps."""
    part = session.half(moment.parts)
    counters = part.counters
    title, beside = headed()
    title.markdown(f"**K and V take {mib(sum(each.size_k_bytes + each.size_v_bytes for each in moment.parts))}**")
    if len(moment.parts) > 1:
        with beside:
            half_choice(part.name, HALVES)
    with st.container(horizontal=True, gap="medium"):
        st.metric(f"used of {part.n_cells:,}", f"{counters['used']:,}", width="content")
        st.metric("n_kv", f"{part.n_kv:,}", width="content")
        st.metric("fragmentation", f"{counters['fragmentation']:.0%}", width="content")
    if session.as_tables():
        st.dataframe(usage_table(moment.timeline, part.name), hide_index=True, height=LOW, lazy=True)
    else:
        draw(usage_figure(moment.timeline, part.name, step=moment.step, theme=session.theme()))
