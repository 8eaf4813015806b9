"""The position range of every sequence, recounted from the cells only when someone asks.

Upstream keeps a counted map of positions for each sequence (`seq_pos` in llama-kv-cells.h). A position that was counted
without a cell of its own (quirk cp-double-count) is never taken back before `reset`; of all such echoes only the
smallest and the largest can show, so these two are kept.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kvmodel.limits import INT32_MAX, MAX_SEQ

NO_ECHO = INT32_MAX + 1


def seq_bit(seq: int) -> np.uint64:
    """The one-element set {seq} as uint64."""
    return np.uint64(1) << np.uint64(seq)


def union(seqs: NDArray[np.uint64]) -> int:
    """All sequences of some cells as one bit set."""
    return int(np.bitwise_or.reduce(seqs, initial=np.uint64(0)))


def bits_of(seqs: int) -> NDArray[np.bool_]:
    """The bit set `seqs` as bool [64]."""
    as_bytes = np.frombuffer(seqs.to_bytes(8, "little"), np.uint8)
    return np.unpackbits(as_bytes, bitorder="little").astype(np.bool_)


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
        self._first = np.full(MAX_SEQ, NO_ECHO, np.int64)
        self._last = np.full(MAX_SEQ, -1, np.int64)
        self._stale = np.zeros(MAX_SEQ, np.bool_)
        self._echo_first = np.full(MAX_SEQ, NO_ECHO, np.int64)
        self._echo_last = np.full(MAX_SEQ, -1, np.int64)

    def min(self, seq: int) -> int:
        """Smallest position of `seq`, -1 if it has none. Echoes count."""
        self._refresh(seq)
        low = min(int(self._first[seq]), int(self._echo_first[seq]))
        return low if low < NO_ECHO else -1

    def max(self, seq: int) -> int:
        """Largest position of `seq`, -1 if it has none. Echoes count."""
        self._refresh(seq)
        return max(int(self._last[seq]), int(self._echo_last[seq]))

    def recount(self, seq: int) -> tuple[int, int]:
        """What `min` and `max` must be, from the cells alone and the echoes."""
        pos = self._positions(seq)
        low = int(pos.min(initial=INT32_MAX)) if len(pos) else NO_ECHO
        low = min(low, int(self._echo_first[seq]))
        return (low if low < NO_ECHO else -1), max(int(pos.max(initial=-1)), int(self._echo_last[seq]))

    def _refresh(self, seq: int) -> None:
        if self._stale[seq]:
            pos = self._positions(seq)
            self._first[seq], self._last[seq] = (int(pos.min()), int(pos.max())) if len(pos) else (NO_ECHO, -1)
            self._stale[seq] = False

    def touch(self, seqs: int) -> None:
        """Mark every sequence in the bit set `seqs` for a recount. Mutates."""
        self._stale |= bits_of(seqs)

    def widen(self, pos: NDArray[np.int32], seqs: NDArray[np.uint64]) -> None:
        """Take in new cells with positions `pos` and owners `seqs` without a recount. Mutates."""
        for seq in np.flatnonzero(bits_of(union(seqs)) & ~self._stale).tolist():
            mine = pos[(seqs & seq_bit(seq)) != 0]
            self._first[seq] = min(int(self._first[seq]), int(mine.min()))
            self._last[seq] = max(int(self._last[seq]), int(mine.max()))

    def echo(self, seq: int, pos: NDArray[np.int32]) -> bool:
        """Count positions once more than there are cells; return whether the range of echoes grew. Mutates."""
        if not len(pos):
            return False
        before = self._echo_first[seq], self._echo_last[seq]
        self._echo_first[seq] = min(int(before[0]), int(pos.min()))
        self._echo_last[seq] = max(int(before[1]), int(pos.max()))
        return before != (self._echo_first[seq], self._echo_last[seq])

    def keep_only(self, seq: int) -> None:
        """Every other sequence has lost its last cell. Mutates."""
        others = np.arange(MAX_SEQ) != seq
        self._first[others], self._last[others], self._stale[others] = NO_ECHO, -1, False
