"""The older transformer cache: one search that moves head and stores at once.

Counterpart of `llama_kv_cache_find_slot` and `llama_kv_slot_restorer` in llama-kv-cache.cpp / .h and of
`llama_kv_cache_defrag_impl` in llama.cpp (January 2025).
"""

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.caches.base import Placed
from kvmodel.caches.legacy_cells import LegacyCells, check_owners
from kvmodel.caches.legacy_edits import LegacyEdits
from kvmodel.defrag import DefragPlan, move_budget, plan_defrag
from kvmodel.events import (
    DefragApplied,
    DefragPlanned,
    DefragRequested,
    Emit,
    QuirkSeen,
    ShiftApplied,
    SlotSearched,
    UBatchStored,
    silent,
)
from kvmodel.slots import SlotSearch, Start, search_run
from kvmodel.types import CacheParams, get_padding, pad
from kvmodel.words import count

MIN_VIEW = 128
"""Cells in view from which on fragmentation counts."""


class LegacyCache(LegacyEdits):
    """Cells, head and the cache's own counters.

    Attributes:
        params: what the cache was made of. `n_pad` and the window play no part here: see `padding`.
        cells: the state.
        head: cell at which the next search starts; a search moves it even if it fails.
        used: the cache's own counter of used cells.
        n: leading cells that attention looked at in the last decode.
        has_shift: a position change waits to be applied to K.
        do_defrag: a defrag is requested.
        name: how events call this cache.
    """

    def __init__(self, params: CacheParams, emit: Emit = silent, name: str = "kv") -> None:
        self.params = params
        self.cells = LegacyCells(params.kv_size)
        self.head = 0
        self.used = 0
        self.n = 0
        self.has_shift = False
        self.do_defrag = False
        self.emit = emit
        self.name = name

    @property
    def parts(self) -> tuple["LegacyCache"]:
        """The caches to show: this one."""
        return (self,)

    @property
    def arrays(self) -> dict[str, NDArray[np.int32] | NDArray[np.uint64]]:
        """The live arrays by name, one entry a cell: pos, delta, seqs, token."""
        return self.cells.arrays

    @property
    def counters(self) -> dict[str, int | float | bool]:
        """The figures beside the cells."""
        return {
            "head": self.head,
            "used": self.used,
            "used_max_p1": self.cell_max,
            "n_kv": self.n,
            "has_shift": self.has_shift,
            "do_defrag": self.do_defrag,
            "fragmentation": self.fragmentation,
        }

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.params.kv_size

    @property
    def padding(self) -> int:
        """Unit of `n`: 32 where V is transposed, else, with flash attention, 256 (`llama_kv_cache_get_padding`)."""
        return get_padding(flash_attn=not self.params.v_trans)

    @property
    def cell_max(self) -> int:
        """Index of the last cell with a position and an owner, plus 1; 0 if none."""
        return self.cells.cell_max

    @property
    def max_pos(self) -> int:
        """Largest position of any cell, -1 if all are empty (`llama_kv_cache::max_pos`)."""
        return int(self.cells.pos.max(initial=-1))

    @property
    def split(self) -> str:
        """A decode cuts in token order."""
        return "simple"

    @property
    def can_shift(self) -> bool:
        """Whether K can be rotated: not with MLA of deepseek2."""
        return self.params.arch != "deepseek2"

    @property
    def n_needed(self) -> int:
        """Leading cells that attention has to look at now."""
        return min(self.size, max(self.padding, pad(self.cell_max, self.padding)))

    @property
    def fragmentation(self) -> float:
        """Share of the `n` cells that is unused, 0 for a short view; a float32 value."""
        if self.n < MIN_VIEW:
            return 0.0
        return float(np.float32(1) - np.float32(self.used) / np.float32(self.n))

    def find_slot(self, ubatch: UBatch, number: int = 0, *, in_decode: bool = False) -> SlotSearch:
        """Seek cells for a ubatch and fill them. Mutates head even when it fails.

        Args:
            ubatch: tokens in cell order.
            number: ordinal for the events.
            in_decode: with what a decode does around it: head beyond used + 2 x tokens returns to 0 first, and n
                follows the filled cells.

        Returns:
            the search; `cell` is the first cell filled, -1 if there was no run.

        Raises:
            ParamError: a sequence id is outside 0..63; upstream takes any.
        """
        check_owners(ubatch.seq_id, ubatch.n_seq_id)
        search = self._search(len(ubatch), in_decode)
        self.emit(SlotSearched(search=search, ubatch=number, cache=self.name))
        if not search.found:
            return search
        stale = self.cells.put(search.cell, ubatch.pos, ubatch.seq_set, ubatch.token)
        self.used += len(ubatch)
        if stale:
            detail = f"{count(stale, 'new cell')} inherited the delta that a former token had left behind"
            self.emit(QuirkSeen(quirk="stale-delta", detail=detail, cache=self.name))
        if in_decode:
            self.n = self.n_needed
        return search

    def _search(self, n_tokens: int, in_decode: bool) -> SlotSearch:
        """Search and move head: to the slot, or behind the last cell that stopped it."""
        early = in_decode and self.head > self.used + 2 * n_tokens
        start = (0, Start.EARLY) if early else (self.head, Start.HEAD)
        search = search_run(self.cells.block_reasons, self.size, self.head, start, n_tokens)
        if search.found:
            self.head = search.cell
        else:
            self.head = start[0] if search.too_many else int(search.probe_end[-1]) + 1
        return search

    def set_inputs(self) -> None:
        """The inputs of a transformer graph change nothing in the cache."""

    def finish(self, ubatch: UBatch, number: int, before: Placed, *, advance: bool = True) -> None:
        """What follows a computation: head passes the slot, and at the end of the cache returns to 0. Mutates.

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
            UBatchStored(
                ubatch=number,
                begin=begin,
                end=begin + len(ubatch),
                stored=ubatch,
                head_before=before.head,
                head=self.head,
                n_kv_before=before.n_kv,
                n_kv=self.n,
                cache=self.name,
            )
        )

    def restore(self, before: Placed, slots: list[tuple[int, int]]) -> None:
        """Roll a failed decode back: head and n, and the slots by position (quirk restore-by-index). Mutates.

        Upstream hands the cell indices of each slot to `seq_rm`, which takes them for positions.
        """
        self.head, self.n = before.head, before.n_kv
        meant = np.concatenate([np.arange(*slot) for slot in slots])
        hit = np.concatenate([self.cells.select(*slot) for slot in slots])
        for begin, end in slots:
            self.seq_rm(-1, begin, end)
        if not np.array_equal(np.sort(meant), np.sort(hit)):
            detail = "the roll-back took the cell numbers of the slots for positions, so it removed other cells"
            self.emit(QuirkSeen(quirk="restore-by-index", detail=detail, cache=self.name))

    def defrag(self) -> None:
        """Request a defrag at the next update. Mutates."""
        self.do_defrag = True
        self.emit(DefragRequested(cache=self.name))

    def apply_shift(self) -> NDArray[np.int32]:
        """Hand every delta to the rotation and forget it. Mutates.

        Returns:
            int32 [n], the delta of every cell, empty ones included.

        Raises:
            CacheAbort, ParamError: the keys cannot be turned (see `Rotation.turn`); nothing has changed then.
        """
        shift = self.cells.delta.copy()
        self._turn_bytes(shift, mrope=False)
        self.cells.delta[:] = 0
        self.has_shift = False
        self.emit(ShiftApplied(k_shift=shift, rotated=self.params.rope, cache=self.name))
        return shift

    def apply_defrag(self, n_max_nodes: int) -> DefragPlan:
        """Plan the requested defrag and carry it out; head becomes the number of used cells. Mutates.

        "Empty" means without owner here: a cell that has a position but no owner may be overwritten, and then the
        counter of used cells is too large from there on.

        Raises:
            CacheAbort: the counter is too large for the plan, where upstream asserts.
        """
        budget = move_budget(n_max_nodes, len(self.params.layers))
        owned = self.cells.seqs[: self.cell_max] != 0
        plan = plan_defrag(owned, budget, n_used=self.used)
        self.emit(DefragPlanned(plan=plan, cache=self.name))
        if not budget and not plan.empty:
            detail = "the budget allows 0 moves, which upstream never reaches: all holes are filled"
            self.emit(QuirkSeen(quirk="defrag-zero-budget", detail=detail, cache=self.name))
        if not plan.empty:
            head_before, self.head = self.head, self.used
            self.cells.mv(plan.src, plan.dst)
            self._move_bytes(plan)
            self.emit(DefragApplied(plan=plan, head_before=head_before, head=self.head, cache=self.name))
        self.do_defrag = False
        return plan

    def check_integrity(self) -> list[str]:
        """Every broken invariant, as sentences; empty when all hold."""
        checks = [
            (self.head < 0, "head is negative"),
            (self.used < self.cells.n_filled, "more cells are filled than counted"),
            (bool(self.cells.delta.any()) and not self.has_shift, "a delta waits, but no shift is pending"),
        ]
        return self.cells.check_integrity() + [sentence for broken, sentence in checks if broken]
