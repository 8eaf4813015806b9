"""Reading the cells of a whole cache out of a state stream, without a loop over cells.

A record is 2 + n words long, so each one's place follows from the one before. Places are found a window of words at a
time by following "next record" pointers in doubling steps. Counterpart of the whole-cache half of `state_read_meta`
in llama-kv-cache-unified.cpp, which reads word by word.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kvmodel.formats.errors import StateError
from kvmodel.formats.state_cells import bad_pos, first_true
from kvmodel.formats.stream import Reader
from kvmodel.limits import MAX_SEQ

Int64 = NDArray[np.int64]

WINDOW = 1 << 16
"""Words looked at in one go, so that what is made beside the stream stays small."""


@dataclass(eq=False)
class CellTable:
    """Cells as a stream of a whole cache tells them.

    Attributes:
        pos: int32 [n], positions.
        seqs: uint64 [n], owners.
        repeated: cell * 64 + sequence for every owner that a cell names more than once.
        end: the error of a stream that ends within the cells, None if all are there.
    """

    pos: NDArray[np.int32]
    seqs: NDArray[np.uint64]
    repeated: list[int] = field(default_factory=list)
    end: StateError | None = None


@dataclass(frozen=True)
class CellRules:
    """What the cells of a stream must keep to.

    Attributes:
        n_seq_max: ids lie below it.
        lowest_pos: smallest position.
        one_cell_each: no sequence owns two cells (recurrent caches).
    """

    n_seq_max: int
    lowest_pos: int
    one_cell_each: bool


def read_table(reader: Reader, count: int, rules: CellRules) -> CellTable:
    """Cells of a whole cache. What was read before an early end counts, so the end is part of the result.

    Args:
        reader: stands at the first cell.
        count: cells that the stream announces, at most those of the cache.
        rules: what they must keep to.

    Raises:
        StateError: kind bad_seq_id, bad_pos or duplicate_tail, whichever is met first.
    """
    return _TableReader(reader, count, rules).read()


class _TableReader:
    """The state of one reading: `at` words and `n` cells are behind, `owed` ids of the newest cell are to come."""

    def __init__(self, reader: Reader, count: int, rules: CellRules) -> None:
        self.reader, self.words, self.base = reader, reader.words(), reader.offset
        self.count, self.rules = count, rules
        self.table = CellTable(np.empty(count, np.int32), np.zeros(count, np.uint64))
        self.at = self.n = self.owed = 0

    def read(self) -> CellTable:
        while (self.owed or self.n < self.count) and len(self.words) - self.at >= (1 if self.owed else 2):
            window = self.words[self.at : self.at + WINDOW]
            if self.owed:
                self._ids(window[: self.owed])
            else:
                self._records(window)
        table = self.table
        if self.owed:
            return self._ended(f"seq_id of cell {self.n - 1}")
        if self.n < self.count:
            lone = self.words[self.at :]
            self._check_pos(lone, self.at)
            return self._ended(f"{'n_seq_id' if len(lone) else 'pos'} of cell {self.n}")
        self.reader.take(4 * self.at, "cells")
        return table

    def _ended(self, field_name: str) -> CellTable:
        """What was read when the words ended in a field."""
        self.reader.take(4 * len(self.words), "cells")
        table = self.table
        table.pos, table.seqs = table.pos[: self.n], table.seqs[: self.n]
        table.end = self.reader.eof(field_name, 4)
        return table

    def _check_pos(self, pos: NDArray[np.int32], place: int) -> None:
        """Refuse a position of the next cell, which stands at word `place`."""
        if len(pos) and pos[0] < self.rules.lowest_pos:
            raise bad_pos(self.base + 4 * place, self.n, int(pos[0]), self.rules.lowest_pos)

    def _ids(self, ids: NDArray[np.int32]) -> None:
        """Read further ids of the newest cell."""
        self._own(np.full(len(ids), self.n - 1), ids, np.arange(len(ids)) + self.at)
        self.at += len(ids)
        self.owed -= len(ids)

    def _records(self, window: NDArray[np.int32]) -> None:
        """Read the cells that begin in a window; ids of the last one may lie behind it."""
        starts = _record_starts(window, self.count - self.n)
        n_ids = window[starts + 1].view(np.uint32).astype(np.int64)
        here = np.minimum(n_ids, len(window) - 2 - starts)
        pos = window[starts]
        good = first_true(pos < self.rules.lowest_pos)
        cells, counts = np.arange(self.n, self.n + good), here[:good]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        places = np.repeat(starts[:good] + 2, counts) + within
        self._own(np.repeat(cells, counts), window[places], places + self.at)
        self.table.pos[cells] = pos[:good]
        self.n += good
        if good < len(pos):
            self._check_pos(pos[good:], self.at + int(starts[good]))
        self.at += int(starts[-1] + 2 + here[-1])
        self.owed = int(n_ids[-1] - here[-1])

    def _own(self, cells: Int64, ids: NDArray[np.int32], places: Int64) -> None:
        """Make `ids`, which stand at word `places`, owners of `cells`; both ascend."""
        self._check_ids(cells, ids, places)
        if not len(ids):
            return
        touched = self.table.seqs[cells[0] : cells[-1] + 1]
        before = touched.copy()
        np.bitwise_or.at(touched, cells - cells[0], np.uint64(1) << ids.astype(np.uint64))
        if np.bitwise_count(touched ^ before).sum(dtype=np.int64) < len(ids):
            self._repeats(cells, ids, before)

    def _check_ids(self, cells: Int64, ids: NDArray[np.int32], places: Int64) -> None:
        wrong = first_true((ids < 0) | (ids >= self.rules.n_seq_max))
        again = self._first_again(ids[:wrong]) if self.rules.one_cell_each else wrong
        if again < len(ids):
            kind = "duplicate_tail" if again < wrong else "bad_seq_id"
            allowed = "an id not met before" if again < wrong else f"0 to {self.rules.n_seq_max - 1}"
            at = self.base + 4 * int(places[again])
            raise StateError(kind, at, f"seq_id of cell {cells[again]}", allowed, int(ids[again]), consumed=at + 4)

    def _first_again(self, ids: NDArray[np.int32]) -> int:
        """Index of the first id that is among those before it or among the owners read so far."""
        first = np.zeros(len(ids), np.bool_)
        first[np.unique(ids, return_index=True)[1]] = True
        known = np.bitwise_or.reduce(self.table.seqs[: self.n], initial=np.uint64(0))
        return first_true(~first | (known >> ids.astype(np.uint64) & np.uint64(1) != 0))

    def _repeats(self, cells: Int64, ids: NDArray[np.int32], before: NDArray[np.uint64]) -> None:
        keys, times = np.unique(cells * MAX_SEQ + ids, return_counts=True)
        owned = before[keys // MAX_SEQ - cells[0]] >> (keys % MAX_SEQ).astype(np.uint64) & np.uint64(1)
        self.table.repeated += keys[(times > 1) | (owned != 0)].tolist()


def _record_starts(words: NDArray[np.int32], count: int) -> Int64:
    """Places of the first records, at most `count`, whose first two words lie in `words`.

    With the pointers to the record 2^k further on, twice as many places are known after each step.
    """
    end = len(words) - 1
    further = np.full(end + 1, end)
    np.minimum(np.arange(2, end + 2) + words[1:].view(np.uint32), end, out=further[:end])
    starts = np.zeros(1, np.int64)
    while len(starts) < count and starts[-1] < end:
        starts = np.concatenate([starts, further[starts]])
        further = further[further]
    return starts[starts < end][:count]
