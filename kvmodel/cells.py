"""The cells of a cache as arrays: storage and its counters, without any policy.

Whole-array counterpart of `llama_kv_cells_unified` in llama-kv-cells.h. Every non-empty cell lies below
`used_max_p1`, so edits look at that prefix only.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvmodel.limits import INT32_MAX, MAX_SEQ

Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

EMPTY = np.int32(-1)
NO_ECHO = INT32_MAX + 1


def seq_bit(seq: int) -> np.uint64:
    """The one-element set {seq} as uint64."""
    return np.uint64(1) << np.uint64(seq)


@dataclass(frozen=True, eq=False)
class SavedCells:
    """Copy of a range of cells as `prepare` keeps it: no shift, as upstream (`llama_kv_cells_unified::cp`)."""

    begin: int
    pos: NDArray[np.int32]
    seqs: NDArray[np.uint64]
    token: NDArray[np.int32]


class Cells:
    """Positions, pending shifts and owners of every cell.

    Attributes:
        pos: int32 [n], position, -1 for an empty cell.
        shift: int32 [n], position change not yet applied to K.
        seqs: uint64 [n], bit s set when sequence s owns the cell.
        token: int32 [n], serial number of the token whose K and V the cell holds, -1 for none.
            An annotation of this model: it moves with the cell and decides nothing.
        has_shift: some position changed since the last `reset_shift`.
    """

    def __init__(self, n: int) -> None:
        self.pos: NDArray[np.int32] = np.empty(n, np.int32)
        self.shift: NDArray[np.int32] = np.empty(n, np.int32)
        self.seqs: NDArray[np.uint64] = np.empty(n, np.uint64)
        self.token: NDArray[np.int32] = np.empty(n, np.int32)
        self.reset()

    def __len__(self) -> int:
        return len(self.pos)

    def reset(self) -> None:
        """Empty every cell and forget all positions, echoes included. Mutates."""
        self.pos[:] = EMPTY
        self.shift[:] = 0
        self.seqs[:] = 0
        self.token[:] = -1
        self.has_shift = False
        self._used = 0
        self._max_p1 = 0
        self._max_is_exact = True
        self._first = np.full(MAX_SEQ, -1, np.int64)
        self._last = np.full(MAX_SEQ, -1, np.int64)
        self._stale = np.zeros(MAX_SEQ, np.bool_)
        self._echo_first = np.full(MAX_SEQ, NO_ECHO, np.int64)
        self._echo_last = np.full(MAX_SEQ, -1, np.int64)

    def reset_shift(self) -> None:
        """Drop every pending shift. Mutates."""
        self.shift[:] = 0
        self.has_shift = False

    @property
    def used(self) -> int:
        """Number of non-empty cells."""
        return self._used

    @property
    def used_max_p1(self) -> int:
        """Index of the last non-empty cell plus 1; 0 when all are empty."""
        if not self._max_is_exact:
            filled = self.pos[: self._max_p1][::-1] != EMPTY
            self._max_p1 = self._max_p1 - int(filled.argmax()) if filled.any() else 0
            self._max_is_exact = True
        return self._max_p1

    def seq_pos_min(self, seq: int) -> int:
        """Smallest position of `seq`, -1 if it has none. Echoes count (quirk cp-double-count)."""
        self._refresh(seq)
        first = int(self._first[seq])
        low = min(first if first >= 0 else NO_ECHO, int(self._echo_first[seq]))
        return low if low < NO_ECHO else -1

    def seq_pos_max(self, seq: int) -> int:
        """Largest position of `seq`, -1 if it has none. Echoes count (quirk cp-double-count)."""
        self._refresh(seq)
        return max(int(self._last[seq]), int(self._echo_last[seq]))

    def _refresh(self, seq: int) -> None:
        if not self._stale[seq]:
            return
        n = self._max_p1
        pos = self.pos[:n][(self.seqs[:n] & seq_bit(seq)) != 0]
        self._first[seq], self._last[seq] = (int(pos.min()), int(pos.max())) if len(pos) else (-1, -1)
        self._stale[seq] = False

    def _touch(self, seqs: int) -> None:
        """Mark the position range of every sequence in the bit set `seqs` for recount."""
        self._stale |= bits_of(seqs)

    def select(self, p0: int, p1: int, seq: int = -1) -> Mask:
        """Cells with p0 <= position < p1 that `seq` owns (-1: any owner or none).

        Returns:
            bool [used_max_p1]: the mask covers the used prefix.
        """
        n = self.used_max_p1
        pos = self.pos[:n]
        low = max(p0, 0)
        if p1 <= low:
            return np.zeros(n, np.bool_)
        width = np.uint32(min(p1, INT32_MAX) - low)
        hit: Mask = (pos - np.int32(low)).view(np.uint32) < width
        if seq >= 0:
            hit &= (self.seqs[:n] & seq_bit(seq)).astype(np.bool_)
        return hit

    def free(self, cells: Mask) -> int:
        """Empty the non-empty cells of a prefix mask; return how many. Mutates."""
        n = len(cells)
        owners = int(np.bitwise_or.reduce(self.seqs[:n], where=cells, initial=np.uint64(0)))
        count = int(np.count_nonzero(cells))
        np.putmask(self.pos[:n], cells, EMPTY)
        np.putmask(self.shift[:n], cells, np.int32(0))
        np.putmask(self.seqs[:n], cells, np.uint64(0))
        np.putmask(self.token[:n], cells, np.int32(-1))
        self._used -= count
        self._max_is_exact = False
        self._touch(owners)
        return count

    def seq_rm(self, cells: Mask, seq: int) -> Mask:
        """Take `seq` out of the cells of a prefix mask (all must have it); free those left without owner.

        Returns:
            bool mask of the freed cells. Mutates.
        """
        n = len(cells)
        seqs = self.seqs[:n]
        seqs ^= cells * seq_bit(seq)
        self._touch(1 << seq)
        freed: Mask = cells & (seqs == 0)
        np.putmask(self.pos[:n], freed, EMPTY)
        np.putmask(self.shift[:n], freed, np.int32(0))
        np.putmask(self.token[:n], freed, np.int32(-1))
        self._used -= int(np.count_nonzero(freed))
        self._max_is_exact = False
        return freed

    def seq_add(self, cells: Mask, seq: int) -> Mask:
        """Make `seq` an owner of the cells of a prefix mask.

        Upstream counts a position once more when the sequence already owns the cell; the surplus stays
        until `reset`. Such an echo is kept as the smallest and largest position seen (cp-double-count).

        Returns:
            bool mask of the cells that had `seq` already. Mutates.
        """
        n = len(cells)
        bit = seq_bit(seq)
        seqs = self.seqs[:n]
        had: Mask = cells & (seqs & bit).astype(np.bool_)
        seqs |= cells * bit
        self._echo(seq, self.pos[:n][had])
        self._touch(1 << seq)
        return had

    def _echo(self, seq: int, pos: NDArray[np.int32]) -> None:
        if len(pos):
            self._echo_first[seq] = min(self._echo_first[seq], pos.min())
            self._echo_last[seq] = max(self._echo_last[seq], pos.max())

    def seq_keep(self, seq: int) -> tuple[Mask, Mask]:
        """Leave `seq` as the only owner; free owned cells without it. Cells without any owner stay.

        Returns:
            bool masks over the used prefix: freed cells, and kept cells that lost other owners. Mutates.
        """
        n = self.used_max_p1
        bit = seq_bit(seq)
        seqs = self.seqs[:n]
        kept: Mask = (seqs & bit).astype(np.bool_)
        others: Mask = seqs != 0
        narrowed: Mask = kept & (seqs != bit)
        freed: Mask = others & ~kept
        np.multiply(kept, bit, out=seqs)
        np.putmask(self.pos[:n], freed, EMPTY)
        np.putmask(self.shift[:n], freed, np.int32(0))
        np.putmask(self.token[:n], freed, np.int32(-1))
        self._used -= int(np.count_nonzero(freed))
        self._max_is_exact = False
        self._first[:seq] = self._first[seq + 1 :] = -1
        self._last[:seq] = self._last[seq + 1 :] = -1
        self._stale[:seq] = self._stale[seq + 1 :] = False
        return freed, narrowed

    def pos_add(self, cells: Mask, d: int) -> Mask:
        """Add `d` to positions and shifts of a prefix mask; cells that fall below 0 are freed.

        int32 arithmetic wraps as upstream's does.

        Returns:
            bool mask of the freed cells. Mutates; sets `has_shift` if any cell was hit.
        """
        n = len(cells)
        if not cells.any():
            return np.zeros(n, np.bool_)
        step = cells * np.int32(d)
        self.pos[:n] += step
        self.shift[:n] += step
        self.has_shift = True
        self._touch(int(np.bitwise_or.reduce(self.seqs[:n], where=cells, initial=np.uint64(0))))
        below: Mask = cells & (self.pos[:n] < 0)
        if below.any():
            self.free(below)
        return below

    def pos_div(self, cells: Mask, d: int) -> None:
        """Divide positions of a prefix mask by `d` >= 1, towards 0. Mutates; sets `has_shift`.

        The recorded shift is old minus new, as upstream (quirk div-shift-sign).
        """
        n = len(cells)
        if not cells.any():
            return
        old = self.pos[:n]
        new = np.where(cells, old // np.int32(d), old)
        self.shift[:n] += old - new
        self.pos[:n] = new
        self.has_shift = True
        self._touch(int(np.bitwise_or.reduce(self.seqs[:n], where=cells, initial=np.uint64(0))))

    def put(
        self,
        begin: int,
        pos: NDArray[np.int32],
        seqs: NDArray[np.uint64],
        token: NDArray[np.int32],
    ) -> None:
        """Fill the empty cells from `begin` on. A shift left in them stays. Mutates."""
        end = begin + len(pos)
        self.pos[begin:end] = pos
        self.seqs[begin:end] = seqs
        self.token[begin:end] = token
        self._used += len(pos)
        self._max_p1 = max(self.used_max_p1, end) if len(pos) else self.used_max_p1
        self._widen(pos, seqs)

    def _widen(self, pos: NDArray[np.int32], seqs: NDArray[np.uint64]) -> None:
        """Let the position ranges take in new cells without a recount."""
        for seq in np.flatnonzero(bits_of(int(np.bitwise_or.reduce(seqs, initial=np.uint64(0))))):
            if self._stale[seq]:
                continue
            mine = pos[(seqs & seq_bit(int(seq))) != 0]
            low, high = int(mine.min()), int(mine.max())
            self._first[seq] = low if self._first[seq] < 0 else min(int(self._first[seq]), low)
            self._last[seq] = max(int(self._last[seq]), high)

    def echo(self, seq: int, pos: NDArray[np.int32]) -> None:
        """Count positions of `seq` once more, as a token does that names a sequence twice. Mutates."""
        self._echo(seq, pos)

    def mv(self, src: Index, dst: Index) -> None:
        """Move cells `src` to the empty cells `dst` (disjoint index arrays of one length). Mutates."""
        for name, default in (("pos", EMPTY), ("shift", 0), ("seqs", 0), ("token", -1)):
            array = getattr(self, name)
            array[dst] = array[src]
            array[src] = default
        if len(dst):
            self._max_p1 = max(self._max_p1, int(dst.max()) + 1)
        self._max_is_exact = False

    def save(self, begin: int, n: int) -> SavedCells:
        """Copy cells [begin, begin + n) without their shifts (`cp`). Changes nothing."""
        part = slice(begin, begin + n)
        return SavedCells(begin, self.pos[part].copy(), self.seqs[part].copy(), self.token[part].copy())

    def restore(self, saved: SavedCells) -> None:
        """Put saved cells back (`set`). Shifts stay as they are now (quirk swa-shift-lost). Mutates."""
        part = slice(saved.begin, saved.begin + len(saved.pos))
        owners = np.bitwise_or.reduce(self.seqs[part], initial=np.uint64(0))
        owners |= np.bitwise_or.reduce(saved.seqs, initial=np.uint64(0))
        self._used += int(np.count_nonzero(saved.pos != EMPTY)) - int(np.count_nonzero(self.pos[part] != EMPTY))
        self.pos[part] = saved.pos
        self.seqs[part] = saved.seqs
        self.token[part] = saved.token
        self._max_p1 = max(self._max_p1, part.stop)
        self._max_is_exact = False
        self._touch(int(owners))

    def _count_span(self, seq: int) -> tuple[int, int]:
        pos = self.pos[(self.seqs & seq_bit(seq)) != 0].astype(np.int64)
        low = int(pos.min(initial=self._echo_first[seq]))
        return (low if low < NO_ECHO else -1), int(pos.max(initial=self._echo_last[seq]))

    def check_integrity(self) -> list[str]:
        """Every broken invariant, as sentences; empty when all hold. Recounts from the arrays."""
        filled = self.pos != EMPTY
        where = np.flatnonzero(filled)
        checks: list[tuple[Any, str]] = [
            ((self.pos < EMPTY).any(), "a position is below -1"),
            ((self.seqs[~filled] != 0).any(), "an empty cell has an owner"),
            (self.used != len(where), f"used is {self.used}, counted {len(where)}"),
            (self.used_max_p1 != (where[-1] + 1 if len(where) else 0), f"used_max_p1 is {self.used_max_p1}"),
            (not self.has_shift and self.shift.any(), "a shift is pending while has_shift is false"),
        ]
        for seq in range(MAX_SEQ):
            span, counted = (self.seq_pos_min(seq), self.seq_pos_max(seq)), self._count_span(seq)
            checks.append((span != counted, f"sequence {seq} spans {span}, counted {counted}"))
        return [sentence for broken, sentence in checks if broken]


def bits_of(seqs: int) -> Mask:
    """The bit set `seqs` as bool [64]."""
    as_bytes = np.frombuffer(seqs.to_bytes(8, "little"), np.uint8)
    return np.unpackbits(as_bytes, bitorder="little").astype(np.bool_)
