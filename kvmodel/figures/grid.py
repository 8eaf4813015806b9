"""Where a cell is drawn: rows and columns of the map, and back.

Squares run from left to right and from top to bottom. The square in row r and column c is centred on x = c, y = r and
is one unit wide and high; y points down.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.intp]

PLOT_WIDTH = 560
"""Pixels that the squares of a map get on a 1,400 pixel wide page; only the choice of what fits depends on it."""

PLOT_HEIGHT = 272
"""Most pixels that the squares of a map take in height."""

ROW_HEIGHT = 56
"""Most pixels of one row."""

MAX_SQUARES = 1 << 17
"""Squares drawn at most: about as many as a map has pixels."""

MIN_COLUMNS = 16


@dataclass(frozen=True)
class Grid:
    """The arrangement of `n` neighbouring cells of a cache, all of them or a window.

    Attributes:
        n: cells.
        columns: squares in a row.
        pool: cells that share a square, 1 unless there are more cells than pixels.
        width: pixels that the squares get, about.
        first: number of the first cell.
    """

    n: int
    columns: int
    pool: int = 1
    width: int = PLOT_WIDTH
    first: int = 0

    @classmethod
    def of(cls, n: int, columns: int | None = None, width: int = PLOT_WIDTH, first: int = 0) -> "Grid":
        """The arrangement for `n` cells on a plot of that width; `columns` overrides the choice."""
        pool = 1 << max(0, (-(-n // MAX_SQUARES) - 1).bit_length())
        return cls(n, columns or columns_for(-(-n // pool), width), pool, width, first)

    @property
    def squares(self) -> int:
        """Squares that are drawn."""
        return -(-self.n // self.pool)

    @property
    def rows(self) -> int:
        """Rows of squares."""
        return -(-self.squares // self.columns)

    @property
    def height(self) -> float:
        """Pixels of all rows."""
        return self.rows * min(ROW_HEIGHT, PLOT_HEIGHT / self.rows)

    @property
    def square(self) -> tuple[float, float]:
        """Width and height of a square in pixels, about."""
        return self.width / self.columns, self.height / self.rows

    @property
    def end(self) -> int:
        """Number of the cell after the last one."""
        return self.first + self.n

    def holds(self, cell: int) -> bool:
        """Whether a cell is drawn."""
        return self.first <= cell < self.end

    def squares_of(self, cells: Index) -> Index:
        """The squares of those of the cells that are drawn, ascending, each once."""
        inside = np.asarray(cells, np.intp) - self.first
        return np.unique(inside[(inside >= 0) & (inside < self.n)] // self.pool)

    def place(self, cells: Any) -> tuple[Any, Any]:
        """Row and column of a cell, or of an array of cells."""
        square = (cells - self.first) // self.pool
        return square // self.columns, square % self.columns

    def cell_at(self, row: int, column: int) -> int | None:
        """The (first) cell of a square, None outside."""
        index = (row * self.columns + column) * self.pool
        return self.first + index if 0 <= column < self.columns and 0 <= index < self.n else None

    def edge(self, cell: int) -> tuple[int, int]:
        """Row and column before which a boundary at `cell` lies; a boundary at a row's end stays in that row.

        `cell` may be `end`: the boundary after the last one.
        """
        row, column = self.place(cell)
        return (row - 1, self.columns) if cell > self.first and not column else (row, column)

    def lay_out(self, values: NDArray[Any], fill: Any) -> NDArray[Any]:
        """Per-square values [squares, ...] as [rows, columns, ...]; what the last row lacks is `fill`."""
        missing = self.rows * self.columns - len(values)
        if missing:
            values = np.concatenate([values, np.full((missing, *values.shape[1:]), fill, values.dtype)])
        return values.reshape(self.rows, self.columns, *values.shape[1:])

    def runs(self, cells: Index) -> Index:
        """Runs of neighbouring squares in which there are any of the cells, as cells: intp [m, 2], begin and end."""
        squares = self.squares_of(cells)
        begins = np.flatnonzero(np.diff(squares, prepend=-2) != 1)
        lasts = np.append(begins[1:], len(squares))[: len(begins)] - 1
        return self.first + self.pool * np.stack([squares[begins], squares[lasts] + 1], axis=1)

    def contour(self, begin: int, end: int) -> str:
        """One line around the squares of a run [begin, end), as an SVG path; empty if none of it is drawn."""
        begin, end = max(begin, self.first), min(end, self.end)
        if begin >= end:
            return ""
        (top, left), (bottom, last) = self.place(begin), self.place(end - 1)
        row_end, high, low = self.columns - 0.5, top - 0.5, bottom + 0.5
        if top == bottom:
            return f"M{left - 0.5},{high}H{last + 0.5}V{low}H{left - 0.5}Z"
        if bottom == top + 1 and last < left:
            return f"M{left - 0.5},{high}H{row_end}V{top + 0.5}H{left - 0.5}ZM-0.5,{top + 0.5}H{last + 0.5}V{low}H-0.5Z"
        return f"M{left - 0.5},{high}H{row_end}V{bottom - 0.5}H{last + 0.5}V{low}H-0.5V{top + 0.5}H{left - 0.5}Z"


def ticks(n: int, most: int) -> list[int]:
    """Evenly spaced indices from 0 to below `n`, at most `most` of them, a power of two apart."""
    step = 1 << max(0, (-(-n // most) - 1).bit_length())
    return list(range(0, n, step))


def columns_for(squares: int, width: int = PLOT_WIDTH) -> int:
    """Columns that make a map at least twice as wide as it is high, full rows if a divisor is near.

    On a plot that is not much wider than the map may be high, at least as wide as high.
    """
    shape = 2 if width > 1.5 * PLOT_HEIGHT else 1
    columns = MIN_COLUMNS * shape // 2
    while columns < shape * -(-squares // columns):
        columns *= 2
    if squares <= columns:
        return max(squares, 1)
    near = [d for d in range(columns * 3 // 4, 2 * columns) if squares % d == 0]
    return min(near, key=lambda d: abs(d - columns), default=columns)
