"""The memory of a step, and what all panels share."""

from typing import Any

import streamlit as st
from plotly.graph_objects import Figure
from streamlit.delta_generator import DeltaGenerator

from app import session
from app.controls import half_choice
from app.moment import Moment
from app.wording import mib
from kvmodel.figures import usage_figure, usage_table
from kvmodel.figures.alt import describe_usage

TALL, LOW = 300, 200
"""Pixels of a table in the place of the map, and of a lower picture or table."""


def headed() -> tuple[DeltaGenerator, DeltaGenerator]:
    """The first line of a panel: a place for its title, and one at the right."""
    line = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
    return line.container(width="content"), line.container(width="content")


def draw(figure: Figure, *, alt: str | None = None, **options: Any) -> None:
    """Place a picture, in its own colours, with a button that saves it."""
    config = {
        "displaylogo": False,
        "modeBarButtons": [["toImage"]],
        "toImageButtonOptions": {"format": session.picture_format(), "filename": "kvmodel", "scale": 2},
    }
    st.plotly_chart(figure, theme=None, config=config, alt=alt, **options)


def memory(moment: Moment) -> None:
    """How full the cache is, over all steps."""
    part = session.half(moment.parts)
    counters = part.counters
    title, beside = headed()
    title.markdown(f"**K and V take {mib(sum(each.size_k_bytes + each.size_v_bytes for each in moment.parts))}**")
    if len(moment.parts) > 1:
        with beside:
            half_choice(part.name)
    with st.container(horizontal=True, gap="medium"):
        st.metric(f"used of {part.n_cells:,}", f"{counters['used']:,}", width="content")
        st.metric("n_kv", f"{part.n_kv:,}", width="content")
        st.metric("fragmentation", f"{counters['fragmentation']:.0%}", width="content")
    if session.visit().view.tables:
        st.dataframe(usage_table(moment.timeline, part.name), hide_index=True, height=LOW, lazy=True)
    else:
        figure = usage_figure(moment.timeline, part.name, step=moment.step, theme=session.theme())
        draw(figure, alt=describe_usage(moment.timeline, part.name, moment.step))
