"""The map of the cells: its pictures are built before the page is told anything, then put into their places."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from plotly.graph_objects import Figure
from streamlit.delta_generator import DeltaGenerator

from app import session
from app.controls import HALVES, colouring
from app.moment import Moment
from app.panels import TALL, draw, headed
from app.wording import call
from kvmodel.figures import cells_figure, cells_table, overview_figure, states_figure, states_table
from kvmodel.figures.alt import describe_cells, describe_overview, describe_states
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


def pictures(moment: Moment) -> list[Figure]:
    """The picture of every part in order, none where tables are shown.

    Whatever the page is told makes the browser work, which would slow down what is still to be built here.
    """
    if session.visit().view.tables:
        return []
    return [picture(moment, part) for part in moment.parts]


def picture(moment: Moment, part: PartSnapshot) -> Figure:
    """The cells of one part, or states with their tails and sources."""
    tokens, theme = moment.timeline.tokens, session.theme()
    if part.is_recurrent:
        return states_figure(part, before=before(moment), tokens=tokens, theme=theme)
    return cells_figure(
        part,
        colour=session.visit().view.colour,
        changed=moment.changed[part.name],
        tokens=tokens,
        selected=session.visit().view.cell if session.half(moment.parts) is part else None,
        window=detail(moment, part),
        marks=moment.beat.marks if moment.beat and moment.beat.part == part.name else None,
        width=width_of(moment),
        theme=theme,
    )


def width_of(moment: Moment) -> int | None:
    """Pixels that one picture gets, None for all there are."""
    return None if len(moment.parts) == 1 else HALF_WIDTH


def cells(moment: Moment, built: Sequence[Figure]) -> list[Later]:
    """The map of the cells, or its table; returns what is left to draw of it.

    Args:
        moment: the place in the timeline.
        built: its `pictures`.
    """
    title, beside = headed()
    title.markdown(f"**{cells_title(moment)}**")
    if built and not moment.parts[0].is_recurrent:
        with beside:
            colouring()
    if len(moment.parts) == 1:
        return one_map(moment, moment.parts[0], built[0] if built else None)
    left: list[Later] = []
    with st.container(horizontal=True, gap="small"):
        for part, figure in zip_longest(moment.parts, built):
            with st.container(width=HALF_WIDTH, gap="xsmall"):
                st.caption(f"{HALVES[part.name]}: {count(part.n_cells, 'cell')}")
                left += one_map(moment, part, figure)
    return left


def cells_title(moment: Moment) -> str:
    """What the map shows at this step."""
    if not moment.step:
        return f"{count(sum(part.n_cells for part in moment.parts), 'cell')}, all empty"
    when = "Inside" if moment.beat else "Cells after"
    return f"{when} :green[{call(moment.timeline.scenario.ops[moment.step - 1])}]"


def one_map(moment: Moment, part: PartSnapshot, figure: Figure | None) -> list[Later]:
    """The picture of one part, or its table; returns what is left to draw."""
    if figure is None:
        tokens = moment.timeline.tokens
        table = states_table(part, tokens=tokens) if part.is_recurrent else cells_table(part, tokens=tokens)
        st.dataframe(table, hide_index=True, height=TALL, lazy=True)
    elif part.is_recurrent:
        draw(figure, alt=describe_states(part))
    else:
        return clickable_map(moment, part, figure)
    return []


def clickable_map(moment: Moment, part: PartSnapshot, figure: Figure) -> list[Later]:
    """The cells as a picture; of a large cache a part of it in detail, with an overview above it left to draw."""
    window, changed, width = detail(moment, part), moment.changed[part.name], width_of(moment)
    above = st.container() if window else None
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
