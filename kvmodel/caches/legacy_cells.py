"""The cells of the older transformer cache: storage without policy.

Counterpart of the `cells` vector of `llama_kv_cache` (January 2025). A cell is free for new tokens when its position
is below 0 and "empty" when it has no owner; the two can differ.
"""

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import EMPTY, Index, Mask, seq_bit
from kvmodel.slots import Blocked


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
    def cell_max(self) -> int:
        """Index of the last cell with a position and an owner, plus 1; 0 if none (`llama_kv_cache_cell_max`)."""
        where = np.flatnonzero((self.pos >= 0) & (self.seqs != 0))
        return int(where[-1]) + 1 if len(where) else 0

    def reset(self) -> None:
        """Empty every cell; deltas stay (quirk stale-delta). Mutates."""
        self.pos[:] = EMPTY
        self.seqs[:] = 0
        self.token[:] = -1

    def owned(self, seq: int) -> Mask:
        """Cells that `seq` owns, bool [n]."""
        return (self.seqs & seq_bit(seq)) != 0

    def within(self, p0: int, p1: int) -> Mask:
        """Cells with p0 <= position < p1, bool [n]."""
        return (self.pos >= p0) & (self.pos < p1)

    def block_reasons(self) -> NDArray[np.uint8]:
        """Why each cell cannot be used: 0 when its position is below 0, else occupied; uint8 [n]."""
        return np.where(self.pos >= 0, np.uint8(Blocked.OCCUPIED), np.uint8(0))

    def put(self, begin: int, pos: NDArray[np.int32], seqs: NDArray[np.uint64], token: NDArray[np.int32]) -> int:
        """Fill cells from `begin` on; owners already there stay, and so does the delta. Mutates.

        Returns:
            how many of the cells had a delta left.
        """
        part = slice(begin, begin + len(pos))
        self.pos[part] = pos
        self.seqs[part] |= seqs
        self.token[part] = token
        return int(np.count_nonzero(self.delta[part]))

    def free(self, cells: Mask) -> None:
        """Take position and owners from the cells; deltas stay. Mutates."""
        self.pos[cells] = EMPTY
        self.seqs[cells] = 0
        self.token[cells] = -1

    def mv(self, src: Index, dst: Index) -> None:
        """Move whole cells, deltas included; a moved-from cell is as new. Mutates."""
        for array, default in ((self.pos, EMPTY), (self.delta, 0), (self.seqs, 0), (self.token, -1)):
            array[dst] = array[src]
            array[src] = default

    def check_integrity(self) -> list[str]:
        """Every broken invariant, as sentences; empty when all hold."""
        checks = [
            ((self.pos < EMPTY).any(), "a position is below -1"),
            (((self.pos < 0) & (self.seqs != 0)).any(), "a free cell has an owner"),
        ]
        return [sentence for broken, sentence in checks if broken]
