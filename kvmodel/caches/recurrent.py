"""The recurrent cache: one cell holds the whole state of one sequence, however many tokens it took in.

Counterpart of `llama_kv_cache` with its `recurrent` flag, and of what a decode does with it (January 2025).
"""

from typing import NoReturn

import numpy as np

from kvmodel.batch import UBatch
from kvmodel.caches.base import Placed
from kvmodel.caches.recurrent_cells import RecurrentCells, StateInputs
from kvmodel.caches.recurrent_params import RecurrentParams
from kvmodel.caches.recurrent_states import RecurrentStates
from kvmodel.errors import CacheAbort
from kvmodel.events import Emit, NothingToDo, silent
from kvmodel.events_recurrent import SlotTakenBack, SourcesTaken, StatesStored


class RecurrentCache(RecurrentStates):
    """Cells, head and the cache's own counters.

    Attributes:
        do_defrag, has_shift: always False: a state cannot be shifted, and there is nothing to defragment.
    """

    cells: RecurrentCells

    def __init__(self, params: RecurrentParams, emit: Emit = silent, name: str = "kv") -> None:
        super().__init__(params, RecurrentCells(params.kv_size), emit, name)
        self.has_shift = False
        self.do_defrag = False

    @property
    def parts(self) -> tuple["RecurrentCache"]:
        """The caches to show: this one."""
        return (self,)

    @property
    def counters(self) -> dict[str, int | float | bool]:
        """The figures beside the cells."""
        return super().counters | {"do_defrag": self.do_defrag}

    @property
    def max_pos(self) -> int:
        """Largest position of any cell, -1 if all are empty (`llama_kv_cache::max_pos`)."""
        return int(self.cells.pos.max(initial=-1))

    @property
    def split(self) -> str:
        """A decode takes equally many tokens of every sequence set."""
        return "equal"

    @property
    def can_shift(self) -> bool:
        """Never: a state holds no keys that could be rotated."""
        return False

    def set_inputs(self) -> StateInputs:
        """The graph inputs of the slot: which states start from zero, and where the others come from. Mutates.

        Afterwards each state of the slot is its own source (`llama_set_inputs`). Attached tensors hold what the
        computation begins with: copies of the sources, and zeros (`llm_build_copy_mask_state`).
        """
        inputs = self.cells.take_sources(self.head, self.n)
        self._take_states(inputs)
        self.emit(SourcesTaken(begin=self.head, s_mask=inputs.s_mask, s_copy=inputs.s_copy, cache=self.name))
        return inputs

    def _take_states(self, inputs: StateInputs) -> None:
        if self.tensors is None:
            return
        slot = np.arange(self.head, self.head + self.n)
        self.tensors.move(inputs.s_copy.astype(np.intp), slot)
        for array in (*self.tensors.k, *self.tensors.v):
            array[slot[~inputs.s_mask]] = 0

    def finish(self, ubatch: UBatch, number: int, before: Placed, *, advance: bool = True) -> None:
        """What follows a computation: head moves on by the tokens, not the cells, or returns to 0. Mutates.

        Args:
            ubatch: what `find_slot` stored at head.
            number: its ordinal for the event.
            before: head and n before it.
            advance: False if the computation failed.
        """
        begin = self.head
        if advance:
            self.head = begin + len(ubatch) if begin + len(ubatch) < self.size else 0
        self.emit(
            StatesStored(
                ubatch=number,
                begin=begin,
                end=begin + ubatch.n_seqs,
                stored=ubatch,
                head_before=before.head,
                head=self.head,
                n_kv_before=before.n_kv,
                n_kv=self.n,
                cache=self.name,
            )
        )

    def restore(self, before: Placed, slots: list[tuple[int, int]]) -> None:
        """Roll a failed decode back: head and n; states cannot be, so every sequence is removed. Mutates.

        Args:
            before: head and n before the decode.
            slots: the slots it filled; without any there is nothing to roll back.
        """
        if not slots:
            return
        head_before, self.head, self.n = self.head, before.head, before.n_kv
        self.emit(SlotTakenBack(head_before=head_before, head=self.head, n=self.n, cache=self.name))
        self.seq_rm(-1, -1, -1)

    def defrag(self) -> None:
        """Ignored: states have no holes between them that would cost anything."""
        self.emit(NothingToDo(call="defrag", why="a recurrent cache has nothing to defragment", cache=self.name))

    def apply_shift(self) -> NoReturn:
        """No shift is ever pending here.

        Raises:
            CacheAbort: always.
        """
        raise CacheAbort("a recurrent cache holds no keys that could be rotated; upstream aborts")

    def apply_defrag(self, n_max_nodes: int) -> NoReturn:
        """No defrag is ever requested here.

        Raises:
            CacheAbort: always.
        """
        raise CacheAbort(f"a recurrent cache cannot be defragmented, whatever the budget ({n_max_nodes} nodes)")
