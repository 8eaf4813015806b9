"""Marks that point at cells: what a beat looks at, and what differs from another cache. Shapes first, colour second."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvmodel.beats import Marks
from kvmodel.figures.entries import OPEN, Entry
from kvmodel.figures.grid import Grid, Index
from kvmodel.figures.marks import MAX_BOXES, outlines, path
from kvmodel.figures.palette import Theme

GLYPH_ROOM = 6.0
"""Pixels of a square from which on a cross or a corner inside it can be told."""

CROSS, CORNER_ROOM = 4.0, 24.0
"""Pixels from the middle of a cross to its ends, and of a square from which on a cross in its corner leaves room."""

TRIED, BLOCKED, FOUND, DIFFERS = "╍╍", "☒", "<b>━━</b>", "◥"
"""Marks of the legend that look like what they name."""

Shapes = list[dict[str, Any]]


@dataclass(frozen=True)
class Pointed:
    """Shapes to draw, and the entries of the legend for those that there are."""

    shapes: Shapes
    entries: list[Entry]


def pointed(grid: Grid, marks: Marks | None, differs: Index, page: Theme) -> Pointed:
    """The marks of a beat and the cells that differ, as far as they are within the grid."""
    beat = _of_beat(grid, marks, page) if marks is not None else []
    drawn = [(shapes, entry) for shapes, entry in [*beat, _different(grid, differs, page)] if shapes]
    return Pointed([shape for shapes, _ in drawn for shape in shapes], [entry for _, entry in drawn])


def _of_beat(grid: Grid, marks: Marks, page: Theme) -> list[tuple[Shapes, Entry]]:
    """The runs of a search, the run that is filled, and the cells that an event touches."""
    tried, blocked, slot = (grid.contour(*run) for run in (marks.tried, marks.blocked, marks.slot))
    touched = marks.cells[(marks.cells < marks.slot[0]) | (marks.cells >= marks.slot[1])]
    return [
        (_line(tried, page.ink, 2.5, "dash"), Entry("looked at", page.ink, TRIED)),
        (
            [*_line(blocked, page.ink, 3), *_crosses(grid, np.arange(*marks.blocked), page)],
            Entry("in the way", page.ink, BLOCKED),
        ),
        (_line(slot, page.accent, 4), Entry("slot", page.accent, FOUND)),
        (outlines(grid, touched, page.accent), Entry("touched", page.accent, OPEN)),
    ]


def _line(points: str, colour: str, width: float, dash: str = "solid") -> Shapes:
    return [path(points, colour, width, dash=dash)] if points else []


def _crosses(grid: Grid, cells: Index, page: Theme) -> Shapes:
    """A cross in every square, at its upper left where text may stand in it; none where squares are small or many."""
    pixels = np.array(grid.square)
    arm = np.minimum(CROSS, 0.3 * pixels)
    middle = np.where(pixels > CORNER_ROOM, arm + 3 - pixels / 2, 0)
    near, far = (middle - arm) / pixels, (middle + arm) / pixels
    squares = _glyph_places(grid, cells)[:, [1, 0, 1, 0]] + np.concatenate([near, far])
    points = "".join(
        f"M{left:.3f},{top:.3f}L{right:.3f},{low:.3f}M{left:.3f},{low:.3f}L{right:.3f},{top:.3f}"
        for left, top, right, low in squares.tolist()
    )
    return [path(points, page.paper, 3.5), path(points, page.ink, 1.5)] if points else []


def _different(grid: Grid, cells: Index, page: Theme) -> tuple[Shapes, Entry]:
    """A line of dashes and dots around the cells, and a full corner in each."""
    boxes = [shape | {"line": {**shape["line"], "dash": "dashdot"}} for shape in outlines(grid, cells, page.ink)]
    wide, high = (min(0.35, 7 / pixels) for pixels in grid.square)
    parts = [
        f"M{c + 0.5 - wide:.3f},{r - 0.5}H{c + 0.5}V{r - 0.5 + high:.3f}Z"
        for r, c in _glyph_places(grid, cells).tolist()
    ]
    corners = [path("".join(parts), page.ink, 0) | {"fillcolor": page.ink}] if parts else []
    return [*boxes, *corners], Entry("differs", page.ink, DIFFERS)


def _glyph_places(grid: Grid, cells: Index) -> NDArray[np.intp]:
    """Row and column of the squares that get a glyph, intp [m, 2]; none where there is no room."""
    squares = grid.squares_of(cells)
    if min(grid.square) < GLYPH_ROOM or len(squares) > MAX_BOXES:
        return np.empty((0, 2), np.intp)
    return np.stack(np.divmod(squares, grid.columns), axis=1)
