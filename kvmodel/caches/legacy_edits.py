"""Sequence edits of the older transformer cache: remove, copy, keep, add, divide, clear."""

import numpy as np

from kvmodel.caches.base import pos_range
from kvmodel.caches.legacy_cells import LegacyCells
from kvmodel.cells import seq_bit
from kvmodel.errors import CacheAbort, check_int
from kvmodel.events import Cleared, Emit, NothingToDo, SeqAdded, SeqCopied, SeqDivided, SeqKept, SeqRemoved
from kvmodel.limits import INT32_MAX, MAX_SEQ

INT32_MIN = -INT32_MAX - 1


class LegacyEdits:
    """The calls that change owners and positions without storing tokens."""

    cells: LegacyCells
    head: int
    used: int
    has_shift: bool
    emit: Emit
    name: str

    def seq_pos_min(self, seq: int) -> int:
        """Smallest position of `seq`, -1 if it has none. For display: this generation has no such call."""
        pos = self.cells.pos[self.cells.owned(check_int("seq", seq, 0, MAX_SEQ - 1))]
        return int(pos.min()) if len(pos) else -1

    def seq_pos_max(self, seq: int) -> int:
        """Largest position of `seq`, and 0 if it has none (`llama_kv_cache_seq_pos_max`)."""
        return int(self.cells.pos[self.cells.owned(check_int("seq", seq, 0, MAX_SEQ - 1))].max(initial=0))

    def clear(self, data: bool = True) -> None:
        """Empty every cell, return head to 0 and zero the bytes; deltas stay. Mutates."""
        self.cells.reset()
        self.head = self.used = 0
        self.emit(Cleared(n_cells=len(self.cells), data=True, cache=self.name))

    def seq_rm(self, seq: int, p0: int, p1: int) -> bool:
        """Remove `seq` from positions [p0, p1); below 0 every sequence. Always True. Mutates."""
        seq = max(check_int("seq", seq, INT32_MIN, MAX_SEQ - 1), -1)
        p0, p1 = _range(p0, p1)
        cells = self.cells
        hit = cells.within(p0, p1)
        if seq >= 0:
            hit &= cells.owned(seq)
            cells.seqs[hit] &= ~seq_bit(seq)
        else:
            cells.seqs[hit] = 0
        freed = hit & (cells.seqs == 0)
        cells.free(freed)
        self.used -= int(np.count_nonzero(freed))
        before = self._head_to_first(freed)
        where, gone = np.flatnonzero(hit), np.flatnonzero(freed)
        self.emit(
            SeqRemoved(
                seq=seq, p0=p0, p1=p1, cells=where, freed=gone, head_before=before, head=self.head, cache=self.name
            )
        )
        return True

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        """Make `dst` an owner of the cells of `src` in [p0, p1); head returns to 0. Mutates."""
        src, dst = (check_int(name, seq, 0, MAX_SEQ - 1) for name, seq in (("src", src), ("dst", dst)))
        p0, p1 = _range(p0, p1)
        self.head = 0
        hit = self.cells.within(p0, p1) & self.cells.owned(src)
        had = hit & self.cells.owned(dst)
        self.cells.seqs[hit] |= seq_bit(dst)
        where, before = np.flatnonzero(hit), np.flatnonzero(had)
        self.emit(SeqCopied(src=src, dst=dst, p0=p0, p1=p1, cells=where, had=before, cache=self.name))

    def seq_keep(self, seq: int) -> None:
        """Free every cell that `seq` does not own; head may go back to the first of them. Mutates."""
        seq = check_int("seq", seq, 0, MAX_SEQ - 1)
        cells = self.cells
        kept = cells.owned(seq)
        narrowed = kept & (cells.seqs != seq_bit(seq))
        freed = ~kept & ((cells.pos >= 0) | (cells.seqs != 0))
        self.used -= int(np.count_nonzero(~kept & (cells.pos >= 0)))
        cells.free(~kept)
        cells.seqs[kept] = seq_bit(seq)
        before = self._head_to_first(~kept)
        gone, less = np.flatnonzero(freed), np.flatnonzero(narrowed)
        self.emit(
            SeqKept(seq=seq, freed=gone, narrowed=less, head_before=before, head=self.head, cache=self.name)
        )

    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        """Add `shift` to positions and deltas of `seq` in [p0, p1); what falls below 0 is freed. Mutates.

        Head goes to the first freed cell, or to 0. A freed cell keeps its delta (quirk stale-delta).
        """
        seq, shift = check_int("seq", seq, 0, MAX_SEQ - 1), check_int("shift", shift, INT32_MIN, INT32_MAX)
        p0, p1 = _range(p0, p1)
        if p0 == p1:
            self._nothing("seq_add", "the range is empty")
            return
        cells = self.cells
        hit = cells.within(p0, p1) & cells.owned(seq)
        cells.pos[hit] += np.int32(shift)
        cells.delta[hit] += np.int32(shift)
        self.has_shift |= bool(hit.any())
        freed = hit & (cells.pos < 0)
        self.used -= int(np.count_nonzero(freed))
        cells.free(freed)
        before, self.head = self.head, int(freed.argmax()) if freed.any() else 0
        where, gone = np.flatnonzero(hit), np.flatnonzero(freed)
        self.emit(
            SeqAdded(
                seq=seq, p0=p0, p1=p1, shift=shift, cells=where, freed=gone,
                head_before=before, head=self.head, cache=self.name,
            )  # fmt: skip
        )

    def seq_div(self, seq: int, p0: int, p1: int, d: int) -> None:
        """Divide positions of `seq` in [p0, p1) by `d`, towards 0; the delta gets new minus old. Mutates.

        Raises:
            CacheAbort: `d` is below 1: upstream divides by 0, or stores negative positions.
        """
        seq, d = check_int("seq", seq, 0, MAX_SEQ - 1), check_int("d", d, INT32_MIN, INT32_MAX)
        p0, p1 = _range(p0, p1)
        if p0 == p1:
            self._nothing("seq_div", "the range is empty")
            return
        if d < 1:
            raise CacheAbort(f"d is {d}; allowed: 1 or more (upstream divides by 0 or stores negative positions)")
        cells = self.cells
        hit = cells.within(p0, p1) & cells.owned(seq)
        old = cells.pos[hit]
        cells.pos[hit] = old // np.int32(d)
        cells.delta[hit] += cells.pos[hit] - old
        self.has_shift |= bool(hit.any())
        self.emit(SeqDivided(seq=seq, p0=p0, p1=p1, d=d, cells=np.flatnonzero(hit), cache=self.name))

    def _head_to_first(self, freed: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> int:
        before = self.head
        if freed.any():
            self.head = min(before, int(freed.argmax()))
        return before

    def _nothing(self, call: str, why: str) -> None:
        self.emit(NothingToDo(call=call, why=why, cache=self.name))


def _range(p0: int, p1: int) -> tuple[int, int]:
    return pos_range(check_int("p0", p0, INT32_MIN, INT32_MAX), check_int("p1", p1, INT32_MIN, INT32_MAX))
