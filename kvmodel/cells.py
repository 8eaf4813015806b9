"""The cells of a cache as arrays: storage and its counters, without any policy.

Whole-array counterpart of `llama_kv_cells_unified` in llama-kv-cells.h. Edits take the cells they change as ascending
index arrays; every non-empty cell lies below `used_max_p1`, so a selection looks at that prefix only.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvmodel.limits import MAX_SEQ
from kvmodel.spans import SeqSpans, owns, seq_bit, union

__all__ = ["EMPTY", "Cells", "Index", "SavedCells", "seq_bit", "single_owners"]

Index = NDArray[np.intp]

EMPTY = np.int32(-1)


@dataclass(frozen=True, eq=False)
class SavedCells:
    """Copy of a range of cells as `prepare` keeps it: no shift, as upstream (`llama_kv_cells_unified::cp`)."""

    begin: int
    pos: NDArray[np.int32]
    seqs: NDArray[np.uint64]
    token: NDArray[np.int32]

    @property
    def end(self) -> int:
        """One past the last cell."""
        return self.begin + len(self.pos)


class Cells:
    """Positions, pending shifts and owners of every cell.

    Attributes:
        pos: int32 [n], position, -1 for an empty cell.
        shift: int32 [n], position change not yet applied to K.
        seqs: uint64 [n], bit s set when sequence s owns the cell.
        token: int32 [n], serial number of the token whose K and V the cell holds, -1 for none.
            An annotation of this model: it moves with the cell and decides nothing.
        has_shift: some position changed since the last `reset_shift`.
        used: number of non-empty cells.
        spans: position range of every sequence.
    """

    def __init__(self, n: int) -> None:
        self.pos: NDArray[np.int32] = np.empty(n, np.int32)
        self.shift: NDArray[np.int32] = np.empty(n, np.int32)
        self.seqs: NDArray[np.uint64] = np.empty(n, np.uint64)
        self.token: NDArray[np.int32] = np.empty(n, np.int32)
        self.spans = SeqSpans(self._positions_of)
        self.reset()

    def __len__(self) -> int:
        return len(self.pos)

    def reset(self) -> None:
        """Empty every cell and forget all positions, echoes included. Mutates."""
        self.pos[:], self.shift[:], self.seqs[:], self.token[:] = EMPTY, 0, 0, -1
        self.has_shift = False
        self.used = 0
        self._max_p1 = 0
        self.spans.reset()

    def reset_shift(self) -> None:
        """Drop every pending shift. Mutates."""
        self.shift[:] = 0
        self.has_shift = False

    @property
    def used_max_p1(self) -> int:
        """Index of the last non-empty cell plus 1; 0 when all are empty."""
        if self._max_p1 and self.pos[self._max_p1 - 1] == EMPTY:
            filled = self.pos[: self._max_p1][::-1] != EMPTY
            self._max_p1 = self._max_p1 - int(filled.argmax()) if filled.any() else 0
        return self._max_p1

    def seq_pos_min(self, seq: int) -> int:
        """Smallest position of `seq`, -1 if it has none. Echoes count (quirk cp-double-count)."""
        return self.spans.min(seq)

    def seq_pos_max(self, seq: int) -> int:
        """Largest position of `seq`, -1 if it has none. Echoes count (quirk cp-double-count)."""
        return self.spans.max(seq)

    def _positions_of(self, seq: int) -> NDArray[np.int32]:
        n = self._max_p1
        owned: NDArray[np.int32] = self.pos[:n][owns(self.seqs[:n], seq)]
        return owned

    def select(self, p0: int, p1: int, seq: int = -1) -> Index:
        """Cells with p0 <= position < p1 that `seq` owns (-1: any owner or none)."""
        n, low = self.used_max_p1, max(p0, 0)
        pos = self.pos[:n]
        hit = (pos >= low) & (pos < p1)
        if seq >= 0:
            hit &= owns(self.seqs[:n], seq)
        return np.flatnonzero(hit)

    def free(self, cells: Index) -> None:
        """Empty non-empty cells, whoever owns them. Mutates."""
        self.spans.touch(union(self.seqs[_as_slice(cells)]))
        self._empty(cells)

    def _empty(self, cells: Index) -> None:
        part = _as_slice(cells)
        self.pos[part], self.seqs[part], self.token[part] = EMPTY, 0, -1
        if self.has_shift:
            self.shift[part] = 0
        self.used -= len(cells)

    def seq_rm(self, cells: Index, seq: int) -> Index:
        """Take `seq` out of cells that all have it; free those left without owner, and return them. Mutates."""
        part = _as_slice(cells)
        left = self.seqs[part] ^ seq_bit(seq)
        shared = left != 0
        freed = cells
        if shared.any():
            self.seqs[part] = left
            freed = cells[~shared]
        self._empty(freed)
        self.spans.touch(1 << seq)
        return freed

    def seq_add(self, cells: Index, seq: int) -> Index:
        """Make `seq` an owner of non-empty cells; return those that had it already. Mutates.

        Upstream counts the position of such a cell once more, and the surplus stays (quirk cp-double-count).
        """
        part = _as_slice(cells)
        bit = seq_bit(seq)
        had: Index = cells[(self.seqs[part] & bit) != 0]
        self.seqs[part] |= bit
        self.spans.echo(seq, self.pos[had])
        self.spans.touch(1 << seq)
        return had

    def seq_keep(self, seq: int) -> tuple[Index, Index]:
        """Leave `seq` as the only owner; free owned cells without it. Cells without any owner stay.

        Returns:
            freed cells, and kept cells that lost other owners. Mutates.
        """
        seqs, bit = self.seqs[: self.used_max_p1], seq_bit(seq)
        kept = owns(seqs, seq)
        freed = np.flatnonzero(~kept & (seqs != 0))
        narrowed = np.flatnonzero(kept & (seqs != bit))
        self.seqs[_as_slice(narrowed)] = bit
        self._empty(freed)
        self.spans.keep_only(seq)
        return freed, narrowed

    def pos_add(self, cells: Index, d: int) -> Index:
        """Add `d` to positions and shifts; free cells that fall below 0, and return them.

        int32 arithmetic wraps as upstream's does. Mutates; sets `has_shift` if there is any cell.
        """
        part = _as_slice(cells)
        self.pos[part] += np.int32(d)
        self.shift[part] += np.int32(d)
        self._moved(cells)
        freed: Index = cells[self.pos[part] < 0]
        self._empty(freed)
        return freed

    def pos_div(self, cells: Index, d: int, *, corrected: bool = False) -> None:
        """Divide positions by `d` >= 1, towards 0. Mutates; sets `has_shift` if there is any cell.

        The recorded shift is old minus new, as upstream (quirk div-shift-sign); new minus old if `corrected`.
        """
        part = _as_slice(cells)
        new = self.pos[part] // np.int32(d)
        away = self.pos[part] - new
        self.shift[part] += -away if corrected else away
        self.pos[part] = new
        self._moved(cells)

    def _moved(self, cells: Index) -> None:
        self.has_shift |= len(cells) > 0
        self.spans.touch(union(self.seqs[_as_slice(cells)]))

    def put(self, begin: int, pos: NDArray[np.int32], seqs: NDArray[np.uint64], token: NDArray[np.int32]) -> None:
        """Fill the empty cells from `begin` on. A shift left in them stays. Mutates."""
        end = begin + len(pos)
        self.pos[begin:end], self.seqs[begin:end], self.token[begin:end] = pos, seqs, token
        self.used += len(pos)
        self._reach(end)
        self.spans.widen(pos, seqs)

    def mv(self, src: Index, dst: Index) -> None:
        """Move cells `src` to the empty cells `dst` (disjoint index arrays of one length). Mutates."""
        for array in (self.pos, self.shift, self.seqs, self.token):
            array[dst] = array[src]
        self._empty(src)
        self.used += len(dst)
        self._reach(int(dst.max(initial=-1)) + 1)

    def _reach(self, end: int) -> None:
        self._max_p1 = max(self._max_p1, end)

    def save(self, begin: int, n: int) -> SavedCells:
        """Copy cells [begin, begin + n) without their shifts (`cp`). Changes nothing."""
        part = slice(begin, begin + n)
        return SavedCells(begin, self.pos[part].copy(), self.seqs[part].copy(), self.token[part].copy())

    def restore(self, saved: SavedCells) -> None:
        """Put saved cells back (`set`). Shifts stay as they are now (quirk swa-shift-lost). Mutates."""
        part = slice(saved.begin, saved.end)
        self.spans.touch(union(self.seqs[part]) | union(saved.seqs))
        self.used += int(np.count_nonzero(saved.pos != EMPTY)) - int(np.count_nonzero(self.pos[part] != EMPTY))
        self.pos[part], self.seqs[part], self.token[part] = saved.pos, saved.seqs, saved.token
        self._reach(saved.end)

    def check_integrity(self) -> list[str]:
        """Every broken invariant, as sentences; empty when all hold. Recounts from the arrays."""
        filled = self.pos != EMPTY
        where = np.flatnonzero(filled)
        checks: list[tuple[Any, str]] = [
            ((self.pos < EMPTY).any(), "a position is below -1"),
            ((self.seqs[~filled] != 0).any(), "an empty cell has an owner"),
            ((self.token[~filled] != -1).any(), "an empty cell holds a token"),
            (self.used != len(where), f"used is {self.used}, counted {len(where)}"),
            (self.used_max_p1 != (where[-1] + 1 if len(where) else 0), f"used_max_p1 is {self.used_max_p1}"),
            (not self.has_shift and self.shift.any(), "a shift is pending while has_shift is false"),
        ]
        for seq in range(MAX_SEQ):
            span, counted = (self.seq_pos_min(seq), self.seq_pos_max(seq)), self.spans.recount(seq)
            checks.append((span != counted, f"sequence {seq} spans {span}, counted {counted}"))
        return [sentence for broken, sentence in checks if broken]


def single_owners(seqs: NDArray[np.uint64]) -> NDArray[np.int32]:
    """The sequence of every one-element set, int32."""
    return np.frexp(seqs.astype(np.float64))[1].astype(np.int32) - np.int32(1)


def _as_slice(cells: Index) -> Index | slice:
    """Ascending indices as a slice if they are neighbours: it reads and writes much faster than an index array."""
    if len(cells) and cells[-1] - cells[0] == len(cells) - 1:
        return slice(int(cells[0]), int(cells[-1]) + 1)
    return cells
