"""Sequence edits of the unified cache: remove, copy, keep, add, divide, clear."""

from kvmodel.caches.base import pos_range
from kvmodel.caches.data import DataPlane
from kvmodel.cells import Cells, Index
from kvmodel.errors import CacheAbort, check_int
from kvmodel.events import (
    Cleared,
    Emit,
    NothingToDo,
    QuirkSeen,
    SeqAdded,
    SeqCopied,
    SeqDivided,
    SeqKept,
    SeqRemoved,
)
from kvmodel.limits import INT32_MAX, MAX_SEQ

INT32_MIN = -INT32_MAX - 1


class UnifiedEdits(DataPlane):
    """The calls that change owners and positions without storing tokens."""

    cells: Cells
    head: int
    emit: Emit
    name: str

    def seq_pos_min(self, seq: int) -> int:
        """Smallest position of `seq`, -1 if it has none."""
        return self.cells.seq_pos_min(_seq(seq))

    def seq_pos_max(self, seq: int) -> int:
        """Largest position of `seq`, -1 if it has none."""
        return self.cells.seq_pos_max(_seq(seq))

    def clear(self, data: bool = True) -> None:
        """Empty every cell, return head to 0 and, with `data`, zero the bytes. Mutates."""
        self.cells.reset()
        self.head = 0
        if data:
            self._clear_bytes()
        self.emit(Cleared(n_cells=len(self.cells), data=data, cache=self.name))

    def seq_rm(self, seq: int, p0: int, p1: int) -> bool:
        """Remove `seq` from positions [p0, p1); -1 empties the cells whoever owns them. Always True. Mutates."""
        seq = check_int("seq", seq, INT32_MIN, MAX_SEQ - 1)
        p0, p1 = _range(p0, p1)
        hit = self.cells.select(p0, p1, max(seq, -1))
        if seq >= 0:
            freed = self.cells.seq_rm(hit, seq)
        else:
            freed = hit
            self.cells.free(hit)
        before = self._head_to_first(freed)
        self.emit(
            SeqRemoved(
                seq=max(seq, -1),
                p0=p0,
                p1=p1,
                cells=hit,
                freed=freed,
                head_before=before,
                head=self.head,
                cache=self.name,
            )
        )
        return True

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        """Make `dst` an owner of the cells of `src` in [p0, p1); no bytes are copied. Mutates."""
        src, dst = _seq(src, "src"), _seq(dst, "dst")
        if src == dst:
            self._nothing("seq_cp", "source and target are one sequence")
            return
        p0, p1 = _range(p0, p1)
        hit = self.cells.select(p0, p1, src)
        had = self.cells.seq_add(hit, dst)
        self.emit(SeqCopied(src=src, dst=dst, p0=p0, p1=p1, cells=hit, had=had, cache=self.name))
        if len(had):
            detail = f"{len(had)} cells had sequence {dst} already; their positions are counted twice until clear"
            self.emit(QuirkSeen(quirk="cp-double-count", detail=detail, cache=self.name))

    def seq_keep(self, seq: int) -> None:
        """Free every cell that `seq` does not own; it becomes the only owner of the others. Mutates."""
        freed, narrowed = self.cells.seq_keep(_seq(seq))
        before = self._head_to_first(freed)
        self.emit(
            SeqKept(
                seq=seq,
                freed=freed,
                narrowed=narrowed,
                head_before=before,
                head=self.head,
                cache=self.name,
            )
        )

    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        """Add `shift` to the positions of `seq` in [p0, p1); what falls below 0 is freed. Mutates.

        Head goes to the first freed cell, or to 0 if none was freed.
        """
        seq, shift = _seq(seq), check_int("shift", shift, INT32_MIN, INT32_MAX)
        p0, p1 = _range(p0, p1)
        if shift == 0 or p0 == p1:
            self._nothing("seq_add", "the shift is 0" if shift == 0 else "the range is empty")
            return
        hit = self.cells.select(p0, p1, seq)
        freed = self.cells.pos_add(hit, shift)
        before = self.head
        self.head = int(freed[0]) if len(freed) else 0
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
        """Divide the positions of `seq` in [p0, p1) by `d`, towards 0. Mutates.

        Raises:
            CacheAbort: `d` is below 1 and there are cells to divide. Upstream ends its process for 0 and leaves
                negative positions, which it then takes for empty cells, for less.
        """
        seq, d = _seq(seq), check_int("d", d, INT32_MIN, INT32_MAX)
        p0, p1 = _range(p0, p1)
        if d == 1 or p0 == p1:
            self._nothing("seq_div", "the divisor is 1" if d == 1 else "the range is empty")
            return
        hit = self.cells.select(p0, p1, seq)
        if d < 1 and len(hit):
            raise CacheAbort(f"d is {d}; allowed: 1 or more (upstream divides by 0 or stores negative positions)")
        corrected = self.rotation is not None and self.rotation.shift_sign == "corrected"
        self.cells.pos_div(hit, d, corrected=corrected)
        self.emit(SeqDivided(seq=seq, p0=p0, p1=p1, d=d, cells=hit, cache=self.name))
        if len(hit) and not corrected:
            detail = "the pending shift is old minus new, so the next update rotates K away from its new position"
            self.emit(QuirkSeen(quirk="div-shift-sign", detail=detail, cache=self.name))

    def _head_to_first(self, freed: Index) -> int:
        """Move head back to the first freed cell if that lies before it; return the old head."""
        before = self.head
        if len(freed):
            self.head = min(before, int(freed[0]))
        return before

    def _nothing(self, call: str, why: str) -> None:
        self.emit(NothingToDo(call=call, why=why, cache=self.name))


def _seq(seq: int, field: str = "seq") -> int:
    return check_int(field, seq, 0, MAX_SEQ - 1)


def _range(p0: int, p1: int) -> tuple[int, int]:
    return pos_range(check_int("p0", p0, INT32_MIN, INT32_MAX), check_int("p1", p1, INT32_MIN, INT32_MAX))
