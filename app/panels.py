"""The map of the cells and the memory of a step, and what all panels share."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from plotly.graph_objects import Figure
from streamlit.delta_generator import DeltaGenerator

from app import session
from app.controls import HALVES, colouring, half_choice
from app.moment import Moment
from app.wording import call, mib
from kvmodel.figures import (
    cells_figure,
    cells_table,
    overview_figure,
    states_figure,
    states_table,
    usage_figure,
    usage_table,
)
from kvmodel.figures.alt import describe_cells, describe_overview, describe_states, describe_usage
from kvmodel.figures.cells import map_grid
from kvmodel.figures.clicks import cell_clicked
from kvmodel.figures.overview import overview_clicked
from kvmodel.figures.window import DETAIL, Window, window_around
from kvmodel.snapshot import PartSnapshot
from kvmodel.words import count

Cells = NDArray[np.intp]

Later = Callable[[], None]
"""Draws a picture that can come after the map."""

HALF_WIDTH = 366
"""Pixels of one of two maps side by side: positions of two digits fit into each of 16 cells in a row."""

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


def cells(moment: Moment) -> list[Later]:
    """The map of the cells, or its table; returns what is left to draw of it."""
    title, beside = headed()
    title.markdown(f"**{cells_title(moment)}**")
    if not session.visit().view.tables and not moment.parts[0].is_recurrent:
        with beside:
            colouring()
    if len(moment.parts) == 1:
        return one_map(moment, moment.parts[0])
    left: list[Later] = []
    with st.container(horizontal=True, gap="small"):
        for part in moment.parts:
            with st.container(width=HALF_WIDTH, gap="xsmall"):
                st.caption(f"{HALVES[part.name]}: {count(part.n_cells, 'cell')}")
                left += one_map(moment, part, HALF_WIDTH)
    return left


def cells_title(moment: Moment) -> str:
    """What the map shows at this step."""
    if not moment.step:
        return f"{count(sum(part.n_cells for part in moment.parts), 'cell')}, all empty"
    when = "Inside" if moment.beat else "Cells after"
    return f"{when} :green[{call(moment.timeline.scenario.ops[moment.step - 1])}]"


def one_map(moment: Moment, part: PartSnapshot, width: int | None = None) -> list[Later]:
    """The cells of one part: a map, states with their tails and sources, or a table; returns what is left to draw."""
    tokens = moment.timeline.tokens
    if session.visit().view.tables:
        table = states_table(part, tokens=tokens) if part.is_recurrent else cells_table(part, tokens=tokens)
        st.dataframe(table, hide_index=True, height=TALL, lazy=True)
    elif part.is_recurrent:
        figure = states_figure(part, before=before(moment), tokens=tokens, theme=session.theme())
        draw(figure, alt=describe_states(part))
    else:
        return clickable_map(moment, part, width)
    return []


def clickable_map(moment: Moment, part: PartSnapshot, width: int | None) -> list[Later]:
    """The cells as a picture; of a large cache a part of it in detail, with an overview above it left to draw."""
    window, changed = detail(moment, part), moment.changed[part.name]
    above = st.container() if window else None
    figure = cells_figure(
        part,
        colour=session.visit().view.colour,
        changed=changed,
        tokens=moment.timeline.tokens,
        selected=session.visit().view.cell if session.half(moment.parts) is part else None,
        window=window,
        marks=moment.beat.marks if moment.beat and moment.beat.part == part.name else None,
        width=width,
        theme=session.theme(),
    )
    key, grid = f"map.{part.name}", map_grid(part, width=width, window=window)
    clicked = partial(choose, part, lambda: cell_clicked(session.selected(key), grid))
    told = describe_cells(part, window=window, changed=changed)
    draw(figure, alt=told, key=key, on_select=clicked, selection_mode="points")
    return [partial(overview, above, part, window, changed, width)] if window and above else []


def overview(place: DeltaGenerator, part: PartSnapshot, window: Window, changed: Cells, width: int | None) -> None:
    """All cells of a large cache as a strip; a click in it leads there."""
    figure = overview_figure(part, window=window, changed=changed, width=width, theme=session.theme())
    key = f"overview.{part.name}"
    clicked = partial(choose, part, lambda: overview_clicked(session.selected(key), part.n_cells, width=width))
    with place:
        draw(figure, alt=describe_overview(part, window=window), key=key, on_select=clicked, selection_mode="points")


def detail(moment: Moment, part: PartSnapshot) -> Window | None:
    """The cells that are shown one by one: around the selected one, else where something happened; None for all."""
    if part.n_cells <= DETAIL:
        return None
    cell = session.visit().view.cell
    if cell is None or cell >= part.n_cells:
        happened = moment.beat.marks.cells if moment.beat else moment.changed[part.name]
        cell = int(happened[0]) if len(happened) else min(part.head, part.n_cells - 1)
    return window_around(part.n_cells, cell)


def choose(part: PartSnapshot, clicked: Callable[[], int | None]) -> None:
    """Ask about the cell that was clicked."""
    cell = clicked()
    if cell is not None:
        session.visit().look(cell=cell, half=part.name, query=None, panel="why")


def before(moment: Moment) -> PartSnapshot | None:
    """The states before the step, None at the start."""
    return session.parts_at(moment.timeline.frame_of(moment.step - 1))[0] if moment.step else None


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
