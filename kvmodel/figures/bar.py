"""The bar of a continuous scale below a map: figures under it, its title above."""

from typing import Any

import plotly.graph_objects as go

from kvmodel.figures.base import SMALL
from kvmodel.figures.palette import Theme

LABELS, TALL = 13, 38
"""Pixels under the bar that its figures take, and of all of it."""


def bar(scale: dict[str, Any], page: Theme) -> dict[str, Any]:
    """Settings of the bar: codes, labels and title as `Coded.scale` has them."""
    return {
        "orientation": "h",
        "thickness": 8,
        "len": 0.32,
        "x": 1,
        "xanchor": "right",
        "y": 0,
        "yref": "container",
        "yanchor": "bottom",
        "ypad": 0,
        "outlinewidth": 0,
        "tickvals": scale["tickvals"],
        "ticktext": scale["ticktext"],
        "tickfont": {"size": SMALL, "color": page.muted},
        "title": {"text": scale["title"], "side": "top", "font": {"size": SMALL, "color": page.muted}},
    }


def make_room(drawn: go.Figure, *, below: int) -> None:
    """Lift the bar of the first trace over its figures and over `below` pixels of legend. Mutates the figure."""
    missing = max(0, below + TALL - drawn.layout.margin.b)
    drawn.layout.margin.b += missing
    drawn.layout.height += missing
    drawn.data[0].colorbar.y = (below + LABELS) / drawn.layout.height
