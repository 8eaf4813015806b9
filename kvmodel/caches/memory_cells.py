"""The cells of the recurrent memory of mid-2025: where each state comes from is settled as soon as it has its slot.

Counterpart of `llama_memory_recurrent::mem_cell`, and of the part of `find_slot` that stages sources.
"""

import numpy as np
from numpy.typing import NDArray

from kvmodel.caches.recurrent_cells import NONE, Int32, RecurrentCells
from kvmodel.errors import CacheAbort


class MemoryCells(RecurrentCells):
    """States, their owners, and where each sequence keeps its own.

    Attributes:
        src0: int32 [n], what the graph of the newest slot takes each state from; -1 before there was one.
        rs_z: cell that the graph sets to zero first, for states that begin there; -1 for none.
        delta: always 0 here.
    """

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.src0: Int32 = np.full(n, NONE, np.int32)
        self.rs_z = NONE

    @property
    def arrays(self) -> dict[str, Int32 | NDArray[np.uint64]]:
        """The live arrays by name."""
        return super().arrays | {"src0": self.src0}

    def swap(self, a: int, b: int) -> None:
        """Exchange the contents of two cells; every tail that pointed at one points at the other. Mutates."""
        for array in (self.pos, self.src, self.seqs, self.token):
            array[[a, b]] = array[[b, a]]
        at_a, at_b = self.tail == a, self.tail == b
        self.tail[at_a], self.tail[at_b] = b, a

    def stage(self, begin: int, n: int) -> Int32:
        """Settle the sources of a slot; afterwards every state there is its own source. Mutates.

        A state without a source takes the cell that nobody has as source, which the graph zeroes first.

        Returns:
            int32 [n], the sources.

        Raises:
            CacheAbort: there is no such cell; upstream asserts that there is.
        """
        part = slice(begin, begin + n)
        src = self.src[part].copy()
        referred = np.bincount(self.src[self.src >= 0], minlength=len(self))
        spare = begin + np.flatnonzero(referred[part] == 0)
        self.rs_z = int(spare[0]) if len(spare) else NONE
        fresh = src < 0
        if fresh.any() and self.rs_z < 0:
            raise CacheAbort("a state begins at zero, but every cell of the slot is a source; upstream asserts one")
        src[fresh] = self.rs_z
        self.src0[part] = src
        self.src[part] = np.arange(begin, begin + len(src), dtype=np.int32)
        return src

    def copies(self) -> dict[str, NDArray[np.int32] | NDArray[np.uint64]]:
        """Copies of all arrays, for `put_back`."""
        return {name: array.copy() for name, array in self.arrays.items()}

    def put_back(self, copies: dict[str, NDArray[np.int32] | NDArray[np.uint64]]) -> None:
        """Make all cells what they were; `rs_z` stays. Mutates."""
        for name, array in self.arrays.items():
            array[:] = copies[name]
