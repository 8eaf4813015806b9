"""A K-shift as arrows: every pair of dimensions is a point in a plane, and a shift turns it."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.figures.base import SMALL, figure
from kvmodel.figures.entries import DOTS, LINE, Entry
from kvmodel.figures.palette import Theme, ThemeName, mix
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.texts import Strings
from kvmodel.kshift import KShiftReport

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

MARGIN = {"l": 8, "r": 8, "t": 8, "b": 10}
WIDTH, LARGEST = 600, 76
"""Pixels of the plot's width, about, and of a square at most."""

COLUMNS = ((32, 8), (72, 12), (128, 16))
"""Squares in a row, for up to so many pairs."""

MAX_PAIRS = COLUMNS[-1][0]
"""Pairs drawn at most: all those of a head of 256 dimensions."""

RADIUS = 0.42
"""Length of the longest of a pair's arrows; a square has side 1."""

SWEEP = 24
"""Corners of an arc that shows a turn."""


def kshift_arrows(report: KShiftReport, *, theme: ThemeName = "light") -> go.Figure:
    """One circle a pair: where the key pointed before, where the shift turned it, and where it should point.

    A pair is drawn in its own scale, its longest arrow as long as there is room. The circle is where the fresh key
    lies; an arrow that ends beside it has the wrong length.

    Args:
        report: the key around the shift.
        theme: light or dark.

    Returns:
        A figure with the traces `before`, `fresh` and `after` (three points an arrow: centre, tip, gap), and `pairs`,
        one square a pair, which answers the mouse.
    """
    page = page_of(theme)
    n = min(len(report.pairs), MAX_PAIRS)
    columns = min(n, next(columns for most, columns in COLUMNS if n <= most))
    side = min(LARGEST, WIDTH / columns)
    centre = np.stack([np.arange(n) % columns, np.arange(n) // columns], axis=1).astype(np.float64)
    keys = {name: _points(report, key)[:n] for name, key in _keys(report).items()}
    scale = _scale(np.stack(list(keys.values())))
    tips = {name: _upright(points * scale) for name, points in keys.items()}
    traces = [
        _circles(centre, np.linalg.norm(tips["fresh"], axis=1), page),
        _turns(centre, keys["before"], report.turned[:n], page),
        _arrows("before", centre, tips["before"], page.muted, 1.5, "dot"),
        _arrows("fresh", centre, tips["fresh"], _pale(page), 6, "solid"),
        _arrows("after", centre, tips["after"], page.accent, 2, "solid"),
        _numbers(centre, page),
        _hover(centre, _words(report, keys), side),
    ]
    rows = -(-n // columns)
    axes = _axes(columns, rows, side)
    return figure(page, traces, height=rows * side, margin=MARGIN, width=WIDTH, entries=_legend(report, page), **axes)


def _pale(page: Theme) -> str:
    """Colour of the fresh key, a band under the arrow that should cover it."""
    return mix(page.paper, page.rising, 0.6)


def _keys(report: KShiftReport) -> dict[str, NDArray[np.float32]]:
    return {"before": report.before, "after": report.after, "fresh": report.fresh}


def _points(report: KShiftReport, key: NDArray[np.float32]) -> Float64:
    """The pairs of a key as points, float64 [pairs, 2]."""
    return key[report.pairs].astype(np.float64)


def _scale(points: Float64) -> Float64:
    """Factor of each pair, float64 [pairs, 1], that makes the longest of its arrows RADIUS long."""
    longest = np.linalg.norm(points, axis=-1).max(axis=0)
    return np.where(longest > 0, RADIUS / np.where(longest > 0, longest, 1), 0)[:, None]


def _upright(points: Float64) -> Float64:
    """Points for an axis that runs down, so that a positive turn goes against the clock."""
    return points * (1, -1)


def _gapped(points: Float64) -> Float32:
    """Corners of many lines, [lines, corners, 2], as one list with a gap after each line; float32 is fine enough."""
    gaps = np.full((len(points), 1, 2), np.nan)
    return np.concatenate([points, gaps], axis=1, dtype=np.float32).reshape(-1, 2)


def _circles(centre: Float64, radius: Float64, page: Theme) -> go.Scatter:
    angle = np.linspace(0, 2 * np.pi, 2 * SWEEP + 1)
    round_ = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return _line("circles", _gapped(centre[:, None] + radius[:, None, None] * round_), page.line, 1.5, "solid")


def _turns(centre: Float64, before: Float64, turned: Float64, page: Theme) -> go.Scatter:
    """The way that each pair turned, as an arc from where it was; more than one turn looks like one."""
    start = np.arctan2(before[:, 1], before[:, 0])
    way = np.clip(turned, -2 * np.pi, 2 * np.pi)
    angle = start[:, None] + way[:, None] * np.linspace(0, 1, SWEEP)
    arc = 0.4 * RADIUS * np.stack([np.cos(angle), -np.sin(angle)], axis=2)
    return _line("turns", _gapped(centre[:, None] + arc), page.muted, 1, "solid")


def _line(name: str, corners: Float32, colour: str, width: float, dash: str, **more: Any) -> go.Scatter:
    style = {"color": colour, "width": width, "dash": dash}
    settings = {"mode": "lines", "line": style, "hoverinfo": "skip"} | more
    return go.Scatter(x=corners[:, 0], y=corners[:, 1], name=name, **settings)


def _arrows(name: str, centre: Float64, tips: Float64, colour: str, width: float, dash: str) -> go.Scatter:
    corners = _gapped(np.stack([centre, centre + tips], axis=1))
    head = np.tile(np.array([0, 5 + 1.4 * width, 0], np.float32), len(centre))
    angle = np.repeat(np.degrees(np.arctan2(tips[:, 0], -tips[:, 1])), 3).astype(np.float32)
    marker = {"symbol": "arrow", "size": head, "angle": angle, "color": colour, "opacity": 1, "line": {"width": 0}}
    return _line(name, corners, colour, width, dash, mode="lines+markers", marker=marker)


def _numbers(centre: Float64, page: Theme) -> go.Scatter:
    return go.Scatter(
        x=centre[:, 0] - 0.48,
        y=centre[:, 1] - 0.41,
        text=np.arange(len(centre)).astype(np.str_).tolist(),
        mode="text",
        textposition="middle right",
        textfont={"size": SMALL - 1, "color": page.muted},
        cliponaxis=False,
        hoverinfo="skip",
        name="numbers",
    )


def _hover(centre: Float64, words: Strings, side: float) -> go.Scatter:
    return go.Scatter(
        x=centre[:, 0],
        y=centre[:, 1],
        text=words.tolist(),
        mode="markers",
        marker={"size": side, "symbol": "square", "opacity": 0},
        hovertemplate="%{text}<extra></extra>",
        name="pairs",
    )


def _words(report: KShiftReport, keys: dict[str, Float64]) -> Strings:
    """What there is to say about every pair, str [pairs]."""
    told = []
    for i, (first, second) in enumerate(report.pairs[: len(keys["before"])].tolist()):
        rows = [f"{name}: {points[i, 0]:.4f}, {points[i, 1]:.4f}" for name, points in keys.items()]
        turn = f"turned by {report.turned[i]:+.4g} radians, due {report.due[i]:+.4g}"
        told.append("<br>".join([f"<b>pair {i}: dimensions {first} and {second}</b>", turn, *rows]))
    return np.array(told, np.str_)


def _legend(report: KShiftReport, page: Theme) -> list[Entry]:
    often = (
        f"{report.times} K-shifts of {report.k_shift:+,}" if report.times != 1 else f"K-shift of {report.k_shift:+,}"
    )
    entries = [
        Entry(f"before, at position {report.pos:,}", page.muted, DOTS),
        Entry(f"after the {often}", page.accent, LINE),
        Entry(f"made fresh at position {report.new_pos:,}", _pale(page), f"<b>{LINE}</b>"),
        Entry("the way it turned, a ring for a turn or more", page.muted, "◜"),
    ]
    n, drawn = len(report.pairs), min(len(report.pairs), MAX_PAIRS)
    return entries + ([Entry(f"first {drawn} of {n:,} pairs", page.muted, "…")] if drawn < n else [])


def _axes(columns: int, rows: int, side: float) -> dict[str, Any]:
    """Squares as wide as they are high; few of them stand at the left."""
    room = max(columns, WIDTH / side)
    hidden = {"visible": False, "fixedrange": True, "constrain": "domain"}
    return {
        "xaxis": {**hidden, "range": [-0.5, room - 0.5], "constraintoward": "left"},
        "yaxis": {**hidden, "range": [rows - 0.5, -0.5], "scaleanchor": "x", "constraintoward": "top"},
    }
