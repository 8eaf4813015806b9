"""The cells at one beat: those before its frame, those after it, or something between."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kvmodel.beats.beat import Beat
from kvmodel.beats.settle import arrived, settling
from kvmodel.cells import EMPTY, seq_bit
from kvmodel.events import DefragApplied, Event, PositionsPurged, PrepareFailed, ShiftApplied, SlotSearched
from kvmodel.snapshot import PartSnapshot, copy_arrays, frozen
from kvmodel.spans import owns
from kvmodel.timeline import Cursor, Frame

VACATED = {"pos": EMPTY, "seqs": 0, "token": -1, "shift": 0, "delta": 0}
"""What a cell holds after its content has moved away."""


def parts_at(cursor: Cursor, beat: Beat) -> dict[str, PartSnapshot]:
    """Every set of cells at one beat, by name. Moves the cursor.

    Before the lasting event of a frame a part is what it was after the frame before; what is overwritten or purged on
    the way is still there, marked, unless the trial that purged it has failed. From that event on it is what the frame
    has left. Between the moves of a defrag the blocks moved so far have moved, while head and the other counters wait
    for the last one.

    Args:
        cursor: of the timeline that the beat is from.
        beat: one of its beats.
    """
    frame = cursor.timeline.frames[beat.frame]
    settles = settling(frame)
    done = {name: arrived(beat.marks, beat.place, at) for name, at in settles.items()}
    before = cursor.seek(beat.frame - 1).parts if not all(done.values()) else {}
    now = cursor.seek(beat.frame).parts if any(done.values()) else {}
    return {
        name: _before_search(now[name], frame, beat) if done[name] else _under_way(before[name], frame, beat)
        for name in frame.parts
    }


def _before_search(part: PartSnapshot, frame: Frame, beat: Beat) -> PartSnapshot:
    """A part after its frame; in the older cache a search in vain that is still to come has not moved head yet."""
    to_come = (event for event in frame.events[beat.place + 1 :] if isinstance(event, SlotSearched))
    search = next((event.search for event in to_come if not event.search.found), None)
    if search is None or "delta" not in part.arrays:
        return part
    return replace(part, counters={**part.counters, "head": search.head})


def _under_way(part: PartSnapshot, frame: Frame, beat: Beat) -> PartSnapshot:
    """A part before its frame is over: a failed trial may have purged cells, an update shifted or moved some."""
    own = [event for event in frame.events[: beat.place + 1] if event.cache == part.name]
    part = _purged(part, own)
    if any(isinstance(event, ShiftApplied) for event in own):
        part = _shifted(part)
    if own and own[-1] is beat.event and isinstance(beat.event, DefragApplied):
        part = _moved(part, beat.event.plan.moves[: beat.marks.n_moved])
    return part


def _purged(part: PartSnapshot, events: list[Event]) -> PartSnapshot:
    """What a trial purged stays purged when its slots are taken back (quirk purge-leak)."""
    failures = [place for place, event in enumerate(events) if isinstance(event, PrepareFailed)]
    tried = events[: failures[-1]] if failures else []
    leaks = [event for event in tried if isinstance(event, PositionsPurged) and event.trial]
    if not leaks:
        return part
    arrays, spans = copy_arrays(part.arrays), part.spans.copy()
    for leak in leaks:
        arrays["seqs"][leak.cells] &= ~seq_bit(leak.seq)
        gone = leak.cells[arrays["seqs"][leak.cells] == 0]
        for name, array in arrays.items():
            array[gone] = VACATED[name]
        left = arrays["pos"][owns(arrays["seqs"], leak.seq)]
        spans[leak.seq] = (left.min(), left.max()) if len(left) else -1
    used = int(np.count_nonzero(arrays["pos"] != EMPTY))
    return replace(part, arrays=frozen(arrays), spans=spans, counters={**part.counters, "used": used})


def _shifted(part: PartSnapshot) -> PartSnapshot:
    """No shift is pending any more; only the half of a pair can be here with its moves still to come."""
    arrays = {**part.arrays, "shift": np.zeros_like(part.shift)}
    return replace(part, arrays=frozen(arrays), counters={**part.counters, "has_shift": False})


def _moved(part: PartSnapshot, moves: NDArray[np.int64]) -> PartSnapshot:
    """Blocks (source, destination, length) moved; no block goes where another comes from, so the order is free."""
    source, destination, length = moves.T
    within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    src, dst = np.repeat(source, length) + within, np.repeat(destination, length) + within
    arrays = copy_arrays(part.arrays)
    for name, array in arrays.items():
        array[dst] = array[src]
        array[src] = VACATED[name]
    return replace(part, arrays=frozen(arrays))
