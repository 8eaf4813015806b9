"""Sequence edits of the older transformer cache: remove, copy, keep, add, divide, clear.

Counterpart of `llama_kv_cache_seq_*` and `llama_kv_cache_clear` in llama-kv-cache.cpp (January 2025). Any 32-bit
number passes for a sequence; one that no cell can have owns nothing.
"""

import numpy as np

from kvmodel.caches.base import pos_range
from kvmodel.caches.data import DataPlane
from kvmodel.caches.legacy_cells import Index, LegacyCells, set_of
from kvmodel.errors import CacheAbort, check_int
from kvmodel.events import Cleared, Emit, NothingToDo, SeqAdded, SeqCopied, SeqDivided, SeqKept, SeqRemoved
from kvmodel.limits import INT32_MAX, MAX_SEQ

INT32_MIN = -INT32_MAX - 1


class LegacyEdits(DataPlane):
    """The calls that change owners and positions without storing tokens."""

    cells: LegacyCells
    head: int
    used: int
    has_shift: bool
    emit: Emit
    name: str

    def seq_pos_min(self, seq: int) -> int:
        """Smallest position of `seq`, -1 if it has none. For display: this generation has no such call."""
        pos = self.cells.pos[self.cells.owned(_int32("seq", seq))]
        return int(pos.min()) if len(pos) else -1

    def seq_pos_max(self, seq: int) -> int:
        """Largest position of `seq`, and 0 if it has none (`llama_kv_cache_seq_pos_max`)."""
        return int(self.cells.pos[self.cells.owned(_int32("seq", seq))].max(initial=0))

    def clear(self, data: bool = True) -> None:
        """Empty every cell and return head to 0; deltas stay (quirk stale-delta). Mutates.

        Args:
            data: taken for True: this generation always zeroes the bytes.
        """
        _ = data
        self.cells.free(slice(None))
        self.head = self.used = 0
        self._clear_bytes()
        self.emit(Cleared(n_cells=len(self.cells), data=True, cache=self.name))

    def seq_rm(self, seq: int, p0: int, p1: int) -> bool:
        """Remove `seq` from positions [p0, p1); below 0 every sequence. Always True. Mutates."""
        seq = max(_int32("seq", seq), -1)
        p0, p1 = _range(p0, p1)
        hit = self.cells.select(p0, p1, None if seq < 0 else seq)
        self.cells.seqs[hit] &= ~set_of(seq) if seq >= 0 else np.uint64(0)
        freed = hit[self.cells.seqs[hit] == 0]
        self._free(freed)
        before = self._head_to_first(freed)
        self.emit(
            SeqRemoved(
                seq=seq, p0=p0, p1=p1, cells=hit, freed=freed, head_before=before, head=self.head, cache=self.name
            )
        )
        return True

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        """Make `dst` an owner of the cells of `src` in [p0, p1); head returns to 0. Mutates."""
        src, dst = _int32("src", src), _int32("dst", dst)
        p0, p1 = _range(p0, p1)
        hit = self.cells.select(p0, p1, src)
        if len(hit):
            check_int("dst", dst, 0, MAX_SEQ - 1)
        self.head = 0
        had = hit[(self.cells.seqs[hit] & set_of(dst)) != 0]
        self.cells.seqs[hit] |= set_of(dst)
        self.emit(SeqCopied(src=src, dst=dst, p0=p0, p1=p1, cells=hit, had=had, cache=self.name))

    def seq_keep(self, seq: int) -> None:
        """Free every cell that `seq` does not own; head may go back to the first of them. Mutates."""
        seq, cells = _int32("seq", seq), self.cells
        kept = cells.owned(seq)
        others = np.ones(len(cells), np.bool_)
        others[kept] = False
        freed = np.flatnonzero(others & (cells.pos >= 0))
        narrowed = kept[cells.seqs[kept] != set_of(seq)]
        cells.seqs[narrowed] = set_of(seq)
        self._free(freed)
        before = self._head_to_first(np.flatnonzero(others))
        self.emit(SeqKept(seq=seq, freed=freed, narrowed=narrowed, head_before=before, head=self.head, cache=self.name))

    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        """Add `shift` to positions and deltas of `seq` in [p0, p1); what falls below 0 is freed. Mutates.

        Head goes to the first freed cell, or to 0. A freed cell keeps its delta (quirk stale-delta).
        """
        seq, shift = _int32("seq", seq), _int32("shift", shift)
        p0, p1 = _range(p0, p1)
        if p0 == p1:
            self._nothing("seq_add", "the range is empty")
            return
        hit = self.cells.select(p0, p1, seq)
        self.cells.pos[hit] += np.int32(shift)
        self.cells.delta[hit] += np.int32(shift)
        self.has_shift |= len(hit) > 0
        freed = hit[self.cells.pos[hit] < 0]
        self._free(freed)
        before, self.head = self.head, int(freed[0]) if len(freed) else 0
        self.emit(
            SeqAdded(
                seq=seq,
                p0=p0,
                p1=p1,
                shift=shift,
                cells=hit,
                freed=freed,
                head_before=before,
                head=self.head,
                cache=self.name,
            )
        )

    def seq_div(self, seq: int, p0: int, p1: int, d: int) -> None:
        """Divide positions of `seq` in [p0, p1) by `d`, towards 0; the delta gets new minus old. Mutates.

        Raises:
            CacheAbort: `d` is below 1 and there are cells to divide. Upstream ends its process for 0 and leaves
                negative positions, which it then takes for free cells, for less.
        """
        seq, d = _int32("seq", seq), _int32("d", d)
        p0, p1 = _range(p0, p1)
        if p0 == p1:
            self._nothing("seq_div", "the range is empty")
            return
        hit = self.cells.select(p0, p1, seq)
        if d < 1 and len(hit):
            raise CacheAbort(f"d is {d}; allowed: 1 or more (upstream divides by 0 or stores negative positions)")
        old = self.cells.pos[hit]
        self.cells.pos[hit] = old // np.int32(d)
        self.cells.delta[hit] += self.cells.pos[hit] - old
        self.has_shift |= len(hit) > 0
        self.emit(SeqDivided(seq=seq, p0=p0, p1=p1, d=d, cells=hit, cache=self.name))

    def _free(self, cells: Index) -> None:
        """Free cells that have a position, and take them from the counter."""
        self.cells.free(cells)
        self.used -= len(cells)

    def _head_to_first(self, freed: Index) -> int:
        """Move head back to the first freed cell if that lies before it; return the old head."""
        before = self.head
        if len(freed):
            self.head = min(before, int(freed[0]))
        return before

    def _nothing(self, call: str, why: str) -> None:
        self.emit(NothingToDo(call=call, why=why, cache=self.name))


def _int32(name: str, value: int) -> int:
    return check_int(name, value, INT32_MIN, INT32_MAX)


def _range(p0: int, p1: int) -> tuple[int, int]:
    return pos_range(_int32("p0", p0), _int32("p1", p1))
