"""A cache cut into equal columns of neighbouring cells: how full each is, and whose it is for the most part."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import EMPTY
from kvmodel.figures.codes import FIRST, N_COLOURS, PLAIN, SEVERAL
from kvmodel.limits import MAX_SEQ
from kvmodel.snapshot import PartSnapshot

MAX_COLUMNS = 1200
"""Columns at most: about as many as a wide page has pixels."""

LEVELS = 8
"""Steps of height in which a column tells how full it is."""

SHARED, NOBODY = MAX_SEQ, MAX_SEQ + 1
"""Owners beside the sequences: several at once, and none."""

Counts = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Strip:
    """The columns.

    Attributes:
        n_cells: cells of the cache.
        pool: cells of a column; the last one may have fewer.
        used: intp [columns], cells in use.
        owner: intp [columns], the owner of most of them: a sequence, SHARED or NOBODY; -1 without any in use.
    """

    n_cells: int
    pool: int
    used: Counts
    owner: Counts

    @classmethod
    def of(cls, part: PartSnapshot, width: int) -> "Strip":
        """The columns of a cache in a plot of `width` pixels."""
        pool = pool_of(part.n_cells, width)
        columns = -(-part.n_cells // pool)
        cells = np.flatnonzero(part.pos != EMPTY)
        column = cells // pool
        owners = np.bincount(column * (NOBODY + 1) + _owner(part.seqs[cells]), minlength=columns * (NOBODY + 1))
        counts = owners.reshape(columns, NOBODY + 1)
        used = counts.sum(axis=1)
        return cls(part.n_cells, pool, used, np.where(used > 0, counts.argmax(axis=1), -1))

    @property
    def begins(self) -> Counts:
        """First cell of every column."""
        return np.arange(len(self.used)) * self.pool

    @property
    def lengths(self) -> Counts:
        """Cells of every column."""
        return np.minimum(self.begins + self.pool, self.n_cells) - self.begins

    def codes(self) -> NDArray[np.uint8]:
        """Colour codes as in a map of sequences, uint8 [LEVELS, columns], from the bottom; what is in use is filled."""
        code = np.where(self.owner < MAX_SEQ, FIRST + self.owner % N_COLOURS, SEVERAL)
        code[self.owner == NOBODY] = PLAIN
        full = -(-self.used * LEVELS // self.lengths)
        filled = np.arange(LEVELS)[:, None] < full
        codes: NDArray[np.uint8] = (code * filled).astype(np.uint8)
        return codes


def pool_of(n_cells: int, width: int) -> int:
    """Cells of a column in a plot of `width` pixels: no column is narrower than one of them, or it would not show."""
    return -(-n_cells // min(width, MAX_COLUMNS))


def _owner(seqs: NDArray[np.uint64]) -> Counts:
    """Whose each cell is: its sequence, SHARED or NOBODY."""
    n = np.bitwise_count(seqs)
    only = np.bitwise_count(seqs - np.uint64(1)) if len(seqs) else np.zeros(0, np.uint8)
    return np.where(n == 1, only, np.where(n > 1, SHARED, NOBODY)).astype(np.intp)
