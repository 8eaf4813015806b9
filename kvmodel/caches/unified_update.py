"""Updates of the unified cache: pending shifts, fragmentation, and the defrag that may follow.

Counterpart of `init_update`, `update` and `defrag_prepare` in llama-kv-cache-unified.cpp.
"""

import numpy as np
from numpy.typing import NDArray

from kvmodel.caches.base import MemoryStatus, PreparedUpdate, UpdateInfo
from kvmodel.caches.data import DataPlane
from kvmodel.cells import EMPTY, Cells
from kvmodel.defrag import DefragPlan, move_budget, plan_defrag
from kvmodel.errors import ParamError
from kvmodel.events import DefragApplied, DefragDecided, DefragPlanned, Emit, NoUpdate, QuirkSeen, ShiftApplied
from kvmodel.types import CacheParams

SMALL_CONTEXT = 2048
"""Below this many leading cells upstream never defragments by itself."""


class UnifiedUpdates(DataPlane):
    """The calls that rotate and compact."""

    params: CacheParams
    cells: Cells
    head: int
    emit: Emit
    name: str

    @property
    def has_shift(self) -> bool:
        """Whether a position change waits to be applied to K."""
        return self.cells.has_shift

    @property
    def fragmentation(self) -> np.float32:
        """Share of the leading cells that is wasted, padding counted as used; 0 below 2,048 cells."""
        n = self.cells.used_max_p1
        if n < SMALL_CONTEXT:
            return np.float32(0)
        share = np.float32(self.cells.used + self.params.n_pad) / np.float32(n)
        return max(np.float32(0), np.float32(1) - share)

    def init_update(self, *, optimize: bool, thold: float, n_max_nodes: int) -> PreparedUpdate:
        """Plan the pending shift and, if asked for or the threshold is passed, a defrag. Changes nothing.

        Args:
            optimize: defragment whatever the threshold says.
            thold: fragmentation above which to defragment; 0 or less never.
            n_max_nodes: graph nodes available; at most (nodes - 2 x layers) / (6 x layers) block moves.
        """
        if not isinstance(thold, int | float):
            raise ParamError("thold", thold, "a number")
        do_defrag = self._decide_defrag(optimize, thold)
        plan = self.plan_defrag(n_max_nodes) if do_defrag else None
        return PreparedUpdate({self.name: UpdateInfo(self.fragmentation, self.has_shift, do_defrag, plan)})

    def _decide_defrag(self, optimize: bool, thold: float) -> bool:
        passed = bool(thold > 0 and self.fragmentation > np.float32(thold))
        do_defrag = optimize or passed
        small = self.cells.used_max_p1 < SMALL_CONTEXT
        why = "asked" if optimize else "threshold" if passed else "small" if small else "below"
        if optimize or thold > 0:
            self.emit(
                DefragDecided(
                    do_defrag=do_defrag,
                    why=why,
                    fragmentation=float(self.fragmentation),
                    thold=thold,
                    cache=self.name,
                )
            )
        return do_defrag

    def plan_defrag(self, n_max_nodes: int) -> DefragPlan:
        """The move plan under a graph budget. Changes nothing."""
        budget = move_budget(n_max_nodes, len(self.params.layers))
        plan = plan_defrag(self.cells.pos[: self.cells.used_max_p1] != EMPTY, budget)
        self.emit(DefragPlanned(plan=plan, cache=self.name))
        if not budget and not plan.empty:
            detail = "the budget allows 0 moves, which upstream never reaches: all holes are filled"
            self.emit(QuirkSeen(quirk="defrag-zero-budget", detail=detail, cache=self.name))
        return plan

    def update(self, prepared: PreparedUpdate) -> dict[str, NDArray[np.int32]]:
        """Apply a planned shift, then a planned defrag. Mutates.

        Returns:
            the shift of every cell as handed to the rotation, int32 [n], if a shift was pending.

        Raises:
            CacheAbort, ParamError: the keys cannot be turned (see `Rotation.turn`); nothing has changed then.
        """
        info = prepared.parts[self.name]
        shifts = {self.name: self._apply_shift()} if info.do_shift else {}
        if info.plan is not None and not info.plan.empty:
            head_before, self.head = self.head, 0
            self.cells.mv(info.plan.src, info.plan.dst)
            self._move_bytes(info.plan)
            self.emit(DefragApplied(plan=info.plan, head_before=head_before, cache=self.name))
        if info.status is MemoryStatus.NO_UPDATE:
            self.emit(NoUpdate(cache=self.name))
        return shifts

    def _apply_shift(self) -> NDArray[np.int32]:
        shift = self.k_shift
        self._turn_bytes(shift, mrope=True)
        self.cells.reset_shift()
        self.emit(ShiftApplied(k_shift=shift, rotated=self.params.rope, cache=self.name))
        if self.params.rope and self.rotation is not None and self.rotation.scales(self.params.arch):
            detail = f"the shift multiplied every key by {self.rotation.rope.for_shift(self.params.arch).magnitude:.6g}"
            self.emit(QuirkSeen(quirk="yarn-shift-magnitude", detail=detail, cache=self.name))
        return shift

    @property
    def k_shift(self) -> NDArray[np.int32]:
        """Pending shift of every cell, 0 for empty ones, int32 [n] (`set_input_k_shift`)."""
        return np.where(self.cells.pos == EMPTY, np.int32(0), self.cells.shift)
