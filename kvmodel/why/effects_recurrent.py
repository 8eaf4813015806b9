"""What an event did to one state of a recurrent cache, in words; registered with those of all caches."""

from kvmodel.events_recurrent import (
    CellsSwapped,
    SlotFilled,
    StateBegun,
    StateCopied,
    StateDivided,
    StateLeft,
    StateShared,
    StateShifted,
    StatesStored,
)
from kvmodel.why.content import Content, owners
from kvmodel.why.effects import FREE, effect


@effect.register
def _(event: StateBegun, cell: int, _before: Content, _after: Content) -> str | None:
    return f"sequence {event.seq}, which has no state yet, gets the cell" if event.cell == cell else None


@effect.register
def _(event: StateCopied, cell: int, _before: Content, _after: Content) -> str | None:
    if cell == event.cell:
        return f"sequence {event.seq} gets it for itself, since it shared cell {event.shared}"
    return f"sequence {event.seq} goes on in cell {event.cell}" if cell == event.shared else None


@effect.register
def _(event: StateLeft, cell: int, _before: Content, _after: Content) -> str | None:
    left = f"sequence {event.seq} leaves to share another state{f'; {FREE}' if event.freed else ''}"
    return left if event.cell == cell else None


@effect.register
def _(event: CellsSwapped, cell: int, _before: Content, _after: Content) -> str | None:
    other = event.other if cell == event.cell else event.cell
    return f"the cell swaps its state with cell {other}" if cell in (event.cell, event.other) else None


@effect.register
def _(event: SlotFilled, cell: int, _before: Content, after: Content) -> str | None:
    inside = event.begin <= cell < event.begin + event.filled.n_seqs
    who = owners(after.seqs) if after.seqs else "no sequence"
    return f"the state of {who} is about to take in the tokens up to position {after.pos}" if inside else None


@effect.register
def _(event: StatesStored, cell: int, _before: Content, after: Content) -> str | None:
    return f"the state takes in the tokens up to position {after.pos}" if event.begin <= cell < event.end else None


@effect.register
def _(event: StateShared, cell: int, _before: Content, _after: Content) -> str | None:
    return f"sequence {event.dst} shares the state of sequence {event.src}" if cell in event.cells else None


@effect.register
def _(event: StateShifted, cell: int, _before: Content, _after: Content) -> str | None:
    return f"the state counts as position {event.pos} now ({event.shift:+d})" if cell in event.cells else None


@effect.register
def _(event: StateDivided, cell: int, _before: Content, _after: Content) -> str | None:
    return f"the state counts as position {event.pos} now (divided by {event.d})" if cell in event.cells else None
