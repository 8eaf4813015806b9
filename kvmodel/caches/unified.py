"""The unified cache: one cell a token, any sequence in any cell.

Counterpart of `llama_kv_cache_unified` in llama-kv-cache-unified.cpp (mid-2025).
"""

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import Batch
from kvmodel.caches.base import MemoryStatus, Placed, PreparedBatch
from kvmodel.caches.unified_edits import UnifiedEdits
from kvmodel.caches.unified_store import UnifiedStores
from kvmodel.caches.unified_update import UnifiedUpdates
from kvmodel.cells import Cells
from kvmodel.errors import check_int
from kvmodel.events import BatchSplit, Emit, silent
from kvmodel.show import Card, Shown, cells_card
from kvmodel.split import split_simple
from kvmodel.types import CacheParams


class UnifiedCache(UnifiedStores, UnifiedEdits, UnifiedUpdates, Shown):
    """Cells, head and the operations on them.

    Attributes:
        params: what the cache was made of.
        cells: the state.
        head: cell at which the next search starts.
        name: how events call this cache: `kv`, or `base` and `swa` in a pair.
    """

    def __init__(self, params: CacheParams, emit: Emit = silent, name: str = "kv") -> None:
        self.params = params
        self.cells = Cells(params.kv_size)
        self.head = 0
        self.emit = emit
        self.name = name

    @property
    def parts(self) -> tuple["UnifiedCache"]:
        """The caches to show: this one."""
        return (self,)

    @property
    def arrays(self) -> dict[str, NDArray[np.int32] | NDArray[np.uint64]]:
        """The live arrays by name, one entry a cell: pos, shift, seqs, token."""
        cells = self.cells
        return {"pos": cells.pos, "shift": cells.shift, "seqs": cells.seqs, "token": cells.token}

    @property
    def counters(self) -> dict[str, int | float | bool]:
        """The figures beside the cells: head, used, used_max_p1, n_kv, has_shift, fragmentation."""
        return {
            "head": self.head,
            "used": self.cells.used,
            "used_max_p1": self.cells.used_max_p1,
            "n_kv": self.n_kv,
            "has_shift": self.has_shift,
            "fragmentation": float(self.fragmentation),
        }

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.params.kv_size

    @property
    def can_shift(self) -> bool:
        """A unified cache always says that it can (`get_can_shift`)."""
        return True

    def card(self) -> Card:
        """The cells and their sequences, to be shown in Jupyter or printed."""
        size = self.size_k_bytes + self.size_v_bytes
        return cells_card(f"Unified cache {self.name}", self.arrays, self.counters, self._span, size)

    def _span(self, seq: int) -> tuple[int, int]:
        return self.seq_pos_min(seq), self.seq_pos_max(seq)

    def init_full(self) -> Placed:
        """The view of a worst-case graph: all cells, slot at 0."""
        return Placed(0, self.size)

    def init_batch(self, batch: Batch, n_ubatch: int) -> PreparedBatch:
        """Split plainly and find slots for all ubatches, or for none."""
        ubatches = split_simple(batch, check_int("n_ubatch", n_ubatch, 1, 2**31 - 1))
        self.emit(BatchSplit(how="simple", sizes=tuple(map(len, ubatches)), n_ubatch=n_ubatch, cache=self.name))
        heads = self.prepare(ubatches)
        if heads is None:
            return PreparedBatch(MemoryStatus.FAILED_PREPARE)
        return PreparedBatch(MemoryStatus.SUCCESS, tuple(ubatches), {self.name: heads})

    def apply(self, prepared: PreparedBatch, i: int) -> dict[str, Placed]:
        """Store ubatch `i` at the slot that `init_batch` found. Mutates."""
        head = prepared.heads[self.name][i]
        self.apply_ubatch(head, prepared.ubatches[i], number=i)
        return {self.name: Placed(head, self.n_kv)}
