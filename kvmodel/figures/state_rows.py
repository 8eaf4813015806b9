"""Where states and sequences stand in a picture of a recurrent cache, and the lines between them.

Cells stand in rows; above each row are the sequences of the same numbers. x counts columns, y counts pixels downwards.
Up to two rows have room for every word; of more, four rows take little more.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvmodel.figures.marks import path
from kvmodel.snapshot import PartSnapshot

MOST_STATES = 64
"""Cells drawn at most: upstream makes as many as there are sequences."""

COLUMNS, LEAST_COLUMNS = 16, 6
"""Most cells in a row, and columns that a wide plot has at least."""

NARROWEST, WIDE = 44, 90
"""Pixels of a column at least, and from which on it holds every word."""

MOST_ROWS = 2
"""Rows of full height; with more all are low."""

HEAD = 5.0
"""Pixels that the arrow at the end of a line stands before a cell."""

Ends = NDArray[np.float64]


class Heights(NamedTuple):
    """Pixels of height of what a row holds.

    Attributes:
        chip: a sequence. tail: the lines to the cells. box: a cell. arc: the lines between cells.
        label: what stands below.
    """

    chip: int
    tail: int
    box: int
    arc: int
    label: int

    @property
    def row(self) -> int:
        """All of a row."""
        return sum(self)


ROOMY, LOW = Heights(24, 38, 62, 30, 34), Heights(18, 18, 38, 10, 20)
"""Heights of few rows, and of many."""


@dataclass(frozen=True)
class Rows:
    """The arrangement of `n` cells in rows of `columns`, on a plot of `width` pixels."""

    n: int
    columns: int
    width: int
    high: Heights = ROOMY

    @classmethod
    def of(cls, part: PartSnapshot, width: int) -> "Rows":
        """The arrangement that fits a plot width; rows behind the last state and the last tail are left out."""
        most = min(part.n_cells, MOST_STATES)
        columns, high = min(most, COLUMNS, max(1, width // NARROWEST)), ROOMY
        last = int(np.flatnonzero((part.seqs[:most] != 0) | (part.tail[:most] >= 0)).max(initial=0))
        if last >= MOST_ROWS * columns:
            columns, high = min(most, COLUMNS), LOW
        return cls(min(most, (1 + last // columns) * columns), columns, width, high)

    @property
    def room(self) -> int:
        """Columns that there is room for: a few cells are not drawn too wide."""
        return max(self.columns, min(LEAST_COLUMNS, self.width // WIDE))

    @property
    def pixels(self) -> float:
        """Width of a column."""
        return self.width / self.room

    @property
    def rows(self) -> int:
        """Rows of cells."""
        return -(-self.n // self.columns)

    @property
    def is_low(self) -> bool:
        """Whether cells have room for numbers only."""
        return self.high is LOW

    @property
    def height(self) -> int:
        """Pixels of all rows."""
        return self.rows * self.high.row

    def x(self, i: Any) -> Any:
        """Column of a cell or sequence."""
        return i % self.columns

    def top(self, i: Any) -> Any:
        """Upper edge of the row of a cell or sequence."""
        return i // self.columns * self.high.row

    def box_top(self, cell: Any) -> Any:
        """Upper edge of a cell."""
        return self.top(cell) + self.high.chip + self.high.tail

    def box_bottom(self, cell: Any) -> Any:
        """Lower edge of a cell."""
        return self.box_top(cell) + self.high.box


@dataclass(frozen=True, eq=False)
class Lines:
    """Curves with an arrow at their end.

    Attributes:
        begin, end: float64 [n, 2], x and y.
        bend: float64 [n, 2], y of the two points that a curve bends towards.
    """

    begin: Ends
    end: Ends
    bend: Ends

    def shape(self, colour: str, width: float, dash: str = "solid") -> list[dict[str, Any]]:
        """One shape of all curves; none without any."""
        if not len(self.begin):
            return []
        parts = [
            f"M{x0:.3f},{y0:.1f}C{x0:.3f},{c0:.1f} {x1:.3f},{c1:.1f} {x1:.3f},{y1:.1f}"
            for (x0, y0), (x1, y1), (c0, c1) in zip(
                self.begin.tolist(), self.end.tolist(), self.bend.tolist(), strict=True
            )
        ]
        return [path("".join(parts), colour, width, dash=dash) | {"layer": "below"}]


def owned_tails(part: PartSnapshot, n: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Sequences below `n` with a tail to a cell below `n`, and whether they own that cell."""
    tail = part.tail[:n]
    seqs = np.flatnonzero((tail >= 0) & (tail < n))
    bits = np.uint64(1) << seqs.astype(np.uint64)
    return seqs, (part.seqs[tail[seqs]] & bits) != 0


def in_one_row(part: PartSnapshot, rows: Rows, seqs: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which of the sequences stand above the row of their cell; only their tails are lines, the others words."""
    one: NDArray[np.bool_] = rows.top(seqs) == rows.top(part.tail[seqs])
    return one


def tail_lines(part: PartSnapshot, rows: Rows, seqs: NDArray[np.intp]) -> Lines:
    """From each of the sequences down to the cell of its state; several ends of one cell stand side by side."""
    cells = part.tail[seqs].astype(np.intp)
    shift = np.zeros(len(seqs))
    for cell in np.unique(cells).tolist():
        here = np.flatnonzero(cells == cell)
        shift[here] = (np.arange(len(here)) - (len(here) - 1) / 2) * min(0.16, 0.7 / len(here))
    begin = np.stack([rows.x(seqs), rows.top(seqs) + rows.high.chip], axis=1).astype(np.float64)
    end = np.stack([rows.x(cells) + shift, rows.box_top(cells) - HEAD], axis=1)
    bend = 0.55 * rows.high.tail
    return Lines(begin, end, np.stack([begin[:, 1] + bend, end[:, 1] - bend], axis=1))


def taken(part: PartSnapshot, n: int) -> NDArray[np.intp]:
    """Owned cells below `n` whose state comes from another cell below `n` next time."""
    src = part.src[:n]
    return np.flatnonzero((part.seqs[:n] != 0) & (src >= 0) & (src < n) & (src != np.arange(n)))


def source_lines(part: PartSnapshot, rows: Rows) -> Lines:
    """Below a row, from each source in it to the cell that takes its state; opposite ways do not cover each other."""
    cells = taken(part, rows.n)
    cells = cells[rows.top(cells) == rows.top(part.src[cells])]
    src = part.src[cells].astype(np.intp)
    way = np.where(rows.x(cells) >= rows.x(src), 1.0, -1.0)
    begin = np.stack([rows.x(src) + 0.2 * way, rows.box_bottom(src) + 1.0], axis=1)
    end = np.stack([rows.x(cells) - 0.08 * way, rows.box_bottom(cells) + HEAD], axis=1)
    deep = np.where(way > 0, 1.25, 0.85) * rows.high.arc - HEAD
    return Lines(begin, end, np.stack([begin[:, 1] + deep, end[:, 1] + deep], axis=1))
