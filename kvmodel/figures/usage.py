"""How full a cache is over the steps of a scenario."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from kvmodel.figures.base import SMALL, figure
from kvmodel.figures.palette import Theme, ThemeName
from kvmodel.figures.palette import theme as page_of
from kvmodel.timeline import Timeline

MARGIN = {"l": 46, "r": 62, "t": 20, "b": 58}
HEIGHT = 190
MIB = 2**20


def usage_figure(timeline: Timeline, name: str, *, step: int, theme: ThemeName = "light") -> go.Figure:
    """Used cells, n_kv and bytes in use above, fragmentation below, over the steps by operation.

    Args:
        timeline: a played scenario.
        name: which part: `kv`, `base` or `swa`.
        step: the current step, marked.
        theme: light or dark.

    Returns:
        A figure with the traces `used cells`, `n_kv` and `fragmentation`, one point a step.
    """
    page, part = page_of(theme), timeline.start[name]
    steps = np.arange(timeline.n_steps, dtype=np.int32)
    used = timeline.series("used", name).astype(np.int32)
    n_kv = timeline.series("n_kv", name).astype(np.int32)
    share = timeline.series("fragmentation", name)
    mib = used * ((part.size_k_bytes + part.size_v_bytes) / part.n_cells / MIB)
    traces = [
        _line(
            steps,
            used,
            "used cells",
            page.accent,
            width=2.5,
            customdata=mib,
            hovertemplate="step %{x}: %{y:,} cells in use, %{customdata:.2f} MiB<extra></extra>",
        ),
        _line(
            steps, n_kv, "n_kv", page.ink, width=1.5, dash="dot", hovertemplate="step %{x}: n_kv %{y:,}<extra></extra>"
        ),
        _line(
            steps,
            share,
            "fragmentation",
            page.muted,
            width=1.5,
            yaxis="y3",
            fill="tozeroy",
            hovertemplate="step %{x}: fragmentation %{y:.1%}<extra></extra>",
        ),
        _line(steps[:1], mib[:1], "MiB", "rgba(0,0,0,0)", yaxis="y2", showlegend=False, hoverinfo="skip"),
    ]
    top = float(max(part.n_cells, 1))
    per_cell = (part.size_k_bytes + part.size_v_bytes) / part.n_cells / MIB
    return figure(
        page,
        traces,
        height=HEIGHT,
        margin=MARGIN,
        **_axes(page, top, top * per_cell, timeline.n_steps),
        shapes=[_now(step, page)],
        annotations=[_now_words(step, page)],
    )


def _line(x: Any, y: Any, name: str, colour: str, *, width: float = 2, dash: str = "solid", **more: Any) -> go.Scatter:
    return go.Scatter(
        x=x, y=y, name=name, mode="lines", line={"color": colour, "width": width, "dash": dash, "shape": "hv"}, **more
    )


def _now(step: int, page: Theme) -> dict[str, Any]:
    """The current step as a line through both plots."""
    return {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "x0": step,
        "x1": step,
        "y0": 0,
        "y1": 1,
        "line": {"color": page.ink, "width": 1},
        "layer": "below",
    }


def _now_words(step: int, page: Theme) -> dict[str, Any]:
    return {
        "text": f"step {step:,}",
        "x": step,
        "xref": "x",
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": SMALL, "color": page.ink},
    }


def _axes(page: Theme, cells: float, mib: float, n_steps: int) -> dict[str, Any]:
    shared = {
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "fixedrange": True,
        "tickfont": {"size": SMALL, "color": page.muted},
    }
    return {
        "xaxis": {
            **shared,
            "range": [-0.2, max(n_steps - 1, 1) + 0.2],
            "anchor": "y3",
            "tickformat": ",d",
            "nticks": 8,
            "showline": True,
            "linecolor": page.line,
        },
        "yaxis": {
            **shared,
            "domain": [0.34, 1],
            "range": [0, cells * 1.04],
            "nticks": 4,
            "showgrid": True,
            "gridcolor": page.line,
            "tickformat": ",d",
        },
        "yaxis2": {
            **shared,
            "overlaying": "y",
            "side": "right",
            "range": [0, mib * 1.04],
            "nticks": 4,
            "ticksuffix": " MiB",
        },
        "yaxis3": {**shared, "domain": [0, 0.22], "range": [0, 1], "tickvals": [0, 1], "tickformat": ".0%"},
    }
