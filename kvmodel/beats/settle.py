"""When in a frame the cells of each part become those after it."""

from collections.abc import Callable

from kvmodel.beats.marks import Marks
from kvmodel.events import Event, PrepareFailed
from kvmodel.player import LASTING
from kvmodel.timeline import Frame


def settling(frame: Frame) -> dict[str, int]:
    """For every part the place of the event at which it has its cells after the frame.

    That is its last event that lasts. A part without one follows the other half; where nothing lasting happened, what
    a trial has purged is gone when the trial has failed.
    """
    lasting = _places(frame, lambda event: isinstance(event, LASTING))
    failed = _places(frame, lambda event: isinstance(event, PrepareFailed))
    end = max(lasting.values(), default=len(frame.events) - 1)
    return {name: lasting.get(name, end if lasting else failed.get(name, end)) for name in frame.parts}


def _places(frame: Frame, chosen: Callable[[Event], bool]) -> dict[str, int]:
    """The last place of a chosen event of every part."""
    return {event.cache: place for place, event in enumerate(frame.events) if chosen(event)}


def arrived(marks: Marks, place: int, settles: int) -> bool:
    """Whether a beat at `place` shows the cells after the frame; the moves of a defrag have to be all made."""
    moving = marks.moves is not None and marks.n_moved < len(marks.moves.moves)
    return place > settles or (place == settles and not moving)
