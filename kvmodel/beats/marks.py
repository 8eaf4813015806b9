"""Which cells to point at while an event is told."""

from dataclasses import dataclass, field
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from kvmodel.defrag import DefragPlan
from kvmodel.events import (
    CellsOverwritten,
    Cleared,
    DefragApplied,
    DefragPlanned,
    Event,
    PositionsPurged,
    SeqAdded,
    SeqCopied,
    SeqDivided,
    SeqKept,
    SeqRemoved,
    ShiftApplied,
    SlotSearched,
    StateRead,
    StateWritten,
    UBatchStored,
)
from kvmodel.events_recurrent import CellsSwapped, SlotFilled, SourcesTaken, StateBegun, StateCopied, StateLeft
from kvmodel.explain.slots import SearchSteps
from kvmodel.slots import SlotSearch

Index = NDArray[np.intp]
Run = tuple[int, int]

NO_RUN: Run = (0, 0)


def _no_cells() -> Index:
    return np.empty(0, np.intp)


@dataclass(frozen=True, eq=False)
class Marks:
    """What to point at in one set of cells; runs are [begin, end), (0, 0) for none.

    Attributes:
        tried: the cells looked at: the first run that a search tries, the usable cells of a refusal, or the longest
            run that is left when nothing was found.
        blocked: the cells that stopped it; none if the end of the cache did.
        slot: the run that was found, or filled.
        cells: intp, ascending, the cells that the event touches.
        moves: the plan of a defrag, None for every other event.
        n_moved: how many of its moves are made.
    """

    tried: Run = NO_RUN
    blocked: Run = NO_RUN
    slot: Run = NO_RUN
    cells: Index = field(default_factory=_no_cells)
    moves: DefragPlan | None = None
    n_moved: int = 0


@singledispatch
def marks(event: Event, step: int) -> Marks:
    """The marks of step `step` of an event, as `explain.steps` counts them."""
    _ = event, step
    return Marks()


@marks.register
def _(event: SlotSearched, step: int) -> Marks:
    search, steps = event.search, SearchSteps(event.search)
    refusal = steps.refusal(step)
    if step == 0:
        return Marks(tried=_run(search.start, search.n_tokens, search.n_cells))
    if step == len(steps) - 1:
        return _result(search)
    if refusal is None:
        return Marks()
    at_end = refusal.stop == search.n_cells
    return Marks(
        tried=_run(refusal.begin, refusal.stop - refusal.begin, search.n_cells),
        blocked=NO_RUN if at_end else (refusal.stop, refusal.last + 1),
    )


def _result(search: SlotSearch) -> Marks:
    if search.found:
        return Marks(slot=_run(search.cell, search.n_tokens, search.n_cells))
    return Marks(tried=_run(search.longest_start, max(search.longest, 0), search.n_cells))


def _run(begin: int, length: int, n_cells: int) -> Run:
    """A run cut at the end of the cache; (0, 0) for one without cells."""
    end = min(begin + length, n_cells)
    return (begin, end) if begin < end else NO_RUN


@marks.register
def _(event: UBatchStored, _step: int) -> Marks:
    return _filled(event.begin, event.end)


@marks.register
def _(event: SlotFilled, _step: int) -> Marks:
    return _filled(event.begin, event.begin + event.filled.n_seqs)


def _filled(begin: int, end: int) -> Marks:
    return Marks(slot=(begin, end), cells=np.arange(begin, end))


@marks.register(CellsOverwritten)
@marks.register(PositionsPurged)
@marks.register(SeqRemoved)
@marks.register(SeqCopied)
@marks.register(SeqAdded)
@marks.register(SeqDivided)
@marks.register(StateWritten)
@marks.register(StateRead)
def _(event: CellsOverwritten, _step: int) -> Marks:
    return Marks(cells=np.sort(event.cells))


@marks.register
def _(event: SeqKept, _step: int) -> Marks:
    return Marks(cells=np.union1d(event.freed, event.narrowed))


@marks.register
def _(event: Cleared, _step: int) -> Marks:
    return Marks(cells=np.arange(event.n_cells))


@marks.register
def _(event: ShiftApplied, _step: int) -> Marks:
    return Marks(cells=np.flatnonzero(event.k_shift))


@marks.register
def _(event: DefragPlanned, _step: int) -> Marks:
    return Marks(cells=event.plan.src, moves=event.plan)


@marks.register
def _(event: DefragApplied, step: int) -> Marks:
    source, destination, length = event.plan.moves[step].tolist()
    block = np.arange(length)
    touched = np.sort(np.concatenate([source + block, destination + block]))
    return Marks(cells=touched, moves=event.plan, n_moved=step + 1)


@marks.register(StateBegun)
@marks.register(StateLeft)
def _(event: StateBegun | StateLeft, _step: int) -> Marks:
    return _these(event.cell)


@marks.register
def _(event: StateCopied, _step: int) -> Marks:
    return _these(event.shared, event.cell)


@marks.register
def _(event: CellsSwapped, _step: int) -> Marks:
    return _these(event.cell, event.other)


@marks.register
def _(event: SourcesTaken, _step: int) -> Marks:
    return Marks(cells=np.arange(event.begin, event.begin + len(event.s_copy)))


def _these(*cells: int) -> Marks:
    return Marks(cells=np.unique(np.array(cells, np.intp)))
