"""Sequence edits of the recurrent cache: remove, copy, keep, add, divide, clear. A state is edited whole.

Counterpart of the recurrent branches of `llama_kv_cache_seq_*` (January 2025). Any 32-bit number passes for a
sequence; one that is not below the number of cells owns nothing.
"""

import numpy as np

from kvmodel.caches.base import pos_range
from kvmodel.caches.data import DataPlane
from kvmodel.caches.recurrent_cells import NONE, Mask
from kvmodel.caches.recurrent_tails import RecurrentTails
from kvmodel.cells import seq_bit
from kvmodel.errors import CacheAbort, check_int
from kvmodel.events import Cleared, NothingToDo, QuirkSeen, SeqKept
from kvmodel.events_recurrent import SeqRmRefused, StateDivided, StateRemoved, StateShared, StateShifted
from kvmodel.limits import INT32_MAX

INT32_MIN = -INT32_MAX - 1
NO_CELLS = np.empty(0, np.intp)


class RecurrentEdits(DataPlane, RecurrentTails):
    """The calls that change owners and positions without computing anything."""

    def clear(self, data: bool = True) -> None:
        """Empty every cell and return head to 0; deltas stay. Mutates.

        Args:
            data: taken for True: this generation always zeroes the bytes.
        """
        _ = data
        self.cells.reset()
        self.head = self.used = 0
        self.lost = {}
        self._clear_bytes()
        self.emit(Cleared(n_cells=len(self.cells), data=True, cache=self.name))

    def seq_rm(self, seq: int, p0: int, p1: int) -> bool:
        """Remove `seq` if its position is in [p0, p1); below 0 every sequence. Mutates.

        A state cannot lose a part of what it took in, so a range that begins or ends inside is refused. Removing
        all sequences leaves their tails (quirk recurrent-dangling-tail).

        Returns:
            False if it was refused.
        """
        seq = max(_int32("seq", seq), -1)
        p0, p1 = _range(p0, p1)
        refusal = self._refusal(seq, p0, p1)
        if refusal:
            pos = int(self.cells.pos[self.cells.tail[seq]]) if refusal == "partial" else -1
            self.emit(SeqRmRefused(seq=seq, p0=p0, p1=p1, why=refusal, pos=pos, cache=self.name))
            return False
        tail_gone = seq >= 0 and self._drop_tail(seq, p0, p1)
        self._remove(seq, p0, p1, tail_gone)
        self._quirk("recurrent-dangling-tail", "the cells are free, but tails still point there")
        return True

    def _refusal(self, seq: int, p0: int, p1: int) -> str:
        if seq < 0:
            return "" if p0 == p1 or (p0, p1) == (0, INT32_MAX) else "all"
        if not self._known(seq):
            return "unknown"
        tail = self.cells.tail[seq]
        pos = self.cells.pos[tail]
        return "partial" if tail >= 0 and (0 < p0 <= pos or 0 < p1 <= pos) else ""

    def _drop_tail(self, seq: int, p0: int, p1: int) -> bool:
        tail = self.cells.tail[seq]
        if tail < 0 or not p0 <= self.cells.pos[tail] < p1:
            return False
        self.cells.tail[seq] = NONE
        return True

    def _remove(self, seq: int, p0: int, p1: int, tail_gone: bool) -> None:
        cells = self.cells
        hit = (cells.pos >= p0) & (cells.pos < p1)
        if seq >= 0:
            hit &= cells.owned(seq)
            cells.seqs[hit] &= ~seq_bit(seq)
        else:
            cells.seqs[hit] = 0
        freed = hit & (cells.seqs == 0)
        cells.free(freed)
        self._count_freed(int(np.count_nonzero(freed)))
        before = self._head_to_first(freed)
        self.emit(
            StateRemoved(
                seq=seq,
                p0=p0,
                p1=p1,
                cells=np.flatnonzero(hit),
                freed=np.flatnonzero(freed),
                head_before=before,
                head=self.head,
                tail_gone=tail_gone,
                cache=self.name,
            )
        )

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        """Make `dst` share the state of `src`, whatever the range; what `dst` had is left first. Mutates.

        A sequence copied onto itself therefore loses its state (quirk recurrent-self-copy).
        """
        src, dst = _int32("src", src), _int32("dst", dst)
        p0, p1 = _range(p0, p1)
        if not self._known(src) or not self._known(dst):
            self._nothing("seq_cp", f"a sequence id is not from 0 to {len(self.cells) - 1}")
            return
        tail = self.cells.tail
        if tail[dst] >= 0:
            left = tail[dst]
            if self._leave(dst):
                self._mark_left(left)
            if src == dst:
                detail = f"sequence {dst} left its state to share that of sequence {src}, which has none any more"
                self.emit(QuirkSeen(quirk="recurrent-self-copy", detail=detail, cache=self.name))
        tail[dst] = tail[src]
        shared = tail[[src]][tail[[src]] >= 0].astype(np.intp)
        self.cells.seqs[shared] |= seq_bit(dst)
        self.emit(StateShared(src=src, dst=dst, p0=p0, p1=p1, cells=shared, had=NO_CELLS, cache=self.name))

    def _mark_left(self, cell: int) -> None:
        """What a copy onto a sequence does to the cell that it freed. Mutates."""
        self.cells.delta[cell] = -1

    def seq_keep(self, seq: int) -> None:
        """Free every cell that `seq` does not own and forget all other tails. Mutates.

        Head may go back to the first cell that `seq` does not own.
        """
        seq = _int32("seq", seq)
        cells = self.cells
        kept = self._owned(seq)
        narrowed = kept & (np.bitwise_count(cells.seqs) > 1)
        freed = ~kept & ((cells.pos >= 0) | (cells.seqs != 0))
        self._count_freed(int(np.count_nonzero(~kept & (cells.pos >= 0))))
        cells.tail[np.arange(len(cells)) != seq] = NONE
        cells.free(~kept)
        if kept.any():
            cells.seqs[kept] = seq_bit(seq)
        self.lost = {lost: quirk for lost, quirk in self.lost.items() if lost == seq}
        self._tell_kept(seq, freed, narrowed, self._head_to_first(~kept))

    def _tell_kept(self, seq: int, freed: Mask, narrowed: Mask, head_before: int) -> None:
        gone, less = np.flatnonzero(freed), np.flatnonzero(narrowed)
        self.emit(SeqKept(seq=seq, freed=gone, narrowed=less, head_before=head_before, head=self.head, cache=self.name))

    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        """Add `shift` to the position of `seq` if it is in [p0, p1); the state itself stays. Mutates.

        A position may fall below 0; other owners of the state move along.
        """
        seq, shift = _int32("seq", seq), _int32("shift", shift)
        p0, p1 = _range(p0, p1)
        where = self._in_range("seq_add", seq, p0, p1)
        if not len(where):
            return
        self.cells.pos[where] += np.int32(shift)
        self.emit(
            StateShifted(
                seq=seq,
                p0=p0,
                p1=p1,
                shift=shift,
                cells=where,
                freed=NO_CELLS,
                head_before=self.head,
                head=self.head,
                pos=int(self.cells.pos[where[0]]),
                cache=self.name,
            )
        )

    def seq_div(self, seq: int, p0: int, p1: int, d: int) -> None:
        """Divide the position of `seq` by `d`, towards 0, if it is in [p0, p1); the state itself stays. Mutates.

        Raises:
            CacheAbort: `d` is 0.
        """
        seq, d = _int32("seq", seq), _int32("d", d)
        p0, p1 = _range(p0, p1)
        where = self._in_range("seq_div", seq, p0, p1)
        if not len(where):
            return
        if d == 0:
            raise CacheAbort("d is 0; allowed: any other number (upstream divides by 0)")
        quotient = int(self.cells.pos[where[0]]) // abs(d)
        pos = quotient if d > 0 else -quotient
        self.cells.pos[where] = pos
        self.emit(StateDivided(seq=seq, p0=p0, p1=p1, d=d, cells=where, pos=pos, cache=self.name))

    def _in_range(self, call: str, seq: int, p0: int, p1: int) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
        """The cell of `seq` if its position is in [p0, p1), else none and an event that says why."""
        cells = self.cells
        tail = int(cells.tail[seq]) if self._known(seq) else NONE
        if p0 == p1:
            self._nothing(call, "the range is empty")
        elif tail < 0 or not cells.has_seq(tail, seq):
            self._nothing(call, f"sequence {seq} has no state")
        elif not p0 <= cells.pos[tail] < p1:
            self._nothing(call, f"sequence {seq} is at position {cells.pos[tail]}, outside the range")
        else:
            return np.array([tail], np.intp)
        return NO_CELLS

    def _nothing(self, call: str, why: str) -> None:
        self.emit(NothingToDo(call=call, why=why, cache=self.name))


def _int32(field: str, value: int) -> int:
    return check_int(field, value, INT32_MIN, INT32_MAX)


def _range(p0: int, p1: int) -> tuple[int, int]:
    return pos_range(_int32("p0", p0), _int32("p1", p1))
