"""Cells one at a time, with a counted map of positions for every sequence (`llama_kv_cells_unified`)."""

from collections import Counter
from dataclasses import dataclass

MAX_SEQ = 64
INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)
EMPTY = -1


def int32(value: int) -> int:
    """The value as a 32-bit register keeps it."""
    return (value + 2**31) % 2**32 - 2**31


@dataclass
class Kept:
    """What `prepare` remembers of one cell: no shift."""

    pos: int
    seqs: frozenset[int]
    serial: int


class RefCells:
    def __init__(self, n: int) -> None:
        self.n = n
        self.reset()

    def reset(self) -> None:
        self.pos = [EMPTY] * self.n
        self.shift = [0] * self.n
        self.seqs: list[set[int]] = [set() for _ in range(self.n)]
        self.serial = [-1] * self.n
        self.used: set[int] = set()
        self.counts: list[Counter[int]] = [Counter() for _ in range(MAX_SEQ)]
        self.has_shift = False

    def reset_shift(self) -> None:
        self.shift = [0] * self.n
        self.has_shift = False

    def is_empty(self, i: int) -> bool:
        return self.pos[i] == EMPTY

    def used_max_p1(self) -> int:
        return max(self.used) + 1 if self.used else 0

    def pos_in(self, i: int, p0: int, p1: int) -> bool:
        return p0 <= self.pos[i] < p1

    def pos_min(self, seq: int) -> int:
        return min(self.counts[seq]) if self.counts[seq] else -1

    def pos_max(self, seq: int) -> int:
        return max(self.counts[seq]) if self.counts[seq] else -1

    def _count(self, seq: int, pos: int) -> None:
        self.counts[seq][pos] += 1

    def _uncount(self, seq: int, pos: int) -> None:
        self.counts[seq][pos] -= 1
        if self.counts[seq][pos] == 0:
            del self.counts[seq][pos]

    def _count_owners(self, i: int) -> None:
        for seq in self.seqs[i]:
            self._count(seq, self.pos[i])

    def _uncount_owners(self, i: int) -> None:
        for seq in self.seqs[i]:
            self._uncount(seq, self.pos[i])

    def _empty(self, i: int) -> None:
        self.seqs[i] = set()
        self.pos[i] = EMPTY
        self.shift[i] = 0
        self.serial[i] = -1
        self.used.discard(i)

    def rm(self, i: int) -> None:
        self._uncount_owners(i)
        self._empty(i)

    def seq_rm(self, i: int, seq: int) -> bool:
        """Take one owner away; True if that emptied the cell."""
        self.seqs[i].remove(seq)
        self._uncount(seq, self.pos[i])
        if self.seqs[i]:
            return False
        self._empty(i)
        return True

    def seq_keep(self, i: int, seq: int) -> bool:
        """Leave one owner; True if that emptied the cell. A used cell without any owner stays as it is."""
        if seq in self.seqs[i]:
            self._uncount_owners(i)
            self.seqs[i] = {seq}
            self._count(seq, self.pos[i])
            return False
        if self.seqs[i]:
            self.rm(i)
            return True
        return False

    def seq_add(self, i: int, seq: int) -> None:
        """Add an owner. The position counts once more even if the owner was there already."""
        self.seqs[i].add(seq)
        self._count(seq, self.pos[i])

    def pos_set(self, i: int, pos: int, serial: int = -1) -> None:
        """Use an empty cell. Its shift stays what it is."""
        self.pos[i] = pos
        self.serial[i] = serial
        self.used.add(i)

    def pos_add(self, i: int, d: int) -> bool:
        """Move a position; True if it fell below 0, which empties the cell."""
        self._uncount_owners(i)
        self.pos[i] = int32(self.pos[i] + d)
        self.shift[i] = int32(self.shift[i] + d)
        self.has_shift = True
        if self.pos[i] < 0:
            self._empty(i)
            return True
        self._count_owners(i)
        return False

    def pos_div(self, i: int, d: int) -> None:
        old = self.pos[i]
        self._uncount_owners(i)
        self.pos[i] = old // d
        self.shift[i] = int32(self.shift[i] + old - self.pos[i])
        self._count_owners(i)
        self.has_shift = True

    def mv(self, src: int, dst: int) -> None:
        for array in (self.pos, self.shift, self.seqs, self.serial):
            array[dst] = array[src]
        self.used.add(dst)
        self._empty(src)

    def keep(self, begin: int, n: int) -> list[Kept]:
        cells = range(begin, begin + n)
        return [Kept(self.pos[i], frozenset(self.seqs[i]), self.serial[i]) for i in cells]

    def put_back(self, begin: int, kept: list[Kept]) -> None:
        """Undo a trial store. Shifts stay as the trial left them."""
        for i, cell in enumerate(kept, begin):
            if not self.is_empty(i):
                self._uncount_owners(i)
            self.used.discard(i)
            self.pos[i], self.seqs[i], self.serial[i] = cell.pos, set(cell.seqs), cell.serial
            if not self.is_empty(i):
                self.used.add(i)
                self._count_owners(i)
