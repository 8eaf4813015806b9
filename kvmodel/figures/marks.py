"""Lines and words around the squares of a map: the grid, head, n_kv, outlines. None of them covers a cell."""

from typing import Any

from kvmodel.figures.base import SMALL
from kvmodel.figures.grid import Grid, Index
from kvmodel.figures.palette import Theme

MAX_BOXES = 2000
"""Outlines drawn at most; with more there is nothing to be told apart."""

LABEL_ROOM = 14
"""Pixels that a line of words beside the map takes."""


def path(points: str, colour: str, width: float, **style: Any) -> dict[str, Any]:
    """One shape made of many lines, in the coordinates of the squares."""
    return {"type": "path", "path": points, "line": {"color": colour, "width": width, **style}, "layer": "above"}


def gap(grid: Grid) -> float:
    """Pixels between two squares."""
    return min(3.0, min(grid.square) / 10) if min(grid.square) >= 4 else 0.0


def grid_lines(grid: Grid, page: Theme) -> list[dict[str, Any]]:
    """Lines of the page's colour that set the squares apart."""
    width = gap(grid)
    if not width:
        return []
    right, bottom = grid.columns - 0.5, grid.rows - 0.5
    down = "".join(f"M{c - 0.5},-0.5V{bottom}" for c in range(grid.columns + 1))
    across = "".join(f"M-0.5,{r - 0.5}H{right}" for r in range(grid.rows + 1))
    return [path(down + across, page.paper, width)]


def outlines(grid: Grid, cells: Index, colour: str) -> list[dict[str, Any]]:
    """A line around every run of the given cells; none if there are too many runs to see."""
    width = min(2.0, max(1.0, min(grid.square) / 2))
    runs = grid.runs(cells).tolist()
    return [path("".join(grid.contour(*run) for run in runs), colour, width)] if 0 < len(runs) <= MAX_BOXES else []


def selected_mark(grid: Grid, cell: int | None, page: Theme) -> list[dict[str, Any]]:
    """A line of the accent inside one of the ink around a cell, so that it shows on every fill."""
    if cell is None or not grid.holds(cell):
        return []
    box = grid.contour(cell, cell + 1)
    return [path(box, page.ink, 5), path(box, page.accent, 2)]


def head_mark(grid: Grid, head: int, page: Theme) -> list[dict[str, Any]]:
    """A bracket that opens before the cell at which the next search starts."""
    if not grid.first <= head <= grid.end:
        return []
    row, column = _head_place(grid, head)
    x, top, bottom, arm = column - 0.5, row - 0.5, row + 0.5, min(0.3, grid.columns / 100)
    return [path(f"M{x + arm},{top}H{x}V{bottom}H{x + arm}", page.accent, 3)]


def _head_place(grid: Grid, head: int) -> tuple[int, int]:
    """Row and column before which head is; after the last cell it stays in its row."""
    return grid.edge(head) if head == grid.end else grid.place(head)


def n_kv_mark(grid: Grid, n_kv: int, page: Theme) -> list[dict[str, Any]]:
    """A dashed line after the last cell that attention looks at."""
    if not grid.first <= n_kv <= grid.end:
        return []
    row, column = grid.edge(n_kv)
    x, top, bottom = column - 0.5, row - 0.5, row + 0.5
    line = f"M-0.5,{bottom}H{x}" if column else ""
    if column < grid.columns:
        line += f"M{x},{bottom}V{top}H{grid.columns - 0.5}"
    return [path(line, page.ink, 1.5, dash="dot")]


def beside(text: str, row: float, colour: str, shift: float) -> dict[str, Any]:
    """Words to the right of a row, `shift` pixels up."""
    return {
        "text": text,
        "x": 1,
        "xref": "paper",
        "xanchor": "left",
        "xshift": 6,
        "y": row,
        "yref": "y",
        "yanchor": "middle",
        "yshift": shift,
        "showarrow": False,
        "font": {"size": SMALL + 1, "color": colour},
    }


def side_words(grid: Grid, head: int, n_kv: int, page: Theme) -> list[dict[str, Any]]:
    """What head and n_kv are, in the right margin at their rows, apart from each other."""
    head_row, end_row = _head_place(grid, head)[0], grid.edge(n_kv)[0] + 0.5
    apart = (end_row - head_row) * grid.square[1]
    push = max(0.0, LABEL_ROOM - abs(apart)) / 2 * (1 if apart >= 0 else -1)
    words = [
        (head, beside(f"<b>head {head:,}</b>", head_row, page.accent, push)),
        (n_kv, beside(f"n_kv {n_kv:,}", end_row, page.ink, -push)),
    ]
    return [told for place, told in words if grid.first <= place <= grid.end]
