"""The layout that all figures share, and the entries of their legends."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from kvmodel.figures.grid import PLOT_WIDTH
from kvmodel.figures.palette import Theme

FONT = '"Source Sans", "Source Sans Pro", system-ui, -apple-system, "Segoe UI", sans-serif'
FONT_SIZE = 13
SMALL = 11
LEGEND_LINE = 20
SWATCH_WIDTH, CHAR_WIDTH = 45, 6.4
"""Pixels of a legend entry without its words, and of one character."""


def figure(
    page: Theme,
    traces: Sequence[Any],
    *,
    height: float,
    margin: dict[str, int],
    width: int = PLOT_WIDTH,
    **layout: Any,
) -> go.Figure:
    """A figure in the house style: no template, the page's colours, the legend in words below.

    Args:
        page: the colours.
        traces: what is drawn, in order.
        height: pixels of the plot; margins and legend are added.
        margin: pixels left, right, top and bottom (l, r, t, b); the legend comes below the bottom one.
        width: pixels of the plot, about: as many entries stand in one line of the legend.
        **layout: further settings.
    """
    below = margin["b"] + LEGEND_LINE * legend_lines(traces, width)
    shared = {
        "template": go.layout.Template(),
        "height": round(height + margin["t"] + below),
        "margin": {**margin, "b": below, "pad": 0},
        "paper_bgcolor": page.paper,
        "plot_bgcolor": page.paper,
        "font": {"family": FONT, "size": FONT_SIZE, "color": page.ink},
        "hovermode": "closest",
        "hoverlabel": hover_label(page),
        "dragmode": False,
        "legend": legend(page),
    }
    return go.Figure(data=list(traces), layout={**shared, **layout})


def legend(page: Theme) -> dict[str, Any]:
    """Words in a row below the plot; a click on one hides nothing."""
    return {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "y": 0,
        "yref": "container",
        "yanchor": "bottom",
        "font": {"size": FONT_SIZE, "color": page.muted},
        "bgcolor": "rgba(0,0,0,0)",
        "itemclick": False,
        "itemdoubleclick": False,
        "itemsizing": "constant",
        "traceorder": "normal",
    }


def legend_lines(traces: Sequence[Any], width: int) -> int:
    """Lines that the legend takes at a plot width; all its columns are as wide as the longest entry."""
    names = [trace.name for trace in traces if trace.showlegend]
    if not names:
        return 0
    each = SWATCH_WIDTH + CHAR_WIDTH * max(map(len, names))
    total = sum(SWATCH_WIDTH + CHAR_WIDTH * len(name) for name in names)
    return 1 if total <= width else -(-len(names) // max(1, int(width // each)))


def hover_label(page: Theme) -> dict[str, Any]:
    """Hover text on the page's own colours, left-aligned."""
    return {
        "bgcolor": page.paper,
        "bordercolor": page.muted,
        "font": {"family": FONT, "size": FONT_SIZE, "color": page.ink},
        "align": "left",
    }


def axis(page: Theme, **settings: Any) -> dict[str, Any]:
    """An axis without lines, ticks or zoom: small muted labels only."""
    return {
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "fixedrange": True,
        "ticklabelstandoff": 3,
        "tickfont": {"size": SMALL, "color": page.muted},
        **settings,
    }


def swatch(name: str, colour: str, page: Theme, *, pattern: str = "", tone: str = "") -> go.Bar:
    """A legend entry: a filled square and words. Draws nothing."""
    edge = page.muted if colour == page.empty else colour
    marker: dict[str, Any] = {"color": colour, "line": {"width": 1, "color": edge}}
    if pattern:
        marker["pattern"] = {"shape": pattern, "fgcolor": tone, "bgcolor": colour, "fillmode": "overlay", "size": 5}
    return go.Bar(x=[None], y=[None], name=name, marker=marker, showlegend=True, hoverinfo="skip")


def outline_swatch(name: str, colour: str) -> go.Scatter:
    """A legend entry: an outlined square and words. Draws nothing."""
    marker = {"symbol": "square-open", "size": 11, "color": colour, "line": {"width": 2, "color": colour}}
    return go.Scatter(x=[None], y=[None], name=name, mode="markers", marker=marker, showlegend=True, hoverinfo="skip")


def line_swatch(name: str, colour: str, width: float, dash: str = "solid") -> go.Scatter:
    """A legend entry: a line and words. Draws nothing."""
    line = {"color": colour, "width": width, "dash": dash}
    return go.Scatter(x=[None], y=[None], name=name, mode="lines", line=line, showlegend=True, hoverinfo="skip")


def discrete_scale(colours: Sequence[str]) -> dict[str, Any]:
    """Settings of a heatmap whose values are indices into `colours`."""
    n = len(colours)
    stops = [[(i + side) / n, colour] for i, colour in enumerate(colours) for side in (0, 1)]
    return {"colorscale": stops, "zmin": -0.5, "zmax": n - 0.5, "showscale": False}
