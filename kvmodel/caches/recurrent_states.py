"""What the recurrent caches of both generations have in common: their state, and how it shows itself."""

import numpy as np
from numpy.typing import NDArray

from kvmodel.caches.recurrent_cells import RecurrentCells
from kvmodel.caches.recurrent_edits import RecurrentEdits
from kvmodel.caches.recurrent_params import RecurrentParams
from kvmodel.caches.recurrent_slots import RecurrentSlots
from kvmodel.events import Emit


class RecurrentStates(RecurrentEdits, RecurrentSlots):
    """Cells, head and the cache's own counters.

    Attributes:
        params: what the cache was made of.
        cells: the states.
        head: cell from which the next search looks for an empty one; first cell of the slot after a search.
        used: the cache's own counter of cells with an owner.
        n: length of the newest slot.
        lost: sequences whose tail points at a cell they do not own, with the quirk that did it.
        name: how events call this cache.
    """

    def __init__(self, params: RecurrentParams, cells: RecurrentCells, emit: Emit, name: str) -> None:
        self.params = params
        self.cells = cells
        self.head = 0
        self.used = 0
        self.n = 0
        self.lost = {}
        self.emit = emit
        self.name = name

    @property
    def arrays(self) -> dict[str, NDArray[np.int32] | NDArray[np.uint64]]:
        """The live arrays by name, one entry a cell: pos, delta, src, tail, seqs, token."""
        return self.cells.arrays

    @property
    def counters(self) -> dict[str, int | float | bool]:
        """The figures beside the cells."""
        return {
            "head": self.head,
            "used": self.used,
            "used_max_p1": self.cell_max,
            "n_kv": self.n,
            "has_shift": False,
            "fragmentation": self.fragmentation,
        }

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.params.kv_size

    @property
    def cell_max(self) -> int:
        """Index of the last cell with a position and an owner, plus 1; 0 if none."""
        return self.cells.cell_max

    @property
    def fragmentation(self) -> float:
        """Share of the slot's cells that is unused, 0 below 128 cells, as float32."""
        return float(np.float32(1) - np.float32(self.used) / np.float32(self.n)) if self.n >= 128 else 0.0
