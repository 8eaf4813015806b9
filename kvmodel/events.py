"""Records of everything that happens, with the reasons; frozen, one union.

Whoever acts emits them through the callable it was given; `explain.py` turns each into a sentence.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.defrag import DefragPlan
from kvmodel.slots import SlotSearch

Cells = NDArray[np.intp]


@dataclass(frozen=True, eq=False, kw_only=True)
class Event:
    """Base of all records.

    Attributes:
        cache: which cache speaks: `kv`, or `base` and `swa` of a pair.
    """

    cache: str = "kv"


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchChecked(Event):
    """A batch was accepted: sequences with their first and last new position."""

    n_tokens: int
    spans: tuple[tuple[int, int, int], ...]
    generated_pos: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchRefused(Event):
    """A batch was refused; `kind`, X and Y as in BatchError."""

    kind: str
    message: str
    seq: int = -1
    stored: int | None = None
    start: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchSplit(Event):
    """A batch was cut into ubatches: `how` is simple, equal or seq."""

    how: str
    sizes: tuple[int, ...]
    n_ubatch: int


@dataclass(frozen=True, eq=False, kw_only=True)
class SlotSearched(Event):
    """A slot was sought for ubatch number `ubatch`; nothing is stored yet."""

    search: SlotSearch
    ubatch: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class PrepareFailed(Event):
    """No slot for ubatch `ubatch` of `n_ubatches`; the `n_placed` placed before it were rolled back."""

    ubatch: int
    n_ubatches: int
    n_placed: int


@dataclass(frozen=True, eq=False, kw_only=True)
class CellsOverwritten(Event):
    """Window-expired cells gave way to new tokens: cells, their old sequences and positions."""

    cells: Cells
    seqs: NDArray[np.int32]
    pos: NDArray[np.int32]


@dataclass(frozen=True, eq=False, kw_only=True)
class PositionsPurged(Event):
    """Positions [p0, p1) of `seq` went since a later one was overwritten; `cells` lost the sequence."""

    seq: int
    p0: int
    p1: int
    cells: Cells
    trial: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class UBatchStored(Event):
    """Cells [begin, end) hold ubatch number `ubatch`; head went from one cell to the other, n_kv likewise."""

    ubatch: int
    begin: int
    end: int
    stored: UBatch
    head_before: int
    head: int
    n_kv_before: int
    n_kv: int


@dataclass(frozen=True, eq=False, kw_only=True)
class SeqRemoved(Event):
    """`seq_rm`: cells that lost the sequence (-1: every one), and those among them that are free now."""

    seq: int
    p0: int
    p1: int
    cells: Cells
    freed: Cells
    head_before: int
    head: int


@dataclass(frozen=True, eq=False, kw_only=True)
class SeqCopied(Event):
    """`seq_cp`: cells that `dst` owns beside `src` now; `had` are those it owned before."""

    src: int
    dst: int
    p0: int
    p1: int
    cells: Cells
    had: Cells


@dataclass(frozen=True, eq=False, kw_only=True)
class SeqKept(Event):
    """`seq_keep`: cells freed, and cells that lost their other owners."""

    seq: int
    freed: Cells
    narrowed: Cells
    head_before: int
    head: int


@dataclass(frozen=True, eq=False, kw_only=True)
class SeqAdded(Event):
    """`seq_add`: cells whose position moved by `shift`; `freed` fell below 0."""

    seq: int
    p0: int
    p1: int
    shift: int
    cells: Cells
    freed: Cells
    head_before: int
    head: int


@dataclass(frozen=True, eq=False, kw_only=True)
class SeqDivided(Event):
    """`seq_div`: cells whose position was divided by `d`."""

    seq: int
    p0: int
    p1: int
    d: int
    cells: Cells


@dataclass(frozen=True, eq=False, kw_only=True)
class NothingToDo(Event):
    """A call returned at once; `why` says the rule."""

    call: str
    why: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Cleared(Event):
    """`clear`: all cells are empty; with `data` the K and V bytes are zero as well."""

    n_cells: int
    data: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class DefragDecided(Event):
    """Whether a defrag is due: `why` is asked, threshold, below, small, or few (older caches)."""

    do_defrag: bool
    why: str
    fragmentation: float
    thold: float


@dataclass(frozen=True, eq=False, kw_only=True)
class DefragPlanned(Event):
    """The move plan; an empty one means that there are no holes."""

    plan: DefragPlan


@dataclass(frozen=True, eq=False, kw_only=True)
class ShiftApplied(Event):
    """K was rotated by the pending shifts: int32 [n_cells], 0 where a cell did not move."""

    k_shift: NDArray[np.int32]
    rotated: bool = True


@dataclass(frozen=True, eq=False, kw_only=True)
class DefragApplied(Event):
    """The plan was carried out; head went to its new cell."""

    plan: DefragPlan
    head_before: int
    head: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class DefragRequested(Event):
    """A defrag will be part of the next update."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NoUpdate(Event):
    """An update found neither a shift nor a move to make."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Retried(Event):
    """No slot was found: the cache was updated with a defrag asked for; `again` tells whether that changed it."""

    again: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class ComputeFailed(Event):
    """Computing ubatch `ubatch` failed with return code `ret`; its positions are removed."""

    ubatch: int
    ret: int
    removed: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Decoded(Event):
    """A decode call ended with return code `ret`: 0 done, 1 no slot, -1 refused, below or above: failed."""

    ret: int
    n_tokens: int


@dataclass(frozen=True, eq=False, kw_only=True)
class StateWritten(Event):
    """Cells went into a state stream of `n_bytes`: those of `seq`, -1 for all."""

    seq: int
    cells: Cells
    n_bytes: int
    with_data: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class StateRead(Event):
    """A state stream filled `cells`: as `seq`, or with -1 in place of all that was there."""

    seq: int
    cells: Cells
    n_bytes: int
    head: int


@dataclass(frozen=True, eq=False, kw_only=True)
class StateRefused(Event):
    """A state stream was refused; `left` says what became of the cache: cleared, removed or half-read."""

    seq: int
    kind: str
    message: str
    offset: int
    left: str


@dataclass(frozen=True, eq=False, kw_only=True)
class QuirkSeen(Event):
    """Something surprising that upstream does as well happened here; `quirk` is its id."""

    quirk: str
    detail: str


Emit = Callable[[Event], None]


def silent(event: Event) -> None:
    """Drop the record: the default receiver."""
