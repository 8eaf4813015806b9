"""The changes of one cell, frame by frame, each with its reason."""

from dataclasses import dataclass

import numpy as np

from kvmodel.events import DefragApplied, Event, SeqRemoved, UBatchStored
from kvmodel.events_recurrent import CellsSwapped
from kvmodel.ops import Decode
from kvmodel.timeline import Timeline
from kvmodel.why.content import Content, content_at
from kvmodel.why.effects import effect, source_of


@dataclass(frozen=True)
class Change:
    """A frame in which a cell changed.

    Attributes:
        step: of the frame.
        frame: its number.
        before, after: what the cell held.
        sentence: the operation, and what it did to the cell.
    """

    step: int
    frame: int
    before: Content
    after: Content
    sentence: str


@dataclass(frozen=True)
class Written:
    """The ubatch that stored what a cell holds; of a state, the one that it took in last.

    Attributes:
        step: of the decode.
        frame: in which it was stored.
        sentence: which token of which ubatch, and at which position.
    """

    step: int
    frame: int
    sentence: str


def contents(timeline: Timeline, frame: int, name: str, cell: int) -> tuple[Content, Content]:
    """What a cell held before and after a frame in which it changed."""
    delta = timeline.frames[frame].parts[name].delta
    at = int(np.searchsorted(delta.cells, cell))
    return content_at(delta.before, at), content_at(delta.after, at)


def change_at(timeline: Timeline, frame: int, name: str, cell: int) -> Change:
    """The change of a cell in a frame, with the reason that the events of the frame give."""
    before, after = contents(timeline, frame, name, cell)
    moment = timeline.frames[frame]
    op = timeline.scenario.ops[moment.op]
    own = [event for event in moment.events if event.cache == name]
    told = [_told(event, cell, before, after, isinstance(op, Decode)) for event in own]
    words = "; ".join(filter(None, told)) or _difference(before, after)
    return Change(moment.op + 1, frame, before, after, f"Step {moment.op + 1}, {op.op}: {words}.")


def _told(event: Event, cell: int, before: Content, after: Content, decoding: bool) -> str | None:
    words = effect(event, cell, before, after)
    rolled_back = words and decoding and isinstance(event, SeqRemoved)
    return f"the decode failed and is rolled back: {words}" if rolled_back else words


def _difference(before: Content, after: Content) -> str:
    """A change that no event speaks of: what a search put where, what a trial left behind, tails and sources."""
    if (before.pos, before.seqs) != (after.pos, after.seqs):
        return f"{before} became {after}"
    if before.shift != after.shift:
        return f"the shift that waits here goes from {before.shift} to {after.shift}"
    if before.token != after.token:
        return f"token {before.token} became token {after.token}"
    return "only the tail or the source noted here changed"


def written(timeline: Timeline, token: int) -> Written | None:
    """Where and when a token was stored, None if it is none."""
    if token < 0:
        return None
    place, step = timeline.tokens[token].index, timeline.tokens[token].op + 1
    for frame in timeline.frames_of(step):
        for event in timeline.frames[frame].events:
            if isinstance(event, UBatchStored) and (event.stored.token == token).any():
                pos = event.stored.pos[event.stored.token == token][0]
                where = f"in ubatch {event.ubatch}, at position {pos}"
                return Written(step, frame, f"Step {step}, decode: token {place} of the batch was stored {where}.")
    return None


def came_from(timeline: Timeline, frame: int, since: int, name: str, cell: int) -> tuple[int, ...]:
    """The cells that a content was in before, the latest first: defrags move it, and states swap places.

    Args:
        timeline: what was played.
        frame: the moment at which `cell` holds it.
        since: the frame in which it was stored.
        name: of the part.
        cell: where it is.
    """
    found = []
    for number in range(frame, since, -1):
        for event in reversed(timeline.frames[number].events):
            source = _source(event, cell) if event.cache == name else None
            if source is not None:
                found.append(source)
                cell = source
    return tuple(found)


def _source(event: Event, cell: int) -> int | None:
    if isinstance(event, DefragApplied):
        return source_of(event.plan, cell)
    if isinstance(event, CellsSwapped) and cell in (event.cell, event.other):
        return event.other if cell == event.cell else event.cell
    return None
