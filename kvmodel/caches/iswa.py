"""The interleaved-window cache: full-attention layers in one unified cache, window layers in another.

Counterpart of `llama_kv_cache_unified_iswa` in llama-kv-cache-unified-iswa.cpp (mid-2025). Every call goes to both
halves, the full one first; questions about positions are answered by the window half.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import MemoryStatus, Placed, PreparedBatch, PreparedUpdate
from kvmodel.caches.unified import UnifiedCache
from kvmodel.errors import ParamError, check_int
from kvmodel.events import BatchSplit, Emit, QuirkSeen, silent
from kvmodel.limits import MAX_BATCH
from kvmodel.split import Split, split_equal, split_simple
from kvmodel.types import CacheParams, SWAType, pad

T = TypeVar("T")


@dataclass(frozen=True)
class IswaParams:
    """What a pair is made of.

    Attributes:
        model: the layers, the window and the size of the full half; `swa_layers` tells which are window layers.
        n_ubatch: most tokens of a ubatch; takes part in the size of the window half.
        swa_full: give the window half as many cells as the full one.

    Raises:
        ParamError: there is no window, or `swa_layers` is missing.
    """

    model: CacheParams
    n_ubatch: int = 512
    swa_full: bool = False

    def __post_init__(self) -> None:
        check_int("n_ubatch", self.n_ubatch, 1, MAX_BATCH)
        if self.model.swa_type is SWAType.NONE:
            raise ParamError("swa_type", "none", "standard or chunked for a pair of caches")
        if self.model.swa_layers is None:
            raise ParamError("swa_layers", None, f"one bool for each of the {self.model.n_layer} layers")

    @property
    def is_swa(self) -> tuple[bool, ...]:
        """Which layers are window layers."""
        return self.model.swa_layers or ()

    @property
    def swa_cells(self) -> int:
        """Cells of the window half: the window of every sequence and one ubatch, never more than the full half."""
        model = self.model
        if self.swa_full:
            return model.kv_size
        return min(model.kv_size, pad(model.n_swa * model.n_seq_max + self.n_ubatch, model.n_pad))

    @property
    def base(self) -> CacheParams:
        """The full half: layers without a window."""
        keep = tuple(not swa for swa in self.is_swa)
        return replace(self.model, layer_filter=keep, swa_type=SWAType.NONE, n_swa=0)

    @property
    def swa(self) -> CacheParams:
        """The window half: layers with a window."""
        return replace(self.model, layer_filter=self.is_swa, kv_size=self.swa_cells)


class IswaCache:
    """A pair of unified caches.

    Attributes:
        params: what the pair is made of.
        base, swa: the full half and the window half.
    """

    def __init__(self, params: IswaParams, emit: Emit = silent) -> None:
        self.params = params
        self.base = UnifiedCache(params.base, emit, "base")
        self.swa = UnifiedCache(params.swa, emit, "swa")
        self.emit = emit

    @property
    def parts(self) -> tuple[UnifiedCache, UnifiedCache]:
        """The full half and the window half."""
        return self.base, self.swa

    def attach(self) -> None:
        """Give both halves tensors of zeros. Mutates."""
        for part in self.parts:
            part.attach()

    @property
    def can_shift(self) -> bool:
        """Only halves of one size can be shifted (`get_can_shift`)."""
        return self.base.size == self.swa.size

    def seq_pos_min(self, seq: int) -> int:
        """Smallest position of `seq` in the window half, -1 if it has none."""
        return self.swa.seq_pos_min(seq)

    def seq_pos_max(self, seq: int) -> int:
        """Largest position of `seq` in the window half, -1 if it has none."""
        return self.swa.seq_pos_max(seq)

    def init_full(self) -> dict[str, Placed]:
        """The view of a worst-case graph: all cells of both halves."""
        return {part.name: part.init_full() for part in self.parts}

    def init_batch(self, batch: Batch, n_ubatch: int) -> PreparedBatch:
        """Find slots in both halves for a plain split, and if that fails for an equal one.

        An attempt that fails may still purge cells of the window half (quirk purge-leak).
        """
        check_int("n_ubatch", n_ubatch, 1, MAX_BATCH)
        prepared = self._prepare("simple", split_simple, batch, n_ubatch)
        if prepared.status is MemoryStatus.SUCCESS:
            return prepared
        return self._prepare("equal", split_equal, batch, n_ubatch)

    def _prepare(self, how: str, split: Split, batch: Batch, n_ubatch: int) -> PreparedBatch:
        ubatches = split(batch, n_ubatch)
        sizes = tuple(map(len, ubatches))
        self.emit(BatchSplit(how=how, sizes=sizes, n_ubatch=n_ubatch, cache=self.base.name))
        if max(sizes) > n_ubatch:
            detail = f"the equal split made a ubatch of {max(sizes)} tokens, more than n_ubatch = {n_ubatch}"
            self.emit(QuirkSeen(quirk="equal-split-overflow", detail=detail, cache=self.base.name))
        heads: dict[str, tuple[int, ...]] = {}
        for part in self.parts:
            found = part.prepare(ubatches)
            if found is None:
                return PreparedBatch(MemoryStatus.FAILED_PREPARE)
            heads[part.name] = found
        return PreparedBatch(MemoryStatus.SUCCESS, tuple(ubatches), heads)

    def apply(self, prepared: PreparedBatch, i: int) -> dict[str, Placed]:
        """Store ubatch `i` in both halves. Mutates."""
        return self._both(lambda part: part.apply(prepared, i))

    def apply_ubatch(self, heads: dict[str, int], ubatch: UBatch) -> None:
        """Store a ubatch at a given slot of each half. Mutates."""
        for part in self.parts:
            part.apply_ubatch(heads[part.name], ubatch)

    def init_update(self, *, optimize: bool, thold: float, n_max_nodes: int) -> PreparedUpdate:
        """Plan shift and defrag of both halves, each by its own fragmentation. Changes nothing."""
        plans = [part.init_update(optimize=optimize, thold=thold, n_max_nodes=n_max_nodes).parts for part in self.parts]
        return PreparedUpdate({name: info for plan in plans for name, info in plan.items()})

    def update(self, prepared: PreparedUpdate) -> dict[str, NDArray[np.int32]]:
        """Carry out a planned update, the full half first. Mutates."""
        return self._both(lambda part: part.update(prepared))

    def seq_rm(self, seq: int, p0: int, p1: int) -> bool:
        """Remove a sequence from a range in both halves. Mutates."""
        removed = [part.seq_rm(seq, p0, p1) for part in self.parts]
        return all(removed)

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        """Share cells between two sequences in both halves. Mutates."""
        for part in self.parts:
            part.seq_cp(src, dst, p0, p1)

    def seq_keep(self, seq: int) -> None:
        """Remove every other sequence from both halves. Mutates."""
        for part in self.parts:
            part.seq_keep(seq)

    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        """Shift positions in both halves. Mutates."""
        for part in self.parts:
            part.seq_add(seq, p0, p1, shift)

    def seq_div(self, seq: int, p0: int, p1: int, d: int) -> None:
        """Divide positions in both halves. Mutates."""
        for part in self.parts:
            part.seq_div(seq, p0, p1, d)

    def clear(self, data: bool = True) -> None:
        """Empty both halves. Mutates."""
        for part in self.parts:
            part.clear(data)

    def _both(self, call: Callable[[UnifiedCache], dict[str, T]]) -> dict[str, T]:
        return {name: value for part in self.parts for name, value in call(part).items()}
