"""The layer that answers the mouse: one point for every square of a map, exact for what is drawn."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.cells import EMPTY
from kvmodel.figures.clicks import MAX_CLICKABLE, click_layer
from kvmodel.figures.grid import Grid
from kvmodel.figures.texts import Strings, owner_texts, safe, shift_of
from kvmodel.snapshot import PartSnapshot

MAX_TEXT_CELLS = 4096
"""Cells up to which every cell has words of its own; beyond, numbers only, since words are most of a figure's bytes."""

CLEAR = [[0, "rgba(0,0,0,0)"], [1, "rgba(0,0,0,0)"]]
CELL = "<b>cell %{customdata[0]}</b>"


def hover_layer(part: PartSnapshot, grid: Grid, texts: Strings, *, clickable: bool) -> go.Scatter | go.Heatmap:
    """What answers the mouse over the map, named `cells`: points that can be clicked, or an invisible heatmap.

    Its customdata hold, for every square, int32: the (first) cell, and beyond 4,096 cells also position, smallest
    owner, number of owners and shift; of a pooled square how many cells are in use, and the last cell.
    """
    if clickable and grid.n <= MAX_CLICKABLE:
        return _points(part, grid, texts)
    if grid.pool > 1:
        data, template, text = *_pooled(part, grid), None
    elif grid.n > MAX_TEXT_CELLS:
        data, template, text = *_numbers(part, grid), None
    else:
        data, template = _own(grid)[:, None], f"{CELL}<br>%{{text}}<extra></extra>"
        text = grid.lay_out(cell_words(part, texts), "")
    return go.Heatmap(
        z=np.zeros((grid.rows, grid.columns), np.uint8),
        customdata=grid.lay_out(data, -1),
        text=text,
        name="cells",
        colorscale=CLEAR,
        showscale=False,
        hovertemplate=template,
    )


def _own(grid: Grid) -> NDArray[np.int32]:
    """Numbers of the cells."""
    return np.arange(grid.first, grid.end, dtype=np.int32)


def _points(part: PartSnapshot, grid: Grid, texts: Strings) -> go.Scatter:
    """A point a cell; their order is that of the cells."""
    cells = _own(grid)
    row, column = grid.place(cells)
    told = f"{CELL}<br>%{{hovertext}}<extra></extra>"
    words = cell_words(part, texts)
    return click_layer(
        column.astype(np.int16), row.astype(np.int16), words, "cells", customdata=cells[:, None], hovertemplate=told
    )


def cell_words(part: PartSnapshot, texts: Strings) -> Strings:
    """What every cell holds, str [n]; markup only where it is needed, since JSON writes it at length."""
    add = np.strings.add
    word, shift = shift_of(part)
    owners = owner_texts(part.seqs)
    several = np.bitwise_count(part.seqs) > 1
    who = add(np.where(several, ", sequences ", ", sequence "), np.where(owners == "", "none", owners))
    held = add(add("position ", part.pos.astype(np.str_)), who)
    moved = add(f"<br>pending {word} ", shift.astype(np.str_))
    held = np.where(shift != 0, add(held, moved), held)
    if (texts != "").any():
        different, which = np.unique(texts, return_inverse=True)
        token = np.array([safe(text) for text in different.tolist()], np.str_)[which]
        held = np.where(token != "", add(held, add(add("<br>token “", token), "”")), held)
    return np.where(part.pos == EMPTY, np.where(shift != 0, add("empty", moved), "empty"), held)


def _numbers(part: PartSnapshot, grid: Grid) -> tuple[NDArray[np.int32], str]:
    """Facts of every cell; the shift only if any is pending, since in a large map it is half a megabyte."""
    word, shift = shift_of(part)
    lowest = part.seqs & (~part.seqs + np.uint64(1))
    first = np.where(part.seqs > 0, np.bitwise_count(lowest - np.uint64(1)), 0)
    columns: list[NDArray[np.integer]] = [_own(grid), part.pos, first, np.bitwise_count(part.seqs)]
    lines = [
        CELL,
        "position %{customdata[1]} (-1: empty)",
        "owners %{customdata[3]}, first sequence %{customdata[2]}",
    ]
    if shift.any():
        columns.append(shift)
        lines.append(f"pending {word} %{{customdata[4]}}")
    return np.stack(columns, axis=1).astype(np.int32), "<br>".join(lines) + "<extra></extra>"


def _pooled(part: PartSnapshot, grid: Grid) -> tuple[NDArray[np.int32], str]:
    begins = np.arange(0, grid.n, grid.pool)
    used = np.add.reduceat((part.pos != EMPTY).astype(np.int32), begins)
    ends = np.minimum(begins + grid.pool, grid.n) - 1 + grid.first
    template = "<b>cells %{customdata[0]} to %{customdata[2]}</b><br>in use %{customdata[1]}<extra></extra>"
    return np.stack([begins + grid.first, used, ends], axis=1).astype(np.int32), template
