"""What an event did to one cell, in words without a full stop; None if it left the cell alone."""

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from kvmodel.defrag import DefragPlan
from kvmodel.events import (
    CellsOverwritten,
    Cleared,
    DefragApplied,
    Event,
    PositionsPurged,
    SeqAdded,
    SeqCopied,
    SeqDivided,
    SeqKept,
    SeqRemoved,
    ShiftApplied,
    UBatchStored,
)
from kvmodel.why.content import Content, owners

FREE = "the cell is free"
LATER = "its K is rotated at the next update"


@singledispatch
def effect(event: Event, cell: int, before: Content, after: Content) -> str | None:
    """What became of a cell by one event.

    Args:
        event: one of a frame.
        cell: index of a cell that changed in that frame.
        before: what it held before the frame.
        after: what it holds after the frame.
    """
    _ = event, cell, before, after
    return None


@effect.register
def _(event: UBatchStored, cell: int, _before: Content, after: Content) -> str | None:
    return f"token {after.token} is stored as {after}" if event.begin <= cell < event.end else None


@effect.register
def _(event: CellsOverwritten, cell: int, _before: Content, _after: Content) -> str | None:
    at = np.flatnonzero(event.cells == cell)
    if not len(at):
        return None
    return f"position {event.pos[at[0]]} of sequence {event.seqs[at[0]]} gives way, since no later query can see it"


@effect.register
def _(event: PositionsPurged, cell: int, before: Content, after: Content) -> str | None:
    if not _among(event.cells, cell):
        return None
    trial = ", and the trial that did so is not taken back in full" if event.trial else ""
    lost = f"sequence {event.seq} loses position {before.pos}, since a newer one was overwritten{trial}"
    return f"{lost}{_what_stays(after)}"


@effect.register
def _(event: SeqRemoved, cell: int, before: Content, after: Content) -> str | None:
    if not _among(event.cells, cell):
        return None
    who = owners(before.seqs) if event.seq < 0 and before.seqs else f"sequence {event.seq}"
    leave = "leave" if event.seq < 0 and len(before.seqs) > 1 else "leaves"
    return f"{who} {leave} position {before.pos}{_what_stays(after)}"


def _what_stays(after: Content) -> str:
    if after.empty:
        return f"; {FREE}"
    return f"; {owners(after.seqs)} {'stay' if len(after.seqs) > 1 else 'stays'}" if after.seqs else ""


@effect.register
def _(event: SeqCopied, cell: int, _before: Content, _after: Content) -> str | None:
    shares = f"sequence {event.dst} shares what sequence {event.src} has here"
    return shares if _among(event.cells, cell) else None


@effect.register
def _(event: SeqKept, cell: int, before: Content, _after: Content) -> str | None:
    if _among(event.freed, cell):
        return (
            f"only sequence {event.seq} is kept, so {owners(before.seqs) if before.seqs else 'the rest'} goes; {FREE}"
        )
    return f"only sequence {event.seq} is kept" if _among(event.narrowed, cell) else None


@effect.register
def _(event: SeqAdded, cell: int, before: Content, after: Content) -> str | None:
    if _among(event.freed, cell):
        return f"position {before.pos} moves by {event.shift:+d}, which is below 0; {FREE}"
    moved = f"position {before.pos} becomes {after.pos} ({event.shift:+d}); {LATER}"
    return moved if _among(event.cells, cell) else None


@effect.register
def _(event: SeqDivided, cell: int, before: Content, after: Content) -> str | None:
    divided = f"position {before.pos} becomes {after.pos} (divided by {event.d}); {LATER}"
    return divided if _among(event.cells, cell) else None


@effect.register
def _(event: ShiftApplied, cell: int, _before: Content, _after: Content) -> str | None:
    shift = int(event.k_shift[cell])
    if not shift:
        return None
    if not event.rotated:
        return f"its shift of {shift:+d} is dropped, since this model does not rotate its keys"
    return f"its K is rotated by {shift:+d} {'position' if abs(shift) == 1 else 'positions'}"


@effect.register
def _(event: DefragApplied, cell: int, before: Content, after: Content) -> str | None:
    source = source_of(event.plan, cell)
    if source is not None:
        return f"{after} moved here from cell {source}"
    to = _moved(event.plan.moves[:, 0], event.plan.moves[:, 1], event.plan.moves[:, 2], cell)
    return f"{before} moved to cell {to}; {FREE}" if to is not None else None


@effect.register
def _(event: Cleared, _cell: int, _before: Content, _after: Content) -> str | None:
    _ = event
    return "every cell is emptied"


def source_of(plan: DefragPlan, cell: int) -> int | None:
    """The cell whose content a plan moves to `cell`."""
    return _moved(plan.moves[:, 1], plan.moves[:, 0], plan.moves[:, 2], cell)


def _moved(begins: NDArray[np.int64], others: NDArray[np.int64], lengths: NDArray[np.int64], cell: int) -> int | None:
    """The cell that stands against `cell` in one of the blocks."""
    at = np.flatnonzero((begins <= cell) & (cell < begins + lengths))
    return int(others[at[0]] + cell - begins[at[0]]) if len(at) else None


def _among(cells: NDArray[np.intp], cell: int) -> bool:
    return bool((cells == cell).any())
