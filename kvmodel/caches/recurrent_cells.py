"""The cells of a recurrent cache: storage without policy.

Counterpart of `llama_kv_cell` as a recurrent model uses it (January 2025). Cell i means two things: the place of a
state, and, by its tail alone, the place where sequence i keeps its own.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import EMPTY, seq_bit
from kvmodel.limits import MAX_SEQ
from kvmodel.words import ranges

Int32 = NDArray[np.int32]
Mask = NDArray[np.bool_]

NONE = -1
"""No tail, no source, no token."""


@dataclass(frozen=True, eq=False)
class StateInputs:
    """The graph inputs of a ubatch, one entry a cell of the slot.

    Attributes:
        s_mask: bool [n], False where the state starts from zero.
        s_copy: int32 [n], the cell whose state is taken.
    """

    s_mask: Mask
    s_copy: Int32


class RecurrentCells:
    """States, their owners, and where each sequence keeps its own.

    Attributes:
        pos: int32 [n], position of the last token that the state has taken in, -1 for none.
        delta: int32 [n], 0; -1 once a copy onto a sequence freed the cell, and from then on.
        src: int32 [n], cell that the next computation takes this state from, -1 to start from zero.
        tail: int32 [n], entry i: the cell of sequence i, -1 for none.
        seqs: uint64 [n], bit s set when sequence s owns the cell.
        token: int32 [n], serial number of the last token taken in, -1 for none; an annotation of this model.
    """

    def __init__(self, n: int) -> None:
        self.pos: Int32 = np.full(n, EMPTY, np.int32)
        self.delta: Int32 = np.zeros(n, np.int32)
        self.src: Int32 = np.full(n, NONE, np.int32)
        self.tail: Int32 = np.full(n, NONE, np.int32)
        self.seqs: NDArray[np.uint64] = np.zeros(n, np.uint64)
        self.token: Int32 = np.full(n, NONE, np.int32)

    def __len__(self) -> int:
        return len(self.pos)

    @property
    def arrays(self) -> dict[str, Int32 | NDArray[np.uint64]]:
        """The live arrays by name."""
        names = ("pos", "delta", "src", "tail", "seqs", "token")
        return {name: getattr(self, name) for name in names}

    @property
    def n_owned(self) -> int:
        """Number of cells with an owner."""
        return int(np.count_nonzero(self.seqs))

    @property
    def cell_max(self) -> int:
        """Index of the last cell with a position and an owner, plus 1; 0 if none (`llama_kv_cache_cell_max`)."""
        where = np.flatnonzero((self.pos >= 0) & (self.seqs != 0))
        return int(where[-1]) + 1 if len(where) else 0

    def owned(self, seq: int) -> Mask:
        """Cells that `seq` owns, bool [n]."""
        mask: Mask = (self.seqs & seq_bit(seq)) != 0
        return mask

    def owners(self, cell: int) -> tuple[int, ...]:
        """Sequences of one cell, ascending."""
        bits = int(self.seqs[cell])
        return tuple(s for s in range(MAX_SEQ) if bits >> s & 1)

    def has_seq(self, cell: int, seq: int) -> bool:
        """Whether `seq` owns the cell."""
        return bool(self.seqs[cell] & seq_bit(seq))

    def alone(self, cell: int, seq: int) -> bool:
        """Whether `seq` is the only owner of the cell."""
        return bool(self.seqs[cell] == seq_bit(seq))

    def next_empty(self, start: int) -> int:
        """The first cell without owner from `start` on, once around; -1 if there is none."""
        empty = np.flatnonzero(self.seqs == 0)
        return int(empty[np.searchsorted(empty, start) % len(empty)]) if len(empty) else NONE

    def reset(self) -> None:
        """Empty every cell and forget every tail; deltas stay. Mutates."""
        self.free(np.ones(len(self), np.bool_))
        self.tail[:] = NONE

    def free(self, cells: Mask) -> None:
        """Take state, source and owners from the cells; deltas and tails stay. Mutates."""
        self.pos[cells] = EMPTY
        self.src[cells] = NONE
        self.seqs[cells] = 0
        self.token[cells] = NONE

    def untag(self, seq: int) -> bool:
        """Make `seq` leave the cell that its tail points at; the cell is freed when no owner is left. Mutates.

        Returns:
            whether the cell is free now.
        """
        cell = int(self.tail[seq])
        self.tail[seq] = NONE
        self.seqs[cell] &= ~seq_bit(seq)
        if self.seqs[cell]:
            return False
        self.pos[cell], self.src[cell], self.token[cell] = EMPTY, NONE, NONE
        return True

    def branch(self, seq: int, cell: int) -> None:
        """Give `seq` an empty cell that starts with what its shared one holds; the tail is left alone. Mutates."""
        shared = self.tail[seq]
        for array in (self.pos, self.src, self.token):
            array[cell] = array[shared]
        self.seqs[shared] &= ~seq_bit(seq)
        self.seqs[cell] |= seq_bit(seq)

    def swap(self, a: int, b: int) -> None:
        """Exchange the contents of two cells; the tails of their owners follow, deltas stay. Mutates."""
        for array in (self.pos, self.src, self.seqs, self.token):
            array[[a, b]] = array[[b, a]]
        for cell in (b, a):
            self.tail[list(self.owners(cell))] = cell

    def take_sources(self, begin: int, n: int) -> StateInputs:
        """Hand the sources of a slot to the graph; afterwards every state there is its own source. Mutates."""
        own = np.arange(begin, begin + n, dtype=np.int32)
        src = self.src[begin : begin + n]
        inputs = StateInputs(src >= 0, np.where((src >= 0) & (src < len(self)), src, own))
        src[:] = own
        return inputs

    def astray(self) -> list[int]:
        """Sequences whose tail points at a cell that they do not own."""
        seqs = np.flatnonzero(self.tail[:MAX_SEQ] >= 0)
        bits = np.uint64(1) << seqs.astype(np.uint64)
        lost: list[int] = seqs[(self.seqs[self.tail[seqs]] & bits) == 0].tolist()
        return lost

    def check_integrity(self) -> list[str]:
        """Every broken invariant, as sentences; empty when all hold. The first two are upstream's debug checks."""
        broken = self._tail_faults()
        empty = self.seqs == 0
        checks = [
            (self.pos[empty] != EMPTY, "a cell without owner has a position"),
            (self.token[empty] != NONE, "a cell without owner has a token"),
            ((self.src < NONE) | (self.src >= len(self)), "a source is no cell"),
        ]
        return broken + [sentence for found, sentence in checks if found.any()]

    def _tail_faults(self) -> list[str]:
        known = min(len(self), MAX_SEQ)
        cells = np.flatnonzero(self.seqs)
        owned = (self.seqs[cells, None] >> np.arange(known, dtype=np.uint64) & np.uint64(1)) != 0
        found = np.full(len(self), NONE, np.int32)
        found[:known] = np.where(owned, cells[:, None], NONE).max(axis=0, initial=NONE)
        twice = np.flatnonzero(np.count_nonzero(owned, axis=0) > 1).tolist()
        wrong = np.flatnonzero(found != self.tail).tolist()
        return [f"sequence {s} owns several cells: {ranges(cells[owned[:, s]])}" for s in twice] + [
            f"the tail of sequence {s} is {self.tail[s]} instead of {found[s]}" for s in wrong
        ]
