"""A K-shift as a heatmap and as a table: the pairs of one key before, after, and made fresh."""

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.figures.base import SMALL, axis, figure
from kvmodel.figures.entries import Entry, swatch
from kvmodel.figures.grid import ticks
from kvmodel.figures.palette import Theme, ThemeName
from kvmodel.figures.palette import theme as page_of
from kvmodel.kshift import KShiftReport

MARGIN = {"l": 74, "r": 8, "t": 22, "b": 14}
WIDTH, ROW_HEIGHT = 500, 17
ROWS = ("before", "after", "fresh", "difference")
BAND, GAP = 2, 0.5
"""Rows of a key, one for each dimension of a pair, and the space between two keys, in rows."""

MAX_LINED = 128
"""Pairs up to which there is space between them."""


def kshift_heatmap(report: KShiftReport, *, theme: ThemeName = "light") -> go.Figure:
    """One column a pair, two rows a key: its first and its second dimension; the difference in a scale of its own.

    Args:
        report: the key around the shift.
        theme: light or dark.

    Returns:
        A figure with the traces `before`, `after`, `fresh` and `difference` (after minus fresh), float [2, pairs].
    """
    page = page_of(theme)
    keys = dict(zip(ROWS, (report.before, report.after, report.fresh, report.difference), strict=True))
    values = {name: key[report.pairs].T for name, key in keys.items()}
    limit = _limit(np.stack([values[name] for name in ROWS[:3]]))
    own = _limit(values["difference"])
    traces = [
        _band(name, rows, place, own if name == "difference" else limit, report, page)
        for place, (name, rows) in enumerate(values.items())
    ]
    height = ROW_HEIGHT * (len(ROWS) * (BAND + GAP) - GAP)
    entries = _legend(report, limit, own, page)
    return figure(
        page, traces, height=height, margin=MARGIN, width=WIDTH, entries=entries, **_axes(len(report.pairs), page)
    )


def _limit(values: NDArray[np.float32]) -> float:
    """The largest value without its sign: the end of the scale."""
    return float(np.abs(values).max(initial=0))


def _top(place: int) -> float:
    return place * (BAND + GAP)


def _band(
    name: str, rows: NDArray[np.float32], place: int, limit: float, report: KShiftReport, page: Theme
) -> go.Heatmap:
    n = rows.shape[1]
    end = limit or 1.0
    told = f"<b>pair %{{x}}, dimension %{{customdata}}</b><br>{name}: %{{z:.6g}}<extra></extra>"
    return go.Heatmap(
        z=rows.astype(np.float64),
        y0=_top(place),
        dy=1,
        customdata=report.pairs.T,
        colorscale=[[0, page.falling], [0.5, page.filled], [1, page.rising]],
        zmin=-end,
        zmax=end,
        showscale=False,
        xgap=1 if n <= MAX_LINED else 0,
        ygap=1,
        name=name,
        hovertemplate=told,
    )


def _legend(report: KShiftReport, limit: float, own: float, page: Theme) -> list[Entry]:
    """The two scales in numbers, and what is not shown."""
    beyond = len(report.before) - report.rope.n_rot
    entries = [
        swatch(f"{-limit:.2f}", page.falling, page),
        swatch("0", page.filled, page),
        swatch(f"{limit:+.2f}", page.rising, page),
        Entry(f"difference: {-own:.2g} to {own:+.2g}" if own else "no difference", page.muted, "±"),
    ]
    if beyond:
        entries.append(Entry(f"{beyond:,} dimensions are not rotated", page.muted, "…"))
    return entries


def _axes(n: int, page: Theme) -> dict[str, Any]:
    """Pairs above, keys at the left."""
    pairs = ticks(n, 8)
    middle = [_top(place) + (BAND - 1) / 2 for place in range(len(ROWS))]
    return {
        "xaxis": axis(
            page,
            side="top",
            range=[-0.5, n - 0.5],
            tickvals=pairs,
            ticktext=["pair 0", *(f"{pair:,}" for pair in pairs[1:])],
        ),
        "yaxis": axis(
            page,
            range=[_top(len(ROWS) - 1) + BAND - 0.5, -0.5],
            tickvals=middle,
            ticktext=["before", "after", "made fresh", "difference"],
            tickfont={"size": SMALL, "color": page.ink},
        ),
    }


def kshift_table(report: KShiftReport) -> pd.DataFrame:
    """One row a pair: its dimensions, the angles, its first (x) and second (y) element of each key, the difference."""
    first, second = report.pairs.T
    keys = {"before": report.before, "after": report.after, "fresh": report.fresh}
    columns = {
        f"{name} {word}": key[dims] for name, key in keys.items() for word, dims in (("x", first), ("y", second))
    }
    return pd.DataFrame(
        {
            "pair": np.arange(len(first)),
            "dimension x": first,
            "dimension y": second,
            "turned (rad)": report.turned,
            "due (rad)": report.due,
            **columns,
            "largest difference": np.abs(report.difference[report.pairs]).max(axis=1),
        }
    )
