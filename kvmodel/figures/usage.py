"""How full a cache is over the steps of a scenario."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.figures.base import SMALL, axis, figure
from kvmodel.figures.entries import DOTS, LINE, Entry
from kvmodel.figures.grid import ticks
from kvmodel.figures.palette import Theme, ThemeName
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.texts import MIB, mib
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline

MARGIN = {"l": 44, "r": 64, "t": 22, "b": 38}
DIGIT, STANDOFF = 6, 8
"""Pixels of a character of a label, and between it and the plot with what is left at the edge."""

WIDTH, HEIGHT, STRIP = 230, 120, 52
"""Pixels: width of the plot, about; height of the plot of cells and of the strip for the fragmentation."""

GAP = 20
"""Pixels of the strip that its name takes."""


def usage_figure(timeline: Timeline, name: str, *, step: int, theme: ThemeName = "light") -> go.Figure:
    """Used cells, bytes in use and n_kv over the steps by operation, fragmentation in a strip below if there is any.

    Args:
        timeline: a played scenario.
        name: which part: `kv`, `base` or `swa`.
        step: the current step, marked.
        theme: light or dark.

    Returns:
        A figure with the traces `used`, `n_kv` and, if there is any, `fragmentation`; one point a step.
    """
    page, part = page_of(theme), timeline.start[name]
    fragmentation = timeline.series("fragmentation", name)
    strip = bool(fragmentation.any())
    traces = [*_cell_lines(timeline, part, fragmentation, page), *([_strip_line(fragmentation, page)] if strip else [])]
    marked = [_dot(trace, step, page) for trace in reversed(traces)]
    return figure(
        page,
        [*traces, *marked, _byte_scale()],
        height=HEIGHT + STRIP * strip,
        margin=_margin(part),
        width=WIDTH,
        entries=[Entry("used", page.accent, LINE), Entry("n_kv", page.ink, DOTS)],
        shapes=[_now(step, page)],
        annotations=[_now_words(step, page), *([_strip_words(page)] if strip else [])],
        **_axes(part, timeline.n_steps, page, strip),
    )


def _margin(part: PartSnapshot) -> dict[str, int]:
    """Room for the longest labels: the number of cells at the left, all bytes at the right."""
    longest = {"l": f"{part.n_cells:,}", "r": mib(part.size_k_bytes + part.size_v_bytes)}
    return MARGIN | {side: max(MARGIN[side], DIGIT * len(label) + STANDOFF) for side, label in longest.items()}


def _cell_lines(
    timeline: Timeline, part: PartSnapshot, fragmentation: NDArray[np.float64], page: Theme
) -> list[go.Scatter]:
    used = timeline.series("used", part.name).astype(np.int32)
    n_kv = timeline.series("n_kv", part.name).astype(np.int32)
    per_cell = (part.size_k_bytes + part.size_v_bytes) / part.n_cells / MIB
    facts = np.stack([used * per_cell, fragmentation], axis=1)
    told = "step %{x}: %{y:,} used cells, %{customdata[0]:.2f} MiB<br>fragmentation %{customdata[1]:.1%}<extra></extra>"
    return [
        _line(used, "used", page.accent, 2.5, "solid", customdata=facts, hovertemplate=told),
        _line(n_kv, "n_kv", page.ink, 1.5, "dot", hovertemplate="step %{x}: n_kv %{y:,}<extra></extra>"),
    ]


def _strip_line(fragmentation: NDArray[np.float64], page: Theme) -> go.Scatter:
    told = "step %{x}: fragmentation %{y:.1%}<extra></extra>"
    style = {"yaxis": "y3", "hovertemplate": told}
    return _line(fragmentation, "fragmentation", page.muted, 1.5, "solid", **style)


def _line(y: NDArray[Any], name: str, colour: str, width: float, dash: str, **more: Any) -> go.Scatter:
    style = {"color": colour, "width": width, "dash": dash, "shape": "hv"}
    return go.Scatter(x=np.arange(len(y), dtype=np.int32), y=y, name=name, line=style, mode="lines", **more)


def _dot(line: go.Scatter, step: int, page: Theme) -> go.Scatter:
    """The value of a line at the current step."""
    marker = {"color": line.line.color, "size": 8, "line": {"color": page.paper, "width": 1.5}}
    return go.Scatter(x=[step], y=[line.y[step]], yaxis=line.yaxis, mode="markers", marker=marker, hoverinfo="skip")


def _byte_scale() -> go.Scatter:
    """Nothing to see: an axis needs a trace to appear."""
    return go.Scatter(x=[None], y=[None], yaxis="y2", hoverinfo="skip")


def _now(step: int, page: Theme) -> dict[str, Any]:
    """The current step as a line through the whole plot."""
    return {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "x0": step,
        "x1": step,
        "y0": 0,
        "y1": 1,
        "line": {"color": page.muted, "width": 1},
        "layer": "below",
    }


def _now_words(step: int, page: Theme) -> dict[str, Any]:
    return {
        "text": f"<b>step {step:,}</b>",
        "x": step,
        "xref": "x",
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": SMALL, "color": page.ink},
    }


def _strip_words(page: Theme) -> dict[str, Any]:
    return {
        "text": "fragmentation",
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": 1,
        "yref": "y3 domain",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": SMALL, "color": page.muted},
    }


def _axes(part: PartSnapshot, n_steps: int, page: Theme, strip: bool) -> dict[str, Any]:
    """Steps below, cells at the left, the same as bytes at the right, fragmentation in its strip."""
    n, size = part.n_cells, part.size_k_bytes + part.size_v_bytes
    cells = [0, n // 2, n]
    split = (STRIP - GAP) / (HEIGHT + STRIP)
    main = [STRIP / (HEIGHT + STRIP), 1] if strip else [0, 1]
    steps = ticks(n_steps, 8)
    axes = {
        "xaxis": axis(
            page,
            range=[-0.02 * n_steps, max(n_steps - 1, 1) + 0.02 * n_steps],
            anchor="y3" if strip else "y",
            tickvals=steps,
            ticktext=["start", *(f"{step:,}" for step in steps[1:])],
        ),
        "yaxis": axis(
            page,
            domain=main,
            range=[-n * 0.03, n * 1.05],
            tickvals=cells,
            tickformat=",d",
            showgrid=True,
            gridcolor=page.line,
        ),
        "yaxis2": axis(
            page,
            overlaying="y",
            side="right",
            range=[-n * 0.03, n * 1.05],
            tickvals=cells,
            ticktext=[mib(size * cell / n) for cell in cells],
        ),
    }
    if strip:
        axes["yaxis3"] = axis(
            page,
            domain=[0, split],
            range=[0, 1.05],
            tickvals=[0, 1],
            tickformat=".0%",
            showgrid=True,
            gridcolor=page.line,
        )
    return axes
