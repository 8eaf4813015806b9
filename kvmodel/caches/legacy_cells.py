"""The cells of the older transformer cache: storage without policy.

Counterpart of the `cells` vector of `llama_kv_cache` (January 2025). A cell is free for new tokens when its position
is below 0 and "empty" when it has no owner; the two can differ.
"""

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import EMPTY, seq_bit
from kvmodel.errors import ParamError
from kvmodel.limits import MAX_SEQ
from kvmodel.slots import Blocked

Index = NDArray[np.intp]


class LegacyCells:
    """Positions, deltas and owners of every cell.

    Attributes:
        pos: int32 [n], position, below 0 for a free cell.
        delta: int32 [n], accumulated shift; survives the token it belonged to (quirk stale-delta).
        seqs: uint64 [n], bit s set when sequence s owns the cell.
        token: int32 [n], serial number of the token, -1 for none; an annotation of this model.
    """

    def __init__(self, n: int) -> None:
        self.pos: NDArray[np.int32] = np.full(n, EMPTY, np.int32)
        self.delta: NDArray[np.int32] = np.zeros(n, np.int32)
        self.seqs: NDArray[np.uint64] = np.zeros(n, np.uint64)
        self.token: NDArray[np.int32] = np.full(n, -1, np.int32)

    def __len__(self) -> int:
        return len(self.pos)

    @property
    def arrays(self) -> dict[str, NDArray[np.int32] | NDArray[np.uint64]]:
        """The live arrays by name."""
        return {"pos": self.pos, "delta": self.delta, "seqs": self.seqs, "token": self.token}

    @property
    def n_filled(self) -> int:
        """Number of cells with a position."""
        return int(np.count_nonzero(self.pos >= 0))

    @property
    def cell_max(self) -> int:
        """Index of the last cell with a position and an owner, plus 1; 0 if none (`llama_kv_cache_cell_max`)."""
        held = ((self.pos >= 0) & (self.seqs != 0))[::-1]
        return len(held) - int(held.argmax()) if held.any() else 0

    def owned(self, seq: int) -> Index:
        """Cells that `seq` owns; an id that no set can hold owns none."""
        return np.flatnonzero(self.seqs & set_of(seq))

    def select(self, p0: int, p1: int, seq: int | None = None) -> Index:
        """Cells with p0 <= position < p1 that `seq` owns (None: any owner or none)."""
        cells = np.arange(len(self)) if seq is None else self.owned(seq)
        pos = self.pos[cells]
        return cells[(pos >= p0) & (pos < p1)]

    def block_reasons(self, begin: int, end: int) -> NDArray[np.uint8]:
        """Why each of the cells [begin, end) cannot be used: 0 when its position is below 0, else occupied; uint8."""
        return np.where(self.pos[begin:end] >= 0, np.uint8(Blocked.OCCUPIED), np.uint8(0))

    def put(self, begin: int, pos: NDArray[np.int32], seqs: NDArray[np.uint64], token: NDArray[np.int32]) -> int:
        """Fill free cells from `begin` on; their deltas stay. Mutates.

        Returns:
            how many of the cells had a delta left.
        """
        part = slice(begin, begin + len(pos))
        self.pos[part], self.seqs[part], self.token[part] = pos, seqs, token
        return int(np.count_nonzero(self.delta[part]))

    def free(self, cells: Index | slice) -> None:
        """Take position and owners from the cells; deltas stay (quirk stale-delta). Mutates."""
        self.pos[cells], self.seqs[cells], self.token[cells] = EMPTY, 0, -1

    def mv(self, src: Index, dst: Index) -> None:
        """Move whole cells, deltas included; a moved-from cell is as new. Mutates."""
        for array in (self.pos, self.delta, self.seqs, self.token):
            array[dst] = array[src]
        self.free(src)
        self.delta[src] = 0

    def check_integrity(self) -> list[str]:
        """Every broken invariant, as sentences; empty when all hold."""
        checks = [
            ((self.pos < EMPTY).any(), "a position is below -1"),
            (((self.pos < 0) & (self.seqs != 0)).any(), "a free cell has an owner"),
            (((self.pos < 0) & (self.token != -1)).any(), "a free cell has a token"),
        ]
        return [sentence for broken, sentence in checks if broken]


def set_of(seq: int) -> np.uint64:
    """The set {seq}; an empty one for an id outside 0..63, which no cell can have."""
    return seq_bit(seq) if 0 <= seq < MAX_SEQ else np.uint64(0)


def check_owners(seq_id: NDArray[np.int32], n_seq_id: NDArray[np.int32]) -> None:
    """Refuse ids that a set of this model cannot hold; upstream takes any.

    Args:
        seq_id: int32 [n, m], owners of every token, filled up.
        n_seq_id: int32 [n], how many of them count.
    """
    counted = np.arange(seq_id.shape[1]) < n_seq_id[:, None]
    bad = counted & ((seq_id < 0) | (seq_id >= MAX_SEQ))
    if bad.any():
        raise ParamError("seq", int(seq_id[bad][0]), f"sequence ids from 0 to {MAX_SEQ - 1}")
