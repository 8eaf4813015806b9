"""The K-shift vector over the cells: by how much each position moves."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.cells import EMPTY
from kvmodel.figures.base import SMALL, axis, figure
from kvmodel.figures.cells import MARGIN, plot_width
from kvmodel.figures.entries import Entry, swatch
from kvmodel.figures.grid import ticks
from kvmodel.figures.hover import CLEAR
from kvmodel.figures.palette import Theme, ThemeName
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.shift_runs import Runs, Vector, shift_vector
from kvmodel.figures.texts import shift_of
from kvmodel.snapshot import PartSnapshot

HEIGHT, LABEL, LEAST = 76, 0.34, 0.08
"""Pixels of the plot, and as shares of the largest shift: what a number needs beyond it, what the smallest one gets."""

MAX_COLUMNS = 1024
"""Columns drawn at most; of the cells of one the largest shift counts."""

MOST_NUMBERS, CHAR_WIDTH = 16, 7
"""Runs that show their shift as a number, the widest ones, and pixels of a character of it."""


def shift_figure(
    part: PartSnapshot, k_shift: Vector | None = None, *, width: int | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """Up for a shift to later positions, down for one to earlier ones, with the number where there is room.

    Args:
        part: the cells at one moment.
        k_shift: the vector that an update applied, int32 [n]; left out, what is pending in the cells.
        width: pixels of the place for the whole figure; left out, a wide panel of the page.
        theme: light or dark.

    Returns:
        A figure with the traces `later` and `earlier`, two points a run of equal shifts, and `cells`, which answers the
        mouse; up to the last cell that is in use or shifted.

    Raises:
        ParamError: the vector does not have one entry a cell.
    """
    page, plot = page_of(theme), plot_width(width)
    vector = shift_vector(part, k_shift)
    busy = np.flatnonzero((part.pos != EMPTY) | (vector != 0))
    n = int(busy[-1]) + 1 if len(busy) else part.n_cells
    pool = -(-n // MAX_COLUMNS)
    columns = _largest(vector[:n], pool)
    runs, most = Runs.of(columns, pool, n), int(np.abs(columns.astype(np.int64)).max(initial=0))
    heights = np.sign(runs.shift) * np.maximum(np.abs(runs.shift.astype(np.float32)), most * LEAST)
    word = "applied" if k_shift is not None else f"pending {shift_of(part)[0]}"
    return figure(
        page,
        [
            _steps("later", runs, np.maximum(heights, 0), page.rising),
            _steps("earlier", runs, np.minimum(heights, 0), page.falling),
            _hover(columns, pool, n, most, word),
            _numbers(runs, plot / n, page),
        ],
        height=HEIGHT,
        margin=MARGIN,
        width=plot,
        entries=_legend(vector, word, page),
        **_axes(n, most, page),
    )


def _largest(shift: Vector, pool: int) -> Vector:
    """The shift furthest from 0 of every `pool` cells."""
    begins = np.arange(0, len(shift), pool)
    low, high = np.minimum.reduceat(shift, begins), np.maximum.reduceat(shift, begins)
    return np.where(-low.astype(np.int64) > high, low, high)


def _steps(name: str, runs: Runs, heights: NDArray[np.float32], colour: str) -> go.Scatter:
    """A filled line of steps."""
    return go.Scatter(
        x=np.stack([runs.begin, runs.end], axis=1).ravel().astype(np.float32) - 0.5,
        y=np.repeat(heights, 2),
        name=name,
        mode="lines",
        line={"color": colour, "width": 1},
        fill="tozeroy",
        fillcolor=colour,
        hoverinfo="skip",
    )


def _hover(columns: Vector, pool: int, n: int, most: int, word: str) -> go.Heatmap:
    """Invisible columns that answer the mouse."""
    begins = np.arange(len(columns)) * pool
    facts = np.stack([begins, np.minimum(begins + pool, n) - 1, columns], axis=1).astype(np.int32)
    cells = "cells %{customdata[0]} to %{customdata[1]}" if pool > 1 else "cell %{customdata[0]}"
    return go.Heatmap(
        z=np.zeros((1, len(columns)), np.uint8),
        x0=(pool - 1) / 2,
        dx=pool,
        y0=0,
        dy=2 * (1 + LABEL) * max(most, 1),
        customdata=facts[None],
        name="cells",
        colorscale=CLEAR,
        showscale=False,
        hovertemplate=f"<b>{cells}</b><br>{word}{' at most' * (pool > 1)} %{{customdata[2]:+d}}<extra></extra>",
    )


def _numbers(runs: Runs, pixels: float, page: Theme) -> go.Scatter:
    """The shift at the end of each run that is wide enough for it."""
    texts = [f"{shift:+,}" for shift in runs.shift.tolist()]
    room = (runs.end - runs.begin) * pixels >= CHAR_WIDTH * np.array([len(text) for text in texts])
    widest = np.argsort(runs.begin - runs.end, kind="stable")
    shown = [run for run in widest.tolist() if runs.shift[run] and room[run]][:MOST_NUMBERS]
    return go.Scatter(
        x=((runs.begin + runs.end - 1) / 2)[shown],
        y=runs.shift[shown],
        text=[texts[run] for run in shown],
        textposition=["top center" if runs.shift[run] > 0 else "bottom center" for run in shown],
        textfont={"size": SMALL, "color": page.ink},
        mode="text",
        name="numbers",
        cliponaxis=False,
        hoverinfo="skip",
    )


def _legend(vector: Vector, word: str, page: Theme) -> list[Entry]:
    kinds = ((vector > 0, "to later positions", page.rising), (vector < 0, "to earlier positions", page.falling))
    entries = [swatch(name, colour, page) for chosen, name, colour in kinds if chosen.any()]
    none = "nothing was shifted" if word == "applied" else f"no {word.removeprefix('pending ')} pending"
    return entries or [Entry(none, page.muted, "0")]


def _axes(n: int, most: int, page: Theme) -> dict[str, Any]:
    cells, end = ticks(n, 8), max(most, 1) * (1 + LABEL)
    return {
        "xaxis": axis(
            page,
            side="top",
            tickangle=0,
            range=[-0.5, n - 0.5],
            tickvals=cells,
            ticktext=["cell 0", *(f"{cell:,}" for cell in cells[1:])],
        ),
        "yaxis": axis(
            page,
            range=[-end, end],
            tickvals=[-most, 0, most] if most else [0],
            ticktext=[f"{-most:,}", "0", f"+{most:,}"] if most else ["0"],
            zeroline=True,
            zerolinecolor=page.muted,
        ),
    }
