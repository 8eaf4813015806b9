"""The layout that all figures share."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from kvmodel.figures.entries import LINE_HEIGHT, Item, annotation, lines
from kvmodel.figures.grid import PLOT_WIDTH
from kvmodel.figures.palette import Theme

FONT = '"Source Sans", "Source Sans Pro", system-ui, -apple-system, "Segoe UI", sans-serif'
FONT_SIZE = 13
SMALL = 11
NARROW = 508
"""Pixels of a wide figure on a page of 820 pixels; no line of a legend is longer than it has room for."""


def figure(
    page: Theme,
    traces: Sequence[Any],
    *,
    height: float,
    margin: dict[str, int],
    width: int = PLOT_WIDTH,
    entries: Sequence[Item] = (),
    annotations: Sequence[dict[str, Any]] = (),
    **layout: Any,
) -> go.Figure:
    """A figure in the house style: no template, the page's colours, the legend in words below.

    Args:
        page: the colours.
        traces: what is drawn, in order.
        height: pixels of the plot; margins and legend are added.
        margin: pixels left, right, top and bottom (l, r, t, b); the legend comes below the bottom one.
        width: pixels of the plot, about.
        entries: the legend, which reaches from the left end of the plot to the right end of the figure.
        annotations: words in the plot.
        **layout: further settings.
    """
    rows = lines(entries, legend_width(width, margin))
    below = margin["b"] + LINE_HEIGHT * len(rows)
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
        "showlegend": False,
        "annotations": [*annotations, *([annotation(rows, page, margin["b"])] if rows else [])],
    }
    return go.Figure(data=list(traces), layout={**shared, **layout})


def legend_width(width: float, margin: dict[str, int]) -> float:
    """Pixels of a line of the legend below a plot of that width with those margins."""
    return min(width + margin["r"], NARROW - margin["l"])


def legend_height(entries: Sequence[Item], width: float, margin: dict[str, int]) -> int:
    """Pixels that the legend takes below a plot of that width with those margins."""
    return LINE_HEIGHT * len(lines(entries, legend_width(width, margin)))


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
        "ticklabeloverflow": "allow",  # else every label is measured at each drawing
        "ticklabelstandoff": 3,
        "tickfont": {"size": SMALL, "color": page.muted},
        **settings,
    }


def discrete_scale(colours: Sequence[str]) -> dict[str, Any]:
    """Settings of a heatmap whose values are indices into `colours`."""
    n = len(colours)
    stops = [[(i + side) / n, colour] for i, colour in enumerate(colours) for side in (0, 1)]
    return {"colorscale": stops, "zmin": -0.5, "zmax": n - 0.5, "showscale": False}
