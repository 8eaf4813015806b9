"""Sets of sequences as bits, and the position range of every sequence, recounted only when someone asks.

Upstream keeps a counted map of positions for each sequence (`seq_pos` in llama-kv-cells.h). A position that was counted
without a cell of its own (quirk cp-double-count) is never taken back before `reset`; of all such echoes only the
smallest and the largest can show, so these two are kept.
"""

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kvmodel.limits import INT32_MAX, MAX_SEQ

Seqs = NDArray[np.uint64]

NO_POS = INT32_MAX + 1
"""Larger than any position: the smallest position of nothing."""


def seq_bit(seq: int) -> np.uint64:
    """The one-element set {seq} as uint64."""
    return np.uint64(1) << np.uint64(seq)


def owns(seqs: Seqs, seq: int) -> NDArray[np.bool_]:
    """Which of the cells with owners `seqs` (contiguous) `seq` owns; -1 owns none.

    Only the byte of each set that holds the sequence is read: the result and all in between stay small.
    """
    if seq < 0:
        return np.zeros(len(seqs), np.bool_)
    byte, bit = divmod(seq, 8)
    column = byte if sys.byteorder == "little" else 7 - byte
    return np.asarray((seqs.view(np.uint8)[column::8] & np.uint8(1 << bit)) != 0)


def union(seqs: Seqs) -> int:
    """All sequences of some cells as one bit set."""
    return int(np.bitwise_or.reduce(seqs, initial=np.uint64(0)))


def members(seqs: int) -> list[int]:
    """The sequences of a bit set, ascending."""
    return [seq for seq in range(seqs.bit_length()) if seqs >> seq & 1]


class SeqSpans:
    """Smallest and largest position of every sequence.

    Args:
        positions: gives the positions of the cells that a sequence owns, int32.
    """

    def __init__(self, positions: Callable[[int], NDArray[np.int32]]) -> None:
        self._positions = positions
        self.reset()

    def reset(self) -> None:
        """No sequence has a position, and echoes are forgotten. Mutates."""
        self._first, self._last = [NO_POS] * MAX_SEQ, [-1] * MAX_SEQ
        self._echo_first, self._echo_last = [NO_POS] * MAX_SEQ, [-1] * MAX_SEQ
        self._stale = 0

    def min(self, seq: int) -> int:
        """Smallest position of `seq`, -1 if it has none. Echoes count."""
        self._refresh(seq)
        low = min(self._first[seq], self._echo_first[seq])
        return low if low < NO_POS else -1

    def max(self, seq: int) -> int:
        """Largest position of `seq`, -1 if it has none. Echoes count."""
        self._refresh(seq)
        return max(self._last[seq], self._echo_last[seq])

    def table(self) -> NDArray[np.int32]:
        """Smallest and largest position of every sequence, -1 for none, int32 [64, 2]. Echoes count."""
        for seq in members(self._stale):
            self._refresh(seq)
        ends = np.array([self._first, self._echo_first, self._last, self._echo_last])
        low = ends[:2].min(axis=0)
        spans = np.empty((MAX_SEQ, 2), np.int32)
        spans[:, 0], spans[:, 1] = np.where(low < NO_POS, low, -1), ends[2:].max(axis=0)
        return spans

    def recount(self, seq: int) -> tuple[int, int]:
        """What `min` and `max` must be, from the cells and the echoes."""
        first, last = _ends(self._positions(seq))
        low = min(first, self._echo_first[seq])
        return (low if low < NO_POS else -1), max(last, self._echo_last[seq])

    def _refresh(self, seq: int) -> None:
        if self._stale >> seq & 1:
            self._first[seq], self._last[seq] = _ends(self._positions(seq))
            self._stale ^= 1 << seq

    def touch(self, seqs: int) -> None:
        """Mark every sequence in the bit set `seqs` for a recount. Mutates."""
        self._stale |= seqs

    def widen(self, pos: NDArray[np.int32], seqs: Seqs) -> None:
        """Take in new cells with positions `pos` and owners `seqs` without a recount. Mutates."""
        for seq in members(union(seqs) & ~self._stale):
            first, last = _ends(pos[owns(seqs, seq)])
            self._first[seq], self._last[seq] = min(self._first[seq], first), max(self._last[seq], last)

    def echo(self, seq: int, pos: NDArray[np.int32]) -> bool:
        """Count positions once more than there are cells; return whether the range of echoes grew. Mutates."""
        before = self._echo_first[seq], self._echo_last[seq]
        first, last = _ends(pos)
        self._echo_first[seq], self._echo_last[seq] = min(before[0], first), max(before[1], last)
        return before != (self._echo_first[seq], self._echo_last[seq])

    def keep_only(self, seq: int) -> None:
        """Every other sequence has lost its last cell. Mutates."""
        first, last = self._first[seq], self._last[seq]
        self._first, self._last = [NO_POS] * MAX_SEQ, [-1] * MAX_SEQ
        self._first[seq], self._last[seq] = first, last
        self._stale &= 1 << seq


def _ends(pos: NDArray[np.int32]) -> tuple[int, int]:
    """Smallest and largest of some positions."""
    return (int(pos.min()), int(pos.max())) if len(pos) else (NO_POS, -1)
