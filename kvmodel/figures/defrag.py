"""A defragmentation: the cells before, the blocks that move, the cells after."""

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.cells import EMPTY
from kvmodel.defrag import DefragPlan
from kvmodel.errors import check_int
from kvmodel.figures.base import axis, discrete_scale, figure
from kvmodel.figures.codes import WIDTHS, by_sequence
from kvmodel.figures.entries import Entry, outline, swatch
from kvmodel.figures.grid import ticks
from kvmodel.figures.hover import CLEAR, MAX_TEXT_CELLS
from kvmodel.figures.legend import sequence_entries
from kvmodel.figures.marks import path
from kvmodel.figures.palette import Theme, ThemeName
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.ribbons import BAND, ribbons
from kvmodel.figures.texts import Strings, owner_texts
from kvmodel.snapshot import PartSnapshot
from kvmodel.words import count

MARGIN = {"l": 50, "r": 8, "t": 22, "b": 14}
WIDTH, HEIGHT = 600, 150
MAX_LINED = 128
"""Cells up to which lines set them apart."""


def defrag_figure(
    part: PartSnapshot, plan: DefragPlan, *, n_moved: int | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """Two rows of cells, before and after, and a ribbon for every block that moves.

    Args:
        part: the cells before.
        plan: the moves.
        n_moved: how many blocks have moved so far; the lower row then shows the cells at that moment. Left out, all.
        theme: light or dark.

    Returns:
        A figure with the traces `before` and `after`: colour codes as in `cells_figure`, one column a cell.

    Raises:
        ParamError: the plan has fewer moves.
    """
    page, moved = page_of(theme), _moves(plan, n_moved)
    n = len(plan.ids) or int(part.counters["used_max_p1"]) or part.n_cells
    pos, seqs = part.pos[:n], part.seqs[:n]
    src, dst = _cells_of(plan.moves[:moved])
    after = _moved(pos, src, dst, EMPTY), _moved(seqs, src, dst, 0)
    rows = (("before", pos, seqs, 1 - BAND, plan.src, plan.dst), ("after", *after, 0.0, dst, src))
    traces: list[Any] = []
    for name, row_pos, row_seqs, base, here, there in rows:
        traces.append(_colours(name, row_pos, row_seqs, base, page))
        if n <= MAX_TEXT_CELLS:
            traces.append(_hover(_words(row_pos, row_seqs, here, there, name), base))
    entries = [*sequence_entries(seqs, page), swatch("empty", page.empty, page), *_legend(plan, n_moved, page)]
    stages = ribbons(plan, moved if n_moved is not None else None, page)
    below = "after" if n_moved is None or n_moved == len(plan.moves) else f"after {n_moved:,}"
    return figure(
        page,
        traces,
        height=HEIGHT,
        margin=MARGIN,
        width=WIDTH,
        entries=entries,
        shapes=[*stages, *_lines(n, page)],
        **_axes(n, below, page),
    )


def _moves(plan: DefragPlan, n_moved: int | None) -> int:
    """Blocks that have moved."""
    return len(plan.moves) if n_moved is None else check_int("n_moved", n_moved, 0, len(plan.moves))


def _cells_of(moves: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Sources and destinations of the cells of blocks (source, destination, length)."""
    source, destination, length = moves.T
    within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    return np.repeat(source, length) + within, np.repeat(destination, length) + within


def defrag_table(plan: DefragPlan) -> pd.DataFrame:
    """One row a block: number of the move, first cell before and after, cells."""
    source, destination, cells = plan.moves.T
    numbers = np.arange(1, len(plan.moves) + 1)
    return pd.DataFrame({"move": numbers, "from cell": source, "to cell": destination, "cells": cells})


def _moved(values: NDArray[Any], src: NDArray[np.intp], dst: NDArray[np.intp], empty: Any) -> NDArray[Any]:
    """An array of the cells after moves; no cell is both a source and a destination."""
    after = values.copy()
    after[dst] = values[src]
    after[src] = empty
    return after


def _legend(plan: DefragPlan, n_moved: int | None, page: Theme) -> list[Entry]:
    """The moves against the budget; under way also which ribbon comes next."""
    told = swatch(_told(plan, n_moved), page.accent, page)
    under_way = n_moved is not None and n_moved < len(plan.moves)
    return [told, outline("next move", page.ink)] if under_way else [told]


def _told(plan: DefragPlan, n_moved: int | None) -> str:
    if plan.empty:
        return "nothing moves"
    if n_moved is not None:
        budget = f"budget {plan.max_moves:,}" if plan.max_moves else "no budget"
        return f"{n_moved:,} of {count(len(plan.moves), 'move')}, {budget}"
    return count(plan.n_moves, "block move") + (f" of at most {plan.max_moves:,}" if plan.max_moves else "")


def _colours(name: str, pos: NDArray[np.int32], seqs: NDArray[np.uint64], base: float, page: Theme) -> go.Heatmap:
    coded = by_sequence(pos, seqs, page, 1 if len(pos) > MAX_TEXT_CELLS else WIDTHS[-1])
    n, high, wide = coded.codes.shape
    return go.Heatmap(
        z=coded.codes.swapaxes(0, 1).reshape(high, n * wide),
        x0=-0.5 + 0.5 / wide,
        dx=1 / wide,
        y0=base + BAND * 0.5 / high,
        dy=BAND / high,
        name=name,
        hoverinfo="skip",
        **discrete_scale(coded.colours),
    )


def _hover(words: Strings, base: float) -> go.Heatmap:
    return go.Heatmap(
        z=np.zeros((1, len(words)), np.uint8),
        y0=base + BAND / 2,
        dy=BAND,
        text=words[None, :],
        colorscale=CLEAR,
        showscale=False,
        hovertemplate="%{text}<extra></extra>",
    )


def _words(
    pos: NDArray[np.int32], seqs: NDArray[np.uint64], here: NDArray[np.intp], there: NDArray[np.intp], name: str
) -> Strings:
    """What there is to say about every cell of a row, str [n]."""
    add = np.strings.add
    other = np.full(len(pos), -1)
    other[here] = there
    move = add("<br>goes to cell " if name == "before" else "<br>came from cell ", other.astype(np.str_))
    holds = add(add(add("position ", pos.astype(np.str_)), ", sequences "), owner_texts(seqs))
    cell = add(add(f"<b>{name}: cell ", np.arange(len(pos)).astype(np.str_)), "</b><br>")
    text = add(cell, np.where(pos == EMPTY, "empty", holds))
    return np.where(other < 0, text, add(text, move))


def _lines(n: int, page: Theme) -> list[dict[str, Any]]:
    """Lines of the page's colour between the cells of both rows."""
    if n > MAX_LINED:
        return []
    return [path("".join(f"M{c - 0.5},1V{1 - BAND}M{c - 0.5},{BAND}V0" for c in range(n + 1)), page.paper, 2)]


def _axes(n: int, below: str, page: Theme) -> dict[str, Any]:
    cells = ticks(n, 8)
    return {
        "xaxis": axis(
            page,
            side="top",
            range=[-0.5, n - 0.5],
            tickvals=cells,
            ticktext=["cell 0", *(f"{cell:,}" for cell in cells[1:])],
        ),
        "yaxis": axis(page, range=[0, 1], tickvals=[1 - BAND / 2, BAND / 2], ticktext=["before", below]),
    }
