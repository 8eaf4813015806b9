"""One place in a timeline, as the pages show it. No Streamlit."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.visit import Visit
from kvmodel.batch import UBatch
from kvmodel.beats import Beat, parts_at
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import OpResult, Timeline
from kvmodel.why import FailureStory, failure_story


@dataclass(frozen=True, eq=False)
class Moment:
    """One step of a timeline, or a beat inside it.

    Attributes:
        timeline, step: which one.
        beat: what is looked at inside the step, None at its end.
        parts: the cells; of a pair both halves.
        changed: for every part the cells that the step changed, intp; inside a step none, since the beat marks its own.
        ubatches: frames of the step that stored a ubatch up to here, each with what it stored.
        result: what the operation gave back, None before the first and inside a step.
    """

    timeline: Timeline
    step: int
    beat: Beat | None
    parts: tuple[PartSnapshot, ...]
    changed: dict[str, NDArray[np.intp]]
    ubatches: tuple[tuple[int, UBatch], ...]
    result: OpResult | None

    @cached_property
    def story(self) -> FailureStory | None:
        """Why the step failed, None if it did not, or inside a step. Worked out once: it may replay the scenario."""
        return None if self.beat else failure_story(self.timeline, self.step)

    @property
    def frame(self) -> int:
        """The last frame whose changes are seen."""
        if self.beat is None:
            return self.timeline.frame_of(self.step)
        return self.beat.frame if self.beat.done else self.beat.frame - 1


def moment_of(visit: Visit) -> Moment:
    """What there is to see at a visitor's place."""
    timeline, step = visit.timeline, visit.view.step
    if visit.view.beat:
        return _inside(visit, visit.beats()[visit.view.beat - 1])
    frames = timeline.frames_of(step)
    parts = visit.cursor.seek(frames[-1]).parts
    return Moment(
        timeline,
        step,
        None,
        tuple(parts.values()),
        {name: timeline.changed(frames[0], frames[-1], name) for name in parts},
        _stored(timeline, frames),
        timeline.results[step - 1] if step else None,
    )


def _inside(visit: Visit, beat: Beat) -> Moment:
    timeline, step = visit.timeline, visit.view.step
    parts = parts_at(visit.cursor, beat)
    none = np.empty(0, np.intp)
    seen = range(timeline.frames_of(step)[0], beat.frame + beat.done)
    return Moment(
        timeline, step, beat, tuple(parts.values()), dict.fromkeys(parts, none), _stored(timeline, seen), None
    )


def _stored(timeline: Timeline, frames: range) -> tuple[tuple[int, UBatch], ...]:
    return tuple((i, ubatch) for i in frames if (ubatch := timeline.frames[i].ubatch) is not None)
