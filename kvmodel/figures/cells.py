"""The map of the cells of a cache."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from kvmodel.errors import ParamError
from kvmodel.figures import marks
from kvmodel.figures.bar import bar, make_room
from kvmodel.figures.base import axis, discrete_scale, figure, legend_height
from kvmodel.figures.clicks import NEAREST, undimmed
from kvmodel.figures.codes import WIDTHS, Coded, Colour, by_change, by_position, by_sequence, by_shift, textured
from kvmodel.figures.grid import PLOT_WIDTH, Grid, Index, ticks
from kvmodel.figures.hover import MAX_TEXT_CELLS, hover_layer
from kvmodel.figures.labels import Room, cell_text, room_in
from kvmodel.figures.legend import cell_legend
from kvmodel.figures.look import Look, Looks
from kvmodel.figures.palette import Theme, ThemeName
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.pointing import pointed
from kvmodel.figures.texts import token_texts
from kvmodel.figures.window import Window, cut
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Token

MARGIN = {"l": 50, "r": 82, "t": 22, "b": 16}
LONG_NUMBERS, LONGER = 1_000_000, 14
"""Cells from which on their numbers need that many more pixels."""

MIN_WIDTH = 120
"""Pixels that the squares get at least, however narrow the place."""

TICK_WIDTH = 26
"""Pixels of a column's number."""

FEW_TICKS = 4
"""Numbers over the columns of a map of small cells, half of those beside its rows: each takes long to draw."""

EDGE = 3
"""Pixels around the squares in which marks at the border have room."""


def cells_figure(
    part: PartSnapshot,
    *,
    colour: Colour = "sequence",
    changed: ArrayLike | None = None,
    tokens: Sequence[Token] = (),
    columns: int | None = None,
    selected: int | None = None,
    width: int | None = None,
    theme: ThemeName = "light",
    **more: Unpack[Looks],
) -> go.Figure:
    """The cells in rows, in the order of the cache.

    Args:
        part: the cells at one moment.
        colour: what the colour says.
        changed: indices of cells to outline as changed.
        tokens: the timeline's tokens, whose texts the cells show.
        columns: cells in a row; chosen from the number of cells if left out.
        selected: a cell to outline as selected.
        width: pixels of the place for the whole figure; left out, a wide panel of the page.
        theme: light or dark.
        **more: clickable, window, marks and differs (`Looks`).

    Returns:
        A figure whose first trace, `colours`, holds the colour codes (uint8, a block of pixels a cell), and whose
        second, `cells`, answers the mouse with one square a cell.

    Raises:
        ParamError: no such colouring, or a window beyond the cache.
    """
    look, page = Look(**more), page_of(theme)
    grid = map_grid(part, columns=columns, width=width, window=look.window)
    shown, changes = cut(part, look.window), _index(changed)
    texts = token_texts(shown.token, tokens if grid.n <= MAX_TEXT_CELLS else ())
    room = room_in(grid, shown, colour, tokens=bool((texts != "").any()))
    coded = _coded(pooled(shown, grid), colour, page, grid.squares_of(changes), grid, room)
    traces = [
        _colours(coded, grid, page),
        hover_layer(shown, grid, texts, clickable=look.clickable),
        *cell_text(shown, coded, grid, texts, colour, room),
    ]
    undimmed(traces)
    pointing = pointed(grid, look.marks, _index(look.differs), page)
    flags = {
        "changed": len(grid.squares_of(changes)) > 0,
        "selected": selected is not None and grid.holds(selected),
    }
    entries = [*cell_legend(shown, coded, colour, page, **flags), *pointing.entries]
    drawn = figure(
        page,
        traces,
        height=grid.height + 2 * EDGE,
        margin=margins(part),
        width=grid.width,
        entries=entries,
        shapes=[*_lines(part, grid, changes, selected, page), *pointing.shapes],
        annotations=marks.side_words(grid, part.head, part.n_kv, page),
        **NEAREST,
        **_axes(grid, page),
    )
    if coded.scale:
        make_room(drawn, below=0 if width is None else legend_height(entries, grid.width, margins(part)))
    return drawn


def map_grid(
    part: PartSnapshot, *, columns: int | None = None, width: int | None = None, window: Window | None = None
) -> Grid:
    """The arrangement of the map that `cells_figure` draws of the same arguments."""
    first, n = window or (0, part.n_cells)
    return Grid.of(n, columns, plot_width(width), first)


