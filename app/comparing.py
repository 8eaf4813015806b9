"""The parts of the Compare page: which second configuration, one side, and the differences in words."""

import streamlit as st

from app import session
from app.configuring import configure
from app.controls import HALVES
from app.panels import TALL, draw
from app.plays import Progress
from app.sides import Side
from app.wording import configuration, plain
from kvmodel.figures import cells_figure, cells_table, comparison_table, states_figure, states_table
from kvmodel.figures.alt import describe_cells, describe_states
from kvmodel.snapshot import PartSnapshot
from kvmodel.words import count

SIDE = 540
"""Pixels of one side; on a narrow page one goes below the other."""


def second() -> None:
    """The two configurations, and a way to change the second."""
    compared = session.pair(Progress())
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f":gray-badge[{plain(configuration(session.visit().scenario))}] against", width="content")
        if st.button(
            configuration(session.visit().compared), icon=":material/tune:", help="Change the second configuration"
        ):
            configure("other")
        first = compared.comparison.first
        label = "No difference in any step" if first is None else f"First difference: step {first}"
        st.button(label, disabled=first is None, on_click=session.visit().go, args=(first or 0,))


def one_side(side: Side) -> None:
    """The cells of one side, those outlined that differ from the other."""
    title = f"**{plain(side.label)}**"
    if side.result and side.result.failed:
        title += f" :red-badge[{plain(side.result.error or side.result.message or f'returned {side.result.ret}')[:90]}]"
    st.markdown(title)
    if side.ended:
        st.caption("This side ended before this step; its last cells are shown.")
    for part in side.parts:
        name = f"{HALVES[part.name]}: " if part.name in HALVES else ""
        differs = side.differs.get(part.name)
        told = "not compared, since the other side has none" if differs is None else f"{len(differs):,} different"
        st.caption(f"{name}{part.used:,} of {count(part.n_cells, 'cell')} used, {told}")
        one_map(side, part)


def one_map(side: Side, part: PartSnapshot) -> None:
    """The cells of one part as a picture or a table."""
    tokens, theme = side.timeline.tokens, session.theme()
    if session.visit().view.tables:
        table = states_table(part, tokens=tokens) if part.is_recurrent else cells_table(part, tokens=tokens)
        st.dataframe(table, hide_index=True, height=TALL, lazy=True)
    elif part.is_recurrent:
        draw(
            states_figure(part, tokens=tokens, theme=theme), alt=describe_states(part), key=f"{side.label}.{part.name}"
        )
    else:
        figure = cells_figure(
            part,
            colour=session.visit().view.colour,
            changed=side.changed[part.name],
            differs=side.differs.get(part.name),
            tokens=tokens,
            width=SIDE - 40,
            clickable=False,
            theme=theme,
        )
        draw(figure, alt=describe_cells(part), key=f"{side.label}.{part.name}")


def told() -> None:
    """The differences after this step in sentences, or all steps as a table."""
    comparison, step = session.pair().comparison, session.visit().view.step
    if session.visit().view.tables:
        st.markdown("**Differences in every step**")
        st.dataframe(comparison_table(comparison), hide_index=True, height=150)
        return
    st.markdown(f"**What differs after step {step}**")
    if step >= comparison.n_steps:
        st.markdown(f"One side ended with step {comparison.n_steps - 1}; nothing is compared after it.")
        return
    lines = comparison.told(step)
    st.markdown("\n".join(f"- {plain(line)}" for line in lines) or "Nothing: the same cells, owners and counters.")
