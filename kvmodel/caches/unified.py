"""The unified cache: one cell a token, any sequence in any cell.

Counterpart of `llama_kv_cache_unified` in llama-kv-cache-unified.cpp (mid-2025).
"""

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import MemoryStatus, Placed, PreparedBatch
from kvmodel.caches.sizes import buffer_bytes, tensor_bytes
from kvmodel.caches.unified_edits import UnifiedEdits
from kvmodel.caches.unified_update import UnifiedUpdates
from kvmodel.cells import EMPTY, Cells, SavedCells
from kvmodel.errors import check_int
from kvmodel.events import (
    BatchSplit,
    CellsOverwritten,
    Emit,
    PositionsPurged,
    PrepareFailed,
    QuirkSeen,
    SlotSearched,
    UBatchStored,
    silent,
)
from kvmodel.slots import SlotSearch, find_slot
from kvmodel.split import split_simple
from kvmodel.types import CacheParams, pad


class UnifiedCache(UnifiedEdits, UnifiedUpdates):
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
    def n_kv(self) -> int:
        """Leading cells that attention has to look at now (`get_n_kv`)."""
        return min(self.size, max(self.params.n_pad, pad(self.cells.used_max_p1, self.params.n_pad)))

    @property
    def can_shift(self) -> bool:
        """A unified cache always says that it can (`get_can_shift`)."""
        return True

    def find_slot(self, n_tokens: int) -> SlotSearch:
        """Search cells for `n_tokens` tokens, whoever they belong to. Changes nothing."""
        return find_slot(self.cells, self.head, n_tokens, self.params.swa_type, self.params.n_swa)

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

    def prepare(self, ubatches: list[UBatch]) -> tuple[int, ...] | None:
        """Find a slot for each ubatch as if those before it were stored already.

        Slots are filled on trial and rolled back in reverse. What the trial purged elsewhere stays purged (quirk
        purge-leak), and shifts of overwritten cells stay dropped (quirk swa-shift-lost).

        Returns:
            first cell of every slot; None if one of the ubatches has none.
        """
        heads: list[int] = []
        undo: list[tuple[int, SavedCells]] = []
        for i, ubatch in enumerate(ubatches):
            search = self.find_slot(len(ubatch))
            self.emit(SlotSearched(search=search, ubatch=i, cache=self.name))
            if not search.found:
                break
            heads.append(search.cell)
            undo.append((self.head, self.cells.save(search.cell, len(ubatch))))
            self.apply_ubatch(search.cell, ubatch, number=i, trial=True)
        for head, saved in reversed(undo):
            self.cells.restore(saved)
            self.head = head
        if len(heads) == len(ubatches):
            return tuple(heads)
        n = len(heads)
        self.emit(PrepareFailed(ubatch=n, n_ubatches=len(ubatches), n_placed=n, cache=self.name))
        return None

    def apply_ubatch(self, begin: int, ubatch: UBatch, *, number: int = 0, trial: bool = False) -> None:
        """Store a ubatch at cells [begin, begin + n); overwritten positions are purged up to the newest. Mutates.

        Args:
            begin: first cell of a slot that `find_slot` returned.
            ubatch: tokens in cell order.
            number: ordinal for the events.
            trial: the store of `prepare`, of which only lasting effects are reported.
        """
        head_before, n_kv_before = self.head, self.n_kv
        newest_lost = self._overwrite(begin, len(ubatch), trial)
        self.cells.put(begin, ubatch.pos, ubatch.seq_set, ubatch.token)
        self._count_repeats(ubatch, trial)
        for seq, newest in newest_lost:
            self._purge(seq, newest, trial)
        self.head = begin + len(ubatch)
        if not trial:
            self.emit(
                UBatchStored(
                    ubatch=number,
                    begin=begin,
                    end=self.head,
                    stored=ubatch,
                    head_before=head_before,
                    head=self.head,
                    n_kv_before=n_kv_before,
                    n_kv=self.n_kv,
                    cache=self.name,
                )
            )

    def _overwrite(self, begin: int, n: int, trial: bool) -> list[tuple[int, int]]:
        """Free the used cells of a slot; return (sequence, newest position lost) ascending."""
        hit = np.zeros(min(begin + n, self.cells.used_max_p1), np.bool_)
        hit[begin:] = self.cells.pos[begin : len(hit)] != EMPTY
        where = np.flatnonzero(hit)
        if not len(where):
            return []
        seqs = np.log2(self.cells.seqs[where].astype(np.float64)).astype(np.int32)
        pos = self.cells.pos[where].copy()
        dropped = self.cells.shift[where].any()
        self.cells.free(hit)
        if not trial:
            self.emit(CellsOverwritten(cells=where, seqs=seqs, pos=pos, cache=self.name))
        elif dropped:
            detail = "the trial store dropped the pending shift of cells that stay as they are"
            self.emit(QuirkSeen(quirk="swa-shift-lost", detail=detail, cache=self.name))
        return [(seq, int(pos[seqs == seq].max())) for seq in np.unique(seqs).tolist()]

    def _count_repeats(self, ubatch: UBatch, trial: bool) -> None:
        """Count the positions of tokens that name one sequence twice once more, as upstream's counters do."""
        if ubatch.seq_id.shape[1] < 2:
            return
        ids = np.sort(ubatch.seq_id, axis=1)
        rows, cols = np.nonzero((ids[:, 1:] == ids[:, :-1]) & (ids[:, 1:] >= 0))
        for seq in np.unique(ids[rows, cols]).tolist():
            self.cells.echo(seq, ubatch.pos[rows[ids[rows, cols] == seq]])
            if not trial:
                detail = f"a token names sequence {seq} twice, so its position is counted twice"
                self.emit(QuirkSeen(quirk="cp-double-count", detail=detail, cache=self.name))

    def _purge(self, seq: int, newest: int, trial: bool) -> None:
        """Drop what `seq` still has up to `newest`, so that its positions stay without a gap."""
        oldest = self.cells.seq_pos_min(seq)
        if oldest > newest:
            return
        lost = np.flatnonzero(self.cells.select(oldest, newest + 1, seq)) if oldest >= 0 else np.empty(0, np.intp)
        emit, self.emit = self.emit, silent
        self.seq_rm(seq, oldest, newest + 1)
        self.emit = emit
        self.emit(PositionsPurged(seq=seq, p0=oldest, p1=newest + 1, cells=lost, trial=trial, cache=self.name))

    @property
    def size_k_bytes(self) -> int:
        """Bytes of all K tensors."""
        return sum(tensor_bytes(self.params, "k"))

    @property
    def size_v_bytes(self) -> int:
        """Bytes of all V tensors, transposed or not."""
        return sum(tensor_bytes(self.params, "v"))

    @property
    def total_size(self) -> int:
        """Bytes of the CPU buffer: every tensor rounded up to the alignment."""
        return buffer_bytes(self.params)
