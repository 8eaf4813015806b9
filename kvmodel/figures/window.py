"""A window on a large cache: the neighbouring cells that a map shows one by one."""

from dataclasses import replace

from kvmodel.errors import ParamError, check_int
from kvmodel.figures.grid import columns_for
from kvmodel.limits import MAX_CELLS
from kvmodel.snapshot import PartSnapshot

Window = tuple[int, int]
"""The first cell, and how many there are."""

DETAIL = 1024
"""Cells of a window: as many as a map shows with squares large enough to hit."""


def window_around(n_cells: int, cell: int, n: int = DETAIL) -> Window:
    """The window of at most `n` cells with a cell near its middle; it begins where a row of its map does.

    Args:
        n_cells: cells of the cache.
        cell: the cell to look at.
        n: cells of the window; a smaller cache is shown whole.

    Raises:
        ParamError: there is no such cell, or no cell in the window.
    """
    cell, n = check_int("cell", cell, 0, n_cells - 1), check_int("n", n, 1, MAX_CELLS)
    if n_cells <= n:
        return 0, n_cells
    row = columns_for(n)
    last = -(-(n_cells - n) // row) * row
    begin = max(cell - n // 2, 0) // row * row
    first = min(begin if cell < begin + n else begin + row, last)
    return first, min(n, n_cells - first)


def cut(part: PartSnapshot, window: Window | None) -> PartSnapshot:
    """The cells of a window, counted from 0, with the counters of the whole; all of them without a window.

    Raises:
        ParamError: the window is not within the cache.
    """
    if window is None:
        return part
    first, n = window
    if n < 1 or first < 0 or first + n > part.n_cells:
        raise ParamError("window", window, f"a first cell and a number of cells within the {part.n_cells:,} cells")
    return replace(part, arrays={name: array[first : first + n] for name, array in part.arrays.items()})
