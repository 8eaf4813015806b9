"""A large cache as one low strip: where it is in use, by whom, and which part of it the map beside it shows."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from kvmodel.figures.base import SMALL, axis, discrete_scale, figure, legend_width
from kvmodel.figures.cells import EDGE, margins, plot_width
from kvmodel.figures.clicks import NEAREST, click_layer, point_clicked
from kvmodel.figures.entries import Entry, lines, outline, swatch
from kvmodel.figures.grid import Index, ticks
from kvmodel.figures.marks import beside, path
from kvmodel.figures.palette import SEQUENCES, Theme, ThemeName, seq_colour, seq_symbol
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.strip import LEVELS, NOBODY, SHARED, Strip, pool_of
from kvmodel.figures.window import Window, cut
from kvmodel.snapshot import PartSnapshot

TOP, HEIGHT, BOTTOM = 16, 30, 8
"""Pixels of the numbers, of the strip, and of what marks changes below it."""

FOOT = -0.3
"""Lower end of the marks of changes; the strip reaches from 0 to 1."""

MOST_TICKS, TICK_WIDTH = 8, 70
"""Numbers over the strip at most, and pixels of one."""


def overview_figure(
    part: PartSnapshot,
    *,
    window: Window | None = None,
    changed: ArrayLike | None = None,
    width: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """All cells of a cache in at most 1,200 columns; the height of a column tells how full it is, its colour whose.

    A column with any cell in use is never empty.

    Args:
        part: the cells at one moment.
        window: the cells (first, n) that a map shows, marked.
        changed: indices of cells to mark as changed.
        width: pixels of the place for the whole figure; left out, a wide panel of the page.
        theme: light or dark.

    Returns:
        A figure with the traces `strip`, colour codes (uint8 [8, columns], from the bottom), and `columns`, a point for
        each that answers mouse and clicks (`overview_clicked`).

    Raises:
        ParamError: the window is not within the cache.
    """
    page, plot = page_of(theme), plot_width(width)
    strip = Strip.of(part, plot)
    cut(part, window)
    moved = _columns_of(changed, strip)
    margin = margins(part) | {"t": TOP, "b": BOTTOM}
    room = legend_width(plot, margin)
    entries = _legend(strip, room, page, window=window is not None, changed=len(moved) > 0)
    return figure(
        page,
        [_colours(strip, page), _points(strip)],
        height=HEIGHT,
        margin=margin,
        width=plot,
        entries=entries,
        shapes=[*_changes(strip, moved, page), *_marks(part, window, plot, page)],
        annotations=[
            beside(f"<b>head {part.head:,}</b>", 0.78, page.accent, 0),
            beside(f"n_kv {part.n_kv:,}", 0.22, page.ink, 0),
        ],
        **NEAREST,
        **_axes(part.n_cells, plot, page),
    )


def overview_clicked(selection: object, n_cells: int, *, width: int | None = None) -> int | None:
    """The cell in the middle of the column that a selection names, None if it names none; `width` as it was drawn."""
    column, pool = point_clicked(selection), pool_of(n_cells, plot_width(width))
    if column is None or column * pool >= n_cells:
        return None
    return (column * pool + min((column + 1) * pool, n_cells) - 1) // 2


def _columns_of(changed: ArrayLike | None, strip: Strip) -> Index:
    cells = np.empty(0, np.intp) if changed is None else np.asarray(changed, np.intp)
    return np.unique(cells // strip.pool)


def _colours(strip: Strip, page: Theme) -> go.Heatmap:
    return go.Heatmap(
        z=strip.codes(),
        x0=(strip.pool - 1) / 2,
        dx=strip.pool,
        y0=0.5 / LEVELS,
        dy=1 / LEVELS,
        name="strip",
        hoverinfo="skip",
        **discrete_scale([page.empty, page.filled, page.several, *SEQUENCES]),
    )


def _points(strip: Strip) -> go.Scatter:
    """A point a column, with what it holds in words."""
    begins, lengths = strip.begins, strip.lengths
    words = [
        f"{used:,} of {length:,} in use{_whose(owner)}" if used else "empty"
        for used, length, owner in zip(strip.used.tolist(), lengths.tolist(), strip.owner.tolist(), strict=True)
    ]
    ends = np.stack([begins, begins + lengths - 1], axis=1).astype(np.int32)
    told = "<b>cells %{customdata[0]} to %{customdata[1]}</b><br>%{hovertext}<extra></extra>"
    middle = (begins + (lengths - 1) / 2).astype(np.float32)
    return click_layer(middle, np.full(len(begins), 0.5), words, "columns", customdata=ends, hovertemplate=told)


def _whose(owner: int) -> str:
    """The owner of most cells of a column."""
    return {SHARED: ", mostly shared", NOBODY: ", mostly without owner"}.get(owner, f", mostly sequence {owner}")


def _changes(strip: Strip, columns: Index, page: Theme) -> list[dict[str, Any]]:
    """Bars below the columns in which a cell changed, each run of them one."""
    begins = columns[np.diff(columns, prepend=-2) != 1] * strip.pool - 0.5
    ends = (columns[np.diff(columns, append=columns[-1:] + 2) != 1] + 1) * strip.pool - 0.5
    bars = "".join(f"M{a},{FOOT}H{b}V-0.1H{a}Z" for a, b in zip(begins.tolist(), ends.tolist(), strict=True))
    return [path(bars, page.ink, 1) | {"fillcolor": page.ink}] if bars else []


def _marks(part: PartSnapshot, window: Window | None, plot: int, page: Theme) -> list[dict[str, Any]]:
    """The window as a frame around its cells, n_kv as a dotted line, head as a line that leaves low columns free."""
    shapes = [path(f"M{part.n_kv - 0.5},0V1", page.ink, 1.5, dash="dot")]
    if window is not None:
        around = part.n_cells / plot
        left, right = window[0] - 0.5 - around, window[0] + window[1] - 0.5 + around
        shapes.append(path(f"M{left:.1f},-0.03H{right:.1f}V1.03H{left:.1f}Z", page.ink, 2))
    return [*shapes, path(f"M{part.head - 0.5},0.4V1", page.accent, 3)]


def _legend(strip: Strip, room: float, page: Theme, *, window: bool, changed: bool) -> list[Entry]:
    """What frames and bars mean, and the sequences if all of them fit into the line; else the mouse tells them."""
    owners = np.unique(strip.owner)
    sequences = owners[(owners >= 0) & (owners < SHARED)].tolist()
    told = [
        *([outline("shown in the map", page.ink)] if window else []),
        *([Entry("changed", page.ink, "▬")] if changed else []),
        *([swatch("shared", page.several, page)] if SHARED in owners else []),
        swatch("empty", page.empty, page),
    ]
    colours = [swatch(f"sequence {seq}", seq_colour(seq), page, pattern=seq_symbol(seq)) for seq in sequences]
    return [*colours, *told] if len(lines([*colours, *told], room)) == 1 else told


def _axes(n: int, plot: int, page: Theme) -> dict[str, Any]:
    cells = ticks(n, max(1, min(MOST_TICKS, plot // TICK_WIDTH)))
    edge = EDGE * n / plot
    return {
        "xaxis": axis(
            page,
            side="top",
            tickangle=0,
            range=[-0.5 - edge, n - 0.5 + edge],
            tickvals=cells,
            ticktext=[f"{cell:,}" for cell in cells],
        ),
        "yaxis": axis(page, range=[FOOT, 1.05], tickvals=[0.5], ticktext=["all"], tickfont={"size": SMALL}),
    }
