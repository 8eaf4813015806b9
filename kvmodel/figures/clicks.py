"""Squares that can be clicked: the layer over a picture that a click meets, and what a page reads from a selection."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.figures.grid import Grid
from kvmodel.figures.texts import Strings
from kvmodel.snapshot import PartSnapshot

MAX_CLICKABLE = 4096
"""Cells with a point each: more of them are too small to hit."""

MAX_MASK_CLICKABLE = 2048
"""Squares of a mask with a point each: as many as are large enough to hit."""

CURVE = 1
"""Number of the trace that answers clicks, in every figure."""

NEAREST: dict[str, Any] = {"hoverdistance": -1}
"""Layout: the mouse meets the nearest point however far, so that each point owns the whole of its square."""


def click_layer(x: NDArray[Any], y: NDArray[Any], words: Strings | Sequence[str], name: str, **more: Any) -> go.Scatter:
    """One point a square that answers mouse and clicks, with its words as `hovertext`.

    The points are empty texts, and all but one are left out of the page: they are met as if they were there, but a
    thousand nodes are slow to draw. Heatmaps deliver no clicks.
    """
    hovertext = np.asarray(words, np.str_)
    return go.Scatter(
        x=x, y=y, mode="text", text="", marker={"maxdisplayed": 1}, hovertext=hovertext, name=name, **more
    )


def undimmed(traces: Sequence[Any]) -> None:
    """Keep points and texts as they are while something is selected. Mutates the traces."""
    for trace in traces:
        if isinstance(trace, go.Scatter):
            colour = trace.textfont.color
            steady = colour if isinstance(colour, str) else "#000000"
            trace.selected = {"textfont": {"color": steady}}
            trace.unselected = {"marker": {"opacity": 1}}


def cell_clicked(selection: object, grid: Grid) -> int | None:
    """The cell that a selection names, None if it names none.

    Args:
        selection: what a chart reports, with `points`, each with its `curve_number` and `point_index`.
        grid: the arrangement of the map, `map_grid` of the same arguments.
    """
    index = point_clicked(selection)
    return None if index is None or index >= grid.n or grid.pool > 1 else grid.first + index


def mask_clicked(selection: object, part: PartSnapshot, ubatch: UBatch) -> tuple[int, int] | None:
    """The token of the ubatch and the cell that a selection in its mask names, None if it names none."""
    index = point_clicked(selection)
    if index is None or not clickable_mask(len(ubatch), part.n_kv) or index >= len(ubatch) * part.n_kv:
        return None
    return divmod(index, part.n_kv)


def clickable_mask(rows: int, columns: int) -> bool:
    """Whether a mask of that size has squares to click."""
    return 0 < rows * columns <= MAX_MASK_CLICKABLE


def point_clicked(selection: object) -> int | None:
    """The number of the first point in a selection that belongs to the layer that answers clicks."""
    points = selection.get("points") if isinstance(selection, Mapping) else None
    for point in points if isinstance(points, Sequence) else ():
        if isinstance(point, Mapping) and point.get("curve_number") == CURVE:
            index = point.get("point_index")
            if isinstance(index, int) and not isinstance(index, bool) and index >= 0:
                return index
    return None
