"""The recurrent memory of mid-2025: one cell holds the whole state of one sequence.

Counterpart of `llama_memory_recurrent` in llama-memory-recurrent.cpp. Against the cache of January 2025 it prepares a
whole batch before it stores any of it, swaps states without losing a tail, leaves head where the slot is, and answers
-1 where there is no position.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import MemoryStatus, Placed, PreparedBatch, PreparedUpdate, UpdateInfo
from kvmodel.caches.memory_cells import MemoryCells
from kvmodel.caches.recurrent_params import RecurrentParams
from kvmodel.caches.recurrent_slots import StateSlot
from kvmodel.caches.recurrent_states import RecurrentStates
from kvmodel.caches.recurrent_tails import UINT32
from kvmodel.errors import check_int
from kvmodel.events import BatchSplit, Cleared, Emit, Event, QuirkSeen, silent
from kvmodel.events_recurrent import SourcesTaken, StatesStored
from kvmodel.limits import INT32_MAX, MAX_BATCH
from kvmodel.split import split_equal


class RecurrentMemory(RecurrentStates):
    """Cells, head and counters."""

    cells: MemoryCells

    def __init__(self, params: RecurrentParams, emit: Emit = silent, name: str = "kv") -> None:
        super().__init__(params, MemoryCells(params.kv_size), emit, name)

    @property
    def parts(self) -> tuple["RecurrentMemory"]:
        """The caches to show: this one."""
        return (self,)

    @property
    def can_shift(self) -> bool:
        """Always: only the position of a state would change (`get_can_shift`)."""
        return True

    def clear(self, data: bool = True) -> None:
        """Empty every cell and return head to 0. Mutates.

        Args:
            data: zero the bytes too.
        """
        self.cells.reset()
        self.head = self.used = 0
        self.lost = {}
        if data:
            self._clear_bytes()
        self.emit(Cleared(n_cells=len(self.cells), data=data, cache=self.name))

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        """Make `dst` share the state of `src`, whatever the range; what `dst` had is left first. Mutates."""
        if src == dst:
            self._nothing("seq_cp", "source and target are one sequence")
            return
        super().seq_cp(src, dst, p0, p1)

    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        """Add `shift` to the position of `seq` if it is in [p0, p1); the state itself stays. Mutates."""
        if shift == 0:
            self._nothing("seq_add", "the shift is 0")
            return
        super().seq_add(seq, p0, p1, shift)

    def seq_div(self, seq: int, p0: int, p1: int, d: int) -> None:
        """Divide the position of `seq` by `d`, towards 0, if it is in [p0, p1); the state itself stays. Mutates."""
        if d == 1:
            self._nothing("seq_div", "the divisor is 1")
            return
        super().seq_div(seq, p0, p1, d)

    def seq_pos_min(self, seq: int) -> int:
        """Position of `seq`, -1 if it has none; the largest of all positions counts as none."""
        pos = int(self.cells.pos[self._owned(seq)].min(initial=INT32_MAX))
        return -1 if pos == INT32_MAX else pos

    def seq_pos_max(self, seq: int) -> int:
        """Position of `seq`, -1 if it has none or one below 0."""
        return int(self.cells.pos[self._owned(seq)].max(initial=-1))

    def init_full(self) -> Placed:
        """The view of a worst-case graph: all cells."""
        return Placed(0, self.size)

    def init_batch(self, batch: Batch, n_ubatch: int) -> PreparedBatch:
        """Split a batch into equally long sequence sets and try whether all of it finds its place.

        Changes nothing but `n` and `rs_z`, which the next ubatch sets anew.

        Raises:
            CacheAbort: where upstream asserts.
        """
        check_int("n_ubatch", n_ubatch, 1, MAX_BATCH)
        ubatches = split_equal(batch, n_ubatch)
        sizes = tuple(map(len, ubatches))
        self.emit(BatchSplit(how="equal", sizes=sizes, n_ubatch=n_ubatch, cache=self.name))
        if max(sizes) > n_ubatch:
            detail = f"the equal split made a ubatch of {max(sizes)} tokens, more than n_ubatch = {n_ubatch}"
            self.emit(QuirkSeen(quirk="equal-split-overflow", detail=detail, cache=self.name))
        heads = self.prepare(ubatches)
        if heads is None:
            return PreparedBatch(MemoryStatus.FAILED_PREPARE)
        return PreparedBatch(MemoryStatus.SUCCESS, tuple(ubatches), {self.name: heads})

    def prepare(self, ubatches: Sequence[UBatch]) -> tuple[int, ...] | None:
        """Store ubatches on trial and take them back; return their first cells, None if one finds no place."""
        cells, used, head, lost = self.cells.copies(), self.used, self.head, dict(self.lost)
        heads, emit = [], self.emit
        told: list[Event] = []
        self.emit = told.append
        try:
            for number, ubatch in enumerate(ubatches):
                told.clear()
                if not self.find_slot(ubatch, number).found:
                    break
                heads.append(self.head)
        finally:
            self.emit = emit
        self.cells.put_back(cells)
        self.used, self.head, self.lost = used, head, lost
        if len(heads) == len(ubatches):
            return tuple(heads)
        for event in told:
            self.emit(event)
        return None

    def find_slot(self, ubatch: UBatch, number: int = 0, *, in_decode: bool = False) -> StateSlot:
        """Bring the states of a ubatch together and settle where each comes from. Mutates.

        Args:
            ubatch: equally many tokens of every sequence set.
            number: ordinal for the events.
            in_decode: makes no difference here: head beyond used + 2 x sets always returns to 0.

        Raises:
            CacheAbort: a plain ubatch, or a state that upstream asserts to be there is not.
            ParamError: the ubatch is empty.
        """
        _ = in_decode
        head_before = self.head
        if self.head > (self.used + 2 * ubatch.n_seqs) % UINT32:
            self.head = 0
        slot = self._search(ubatch, number, head_before)
        if slot.cell >= 0:
            self._stage()
        return slot

    def _stage(self) -> None:
        begins = self.cells.src[self.head : self.head + self.n] < 0
        s_copy = self.cells.stage(self.head, self.n)
        self.emit(SourcesTaken(begin=self.head, s_mask=~begins, s_copy=s_copy, cache=self.name))

    def _mark_left(self, cell: int) -> None:
        """Nothing: there are no deltas here."""

    def apply(self, prepared: PreparedBatch, i: int) -> dict[str, Placed]:
        """Store ubatch `i` of a prepared batch; attached tensors hold what its computation begins with. Mutates."""
        ubatch, before = prepared.ubatches[i], Placed(self.head, self.n)
        self.find_slot(ubatch, i)
        self._take_states()
        self.emit(
            StatesStored(
                ubatch=i,
                begin=self.head,
                end=self.head + ubatch.n_seqs,
                stored=ubatch,
                head_before=before.head,
                head=self.head,
                n_kv_before=before.n_kv,
                n_kv=self.n,
                cache=self.name,
            )
        )
        return {self.name: Placed(self.head, self.n)}

    def _take_states(self) -> None:
        """Zero the spare state, then copy every state of the slot from its source (`build_rs` in llama-graph.cpp)."""
        if self.tensors is None:
            return
        if self.cells.rs_z >= 0:
            for array in (*self.tensors.k, *self.tensors.v):
                array[self.cells.rs_z] = 0
        slot = np.arange(self.head, self.head + self.n)
        self.tensors.move(self.cells.src0[slot].astype(np.intp), slot)

    def init_update(self, *, optimize: bool, thold: float, n_max_nodes: int) -> PreparedUpdate:
        """Nothing is ever pending here. Changes nothing."""
        _ = optimize, thold, n_max_nodes
        return PreparedUpdate({self.name: UpdateInfo(np.float32(0), do_shift=False, do_defrag=False)})

    def update(self, prepared: PreparedUpdate) -> dict[str, NDArray[np.int32]]:
        """Carry out a planned update, which is none. Changes nothing."""
        _ = prepared
        return {}
