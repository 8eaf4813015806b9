"""The layout that all figures share, and the entries of their legends."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from kvmodel.figures.palette import Theme

FONT = '"Source Sans", "Source Sans Pro", system-ui, -apple-system, "Segoe UI", sans-serif'
FONT_SIZE = 13
SMALL = 11
LEGEND_HEIGHT = 34
HIDDEN_AXIS = {"showgrid": False, "zeroline": False, "showline": False, "ticks": ""}


def figure(page: Theme, traces: Sequence[Any], *, height: float, margin: dict[str, int], **layout: Any) -> go.Figure:
    """A figure in the house style: no template, the page's colours, the legend in one line of words below.

    Args:
        page: the colours.
        traces: what is drawn, in order.
        height: pixels of the plot; the margins are added.
        margin: pixels left, right, top and bottom (l, r, t, b).
        **layout: further settings.
    """
    shared = {
        "template": go.layout.Template(),
        "height": round(height + margin["t"] + margin["b"]),
        "margin": {**margin, "pad": 0},
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


def hover_label(page: Theme) -> dict[str, Any]:
    """Hover text on the page's own colours, left-aligned."""
    return {
        "bgcolor": page.paper,
        "bordercolor": page.muted,
        "font": {"family": FONT, "size": FONT_SIZE, "color": page.ink},
        "align": "left",
    }


def swatch(name: str, colour: str, *, pattern: str = "", tone: str = "") -> go.Bar:
    """A legend entry: a filled square and words. Draws nothing."""
    marker: dict[str, Any] = {"color": colour, "line": {"width": 0}}
    if pattern:
        marker["pattern"] = {"shape": pattern, "fgcolor": tone, "bgcolor": colour, "fillmode": "overlay", "size": 5}
    return go.Bar(x=[None], y=[None], name=name, marker=marker, showlegend=True, hoverinfo="skip")


def outline_swatch(name: str, colour: str) -> go.Scatter:
    """A legend entry: an outlined square and words. Draws nothing."""
    marker = {"symbol": "square-open", "size": 11, "color": colour, "line": {"width": 2, "color": colour}}
    return go.Scatter(x=[None], y=[None], name=name, mode="markers", marker=marker, showlegend=True, hoverinfo="skip")


def discrete_scale(colours: Sequence[str]) -> dict[str, Any]:
    """Settings of a heatmap whose values are indices into `colours`."""
    n = len(colours)
    stops = [[(i + side) / n, colour] for i, colour in enumerate(colours) for side in (0, 1)]
    return {"colorscale": stops, "zmin": -0.5, "zmax": n - 0.5, "showscale": False}
