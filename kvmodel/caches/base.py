"""The contract of every cache: which calls ask, which mutate, and what they hand back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import Batch, UBatch
from kvmodel.defrag import DefragPlan
from kvmodel.limits import INT32_MAX
from kvmodel.types import CacheParams


class MemoryStatus(StrEnum):
    """Outcome of preparing a batch or an update (`llama_memory_status`)."""

    SUCCESS = "success"
    NO_UPDATE = "no_update"
    FAILED_PREPARE = "failed_prepare"


@dataclass(frozen=True)
class Placed:
    """Where one cache put a ubatch: first cell of the slot, and n_kv after storing it."""

    head: int
    n_kv: int


@dataclass(frozen=True, eq=False)
class PreparedBatch:
    """A batch for which every ubatch has a slot in every cache, or for which none was stored.

    Attributes:
        status: success or failed_prepare.
        ubatches: the ubatches in order, empty on failure.
        heads: for every cache the first cell of each ubatch's slot.
    """

    status: MemoryStatus
    ubatches: tuple[UBatch, ...] = ()
    heads: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class UpdateInfo:
    """What one cache has to do in an update.

    Attributes:
        fragmentation: float32 value that is compared with the threshold.
        do_shift: a shift is pending.
        do_defrag: a defrag was asked for, or the threshold is passed.
        plan: the move plan, None without `do_defrag`.
    """

    fragmentation: np.float32
    do_shift: bool
    do_defrag: bool
    plan: DefragPlan | None = None

    @property
    def status(self) -> MemoryStatus:
        """Status no_update if neither a shift nor a move is due."""
        due = self.do_shift or (self.plan is not None and not self.plan.empty)
        return MemoryStatus.SUCCESS if due else MemoryStatus.NO_UPDATE


@dataclass(frozen=True, eq=False)
class PreparedUpdate:
    """An update as planned, one entry a cache (`init_update`)."""

    parts: Mapping[str, UpdateInfo]

    @property
    def status(self) -> MemoryStatus:
        """Status success if any cache has something to do (`llama_memory_status_combine`)."""
        due = any(part.status is MemoryStatus.SUCCESS for part in self.parts.values())
        return MemoryStatus.SUCCESS if due else MemoryStatus.NO_UPDATE


class Part(Protocol):
    """One set of cells as it can be looked at: a cache, or one half of a pair.

    Attributes:
        name: `kv`, `base` or `swa`.
        params: what it was made of.
    """

    name: str
    params: CacheParams

    @property
    def arrays(self) -> dict[str, Any]:
        """The live arrays by name, one entry a cell. Read only for the caller."""
        ...

    @property
    def counters(self) -> dict[str, int | float | bool]:
        """The figures beside the cells."""
        ...

    def seq_pos_min(self, seq: int) -> int:
        """Smallest position of `seq`, -1 if none."""
        ...

    def seq_pos_max(self, seq: int) -> int:
        """Largest position of `seq`, -1 if none; the older caches say 0 for none."""
        ...

    @property
    def size_k_bytes(self) -> int:
        """Bytes of all K tensors."""
        ...

    @property
    def size_v_bytes(self) -> int:
        """Bytes of all V tensors."""
        ...


class Sequences(Protocol):
    """What the caches of every generation do with sequences. Calls marked "mutates" change cells or head."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The sets of cells inside."""
        ...

    def seq_pos_min(self, seq: int) -> int:
        """Smallest position of `seq`, -1 if none."""
        ...

    def seq_pos_max(self, seq: int) -> int:
        """Largest position of `seq`, -1 if none; the older caches say 0 for none."""
        ...

    def seq_rm(self, seq: int, p0: int, p1: int) -> bool:
        """Remove `seq` (-1: every sequence) from positions [p0, p1). Mutates."""
        ...

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        """Make `dst` an owner of the cells of `src` in [p0, p1). Mutates."""
        ...

    def seq_keep(self, seq: int) -> None:
        """Remove every other sequence. Mutates."""
        ...

    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        """Add `shift` to the positions of `seq` in [p0, p1). Mutates."""
        ...

    def seq_div(self, seq: int, p0: int, p1: int, d: int) -> None:
        """Divide the positions of `seq` in [p0, p1) by `d`. Mutates."""
        ...

    def clear(self, data: bool = True) -> None:
        """Empty every cell; with `data` zero the bytes. Mutates."""
        ...

    @property
    def can_shift(self) -> bool:
        """Whether the cache supports a K-shift."""
        ...


class Cache(Sequences, Protocol):
    """What the caches of mid-2025 can do besides (`llama_memory_i`): batches and updates, prepared first."""

    def init_batch(self, batch: Batch, n_ubatch: int) -> PreparedBatch:
        """Split a completed batch and find slots for all of it. Mutates only by upstream's quirks."""
        ...

    def apply(self, prepared: PreparedBatch, i: int) -> dict[str, Placed]:
        """Store ubatch `i` of a prepared batch. Mutates."""
        ...

    def init_update(self, *, optimize: bool, thold: float, n_max_nodes: int) -> PreparedUpdate:
        """Plan pending shifts and a defrag. Changes nothing."""
        ...

    def update(self, prepared: PreparedUpdate) -> dict[str, NDArray[np.int32]]:
        """Carry out a planned update; return the shift vector of each cache that had one. Mutates."""
        ...


def pos_range(p0: int, p1: int) -> tuple[int, int]:
    """The range as upstream reads it: a negative start is 0, a negative end is open."""
    return max(p0, 0), (INT32_MAX if p1 < 0 else p1)