def _index(cells: ArrayLike | None) -> Index:
    return np.empty(0, np.intp) if cells is None else np.asarray(cells, np.intp)


def _lines(part: PartSnapshot, grid: Grid, changed: Index, selected: int | None, page: Theme) -> list[dict[str, Any]]:
    """Everything around the squares that is not a mark of a beat."""
    return [
        *marks.grid_lines(grid, page),
        *marks.n_kv_mark(grid, part.n_kv, page),
        *marks.outlines(grid, changed, page.ink),
        *marks.selected_mark(grid, selected, page),
        *marks.head_mark(grid, part.head, page),
    ]


def margins(part: PartSnapshot) -> dict[str, int]:
    """Pixels around the squares; the right one holds the number of a cell with its word."""
    return MARGIN if part.n_cells < LONG_NUMBERS else MARGIN | {"r": MARGIN["r"] + LONGER}


def plot_width(width: int | None) -> int:
    """Pixels of the squares in a figure of that width."""
    return PLOT_WIDTH if width is None else max(MIN_WIDTH, width - MARGIN["l"] - MARGIN["r"] - 2 * EDGE)


def pooled(part: PartSnapshot, grid: Grid) -> PartSnapshot:
    """The squares as if they were cells: largest position and shift, the owners of all. The part itself if exact."""
    if grid.pool == 1:
        return part
    begins = np.arange(0, grid.n, grid.pool)
    unite = {"seqs": np.bitwise_or}
    arrays = {name: unite.get(name, np.maximum).reduceat(array, begins) for name, array in part.arrays.items()}
    return replace(part, arrays=arrays)


def _coded(part: PartSnapshot, colour: Colour, page: Theme, changed: Index, grid: Grid, room: Room) -> Coded:
    match colour:
        case "sequence":
            width = 1 if grid.n > MAX_TEXT_CELLS else min(WIDTHS[-1], int(grid.square[0]))
            coded = by_sequence(part.pos, part.seqs, page, width, foot=room.foot)
            return textured(coded, part.seqs, grid.columns) if width == 1 else coded
        case "position":
            return by_position(part, page)
        case "shift":
            return by_shift(part, page)
        case "changed":
            return by_change(part, page, changed)
        case _:
            raise ParamError("colour", colour, "sequence, position, shift or changed")


def _colours(coded: Coded, grid: Grid, page: Theme) -> go.Heatmap:
    """The picture: every cell as its block of pixels."""
    beyond = grid.rows * grid.columns > grid.squares
    colours = [*coded.colours, *([page.paper] if beyond else [])]
    blocks = grid.lay_out(coded.codes, len(colours) - 1)
    rows, columns, high, wide = blocks.shape
    settings = discrete_scale(colours)
    if coded.scale:
        settings |= {"showscale": True, "colorbar": bar(coded.scale, page)}
    return go.Heatmap(
        z=blocks.swapaxes(1, 2).reshape(rows * high, columns * wide),
        x0=-0.5 + 0.5 / wide,
        dx=1 / wide,
        y0=-0.5 + 0.5 / high,
        dy=1 / high,
        name="colours",
        hoverinfo="skip",
        **settings,
    )


def _axes(grid: Grid, page: Theme) -> dict[str, Any]:
    """Cell numbers: of the first cell of a row at the left, how far into the row above."""
    wide_cells = grid.columns <= 32
    most = min(16 if wide_cells else FEW_TICKS, grid.width // TICK_WIDTH)
    columns, rows = ticks(grid.columns, most), ticks(grid.rows, 16 if wide_cells else 2 * FEW_TICKS)
    wide, high = (EDGE / pixels for pixels in grid.square)
    each = grid.columns * grid.pool
    numbers = [f"{grid.first + row * each:,}" for row in rows]
    return {
        "xaxis": axis(
            page,
            side="top",
            tickangle=0,
            range=[-0.5 - wide, grid.columns - 0.5 + wide],
            tickvals=columns,
            ticktext=[f"+{column * grid.pool:,}" for column in columns],
        ),
        "yaxis": axis(
            page,
            range=[grid.rows - 0.5 + high, -0.5 - high],
            tickvals=rows,
            ticktext=[numbers[0] if grid.first else "cell 0", *numbers[1:]],
        ),
    }
