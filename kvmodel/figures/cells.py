"""The map of the cells of a cache."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from kvmodel.cells import EMPTY as NO_POS
from kvmodel.errors import ParamError
from kvmodel.figures import marks
from kvmodel.figures.base import SMALL, discrete_scale, figure, outline_swatch, swatch
from kvmodel.figures.codes import (
    MAX_STRIPES,
    Coded,
    Colour,
    by_change,
    by_position,
    by_sequence,
    by_shift,
)
from kvmodel.figures.grid import Grid, Index
from kvmodel.figures.hover import hover_layer
from kvmodel.figures.labels import cell_text
from kvmodel.figures.palette import Theme, ThemeName, seq_colour, seq_symbol, seq_tone
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.words import owners_of
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Token

MARGIN = {"l": 46, "r": 82, "t": 20, "b": 38}
MAX_LEGEND = 16
"""Sequences named in the legend; the others are named on hover and in the table."""


def cells_figure(
    part: PartSnapshot,
    *,
    colour: Colour = "sequence",
    changed: ArrayLike | None = None,
    tokens: Sequence[Token] = (),
    columns: int | None = None,
    selected: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """The cells in rows, in the order of the cache.

    Args:
        part: the cells at one moment.
        colour: what the colour says.
        changed: indices of cells to outline as changed.
        tokens: the timeline's tokens, whose texts the cells show.
        columns: cells in a row; chosen from the number of cells if left out.
        selected: a cell to outline in the accent colour.
        theme: light or dark.

    Returns:
        A figure whose first trace, `colours`, holds the colour codes (uint8, a block of pixels a cell), and whose
        second, `cells`, answers the mouse with one square a cell.

    Raises:
        ParamError: no such colouring.
    """
    page, grid = page_of(theme), Grid.of(part.n_cells, columns)
    marked = np.empty(0, np.intp) if changed is None else np.asarray(changed, np.intp)
    coded = _coded(part, colour, page, marked, grid)
    traces = [
        _colours(coded, grid, page),
        hover_layer(part, grid, tokens),
        *cell_text(part, coded, grid, tokens, colour),
        *_legend(part, colour, page, len(marked)),
    ]
    head, n_kv = part.head, part.n_kv
    shapes = [
        *marks.grid_lines(grid, page),
        marks.n_kv_mark(grid, n_kv, page),
        *marks.outlines(grid, marked, page.ink),
        marks.head_mark(grid, head, page),
        *marks.outlines(grid, np.array([] if selected is None else [selected], np.intp), page.accent, 3.5),
    ]
    words = marks.side_words(grid, head, n_kv, page)
    return figure(
        page, traces, height=grid.height, margin=MARGIN, shapes=shapes, annotations=words, **_axes(grid, page)
    )


def _coded(part: PartSnapshot, colour: Colour, page: Theme, changed: Index, grid: Grid) -> Coded:
    match colour:
        case "sequence":
            width = int(grid.square[0])
            coded = by_sequence(part, page, max(1, min(MAX_STRIPES, width // 2)))
        case "position":
            coded = by_position(part, page)
        case "shift":
            coded = by_shift(part, page)
        case "changed":
            coded = by_change(part, page, changed)
        case _:
            raise ParamError("colour", colour, "sequence, position, shift or changed")
    return coded if grid.pool == 1 else _pooled(coded, grid)


def _pooled(coded: Coded, grid: Grid) -> Coded:
    """One code a square: that of its cells, or of the largest where they differ."""
    flat = np.maximum.reduceat(coded.codes[:, 0, 0], np.arange(0, grid.n, grid.pool))
    return Coded(flat[:, None, None], coded.colours, flat, coded.scale)


def _colours(coded: Coded, grid: Grid, page: Theme) -> go.Heatmap:
    """The picture: every cell as its block of pixels."""
    colours = [*coded.colours, page.paper] if grid.rows * grid.columns > grid.squares else list(coded.colours)
    blocks = grid.lay_out(coded.codes, len(colours) - 1)
    rows, columns, high, wide = blocks.shape
    settings = discrete_scale(colours)
    if coded.scale:
        settings |= {"showscale": True, "colorbar": _bar(coded.scale, page)}
    return go.Heatmap(
        z=blocks.swapaxes(1, 2).reshape(rows * high, columns * wide),
        name="colours",
        hoverinfo="skip",
        x0=-0.5 + 0.5 / wide,
        dx=1 / wide,
        y0=-0.5 + 0.5 / high,
        dy=1 / high,
        showlegend=False,
        **settings,
    )


def _bar(scale: dict[str, Any], page: Theme) -> dict[str, Any]:
    """The bar of a continuous scale, in the line of the legend."""
    return {
        "orientation": "h",
        "thickness": 8,
        "len": 0.32,
        "x": 1,
        "xanchor": "right",
        "y": 0,
        "yref": "container",
        "yanchor": "bottom",
        "outlinewidth": 0,
        "tickvals": scale["tickvals"],
        "ticktext": scale["ticktext"],
        "tickfont": {"size": SMALL, "color": page.muted},
        "ypad": 0,
        "title": {"text": scale["title"], "side": "top", "font": {"size": SMALL, "color": page.muted}},
    }


def _legend(part: PartSnapshot, colour: Colour, page: Theme, n_changed: int) -> list[Any]:
    """What the colours mean, in words."""
    entries: list[Any] = []
    if colour == "sequence":
        entries += _sequence_words(part, page)
    if colour == "changed":
        entries += [swatch("changed", page.accent), swatch("emptied", page.freed), swatch("in use", page.filled)]
    entries.append(swatch("empty", page.empty))
    if n_changed:
        entries.append(outline_swatch("changed in this step", page.ink))
    return entries


def _sequence_words(part: PartSnapshot, page: Theme) -> list[Any]:
    filled = part.pos != NO_POS
    seqs = owners_of(int(np.bitwise_or.reduce(part.seqs[filled], initial=np.uint64(0))))
    entries = [
        swatch(f"sequence {seq}", seq_colour(seq), pattern=seq_symbol(seq), tone=seq_tone(seq))
        for seq in seqs[:MAX_LEGEND]
    ]
    if len(seqs) > MAX_LEGEND:
        entries.append(swatch(f"and {len(seqs) - MAX_LEGEND} more", page.several))
    if (part.seqs[filled] == 0).any():
        entries.append(swatch("no owner", page.filled))
    return entries


def _axes(grid: Grid, page: Theme) -> dict[str, Any]:
    """Cell numbers: of the first cell of a row at the left, how far into the row above."""
    shared = {
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "fixedrange": True,
        "tickfont": {"size": SMALL, "color": page.muted},
    }
    step = max(1, grid.columns // 8)
    columns = list(range(0, grid.columns, step))
    rows = list(range(0, grid.rows, max(1, -(-grid.rows // 16))))
    return {
        "xaxis": {
            **shared,
            "side": "top",
            "range": [-0.5, grid.columns - 0.5],
            "tickvals": columns,
            "ticktext": [f"+{column * grid.pool:,}" for column in columns],
        },
        "yaxis": {
            **shared,
            "range": [grid.rows - 0.5, -0.5],
            "tickvals": rows,
            "ticktext": [f"{row * grid.columns * grid.pool:,}" for row in rows],
        },
    }
