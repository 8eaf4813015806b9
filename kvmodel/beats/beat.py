"""The beats of a step, made one by one when they are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from kvmodel.beats.marks import Marks, marks
from kvmodel.beats.settle import arrived, settling
from kvmodel.events import Event
from kvmodel.explain.steps import explain_step, n_steps
from kvmodel.timeline import Timeline


@dataclass(frozen=True, eq=False)
class Beat:
    """One thing to see.

    Attributes:
        frame: the frame it belongs to.
        place: place of its event among those of the frame.
        done: the cells of its part are those after the frame; False if they are still those before it, or between.
        event: what is told; a search or a defrag has several beats.
        sentence: it in words.
        part: the set of cells that its marks mean: `kv`, `base` or `swa`. In a pair `kv` is the context and no cells.
        marks: the cells to point at.
    """

    frame: int
    place: int
    done: bool
    event: Event
    sentence: str
    part: str
    marks: Marks


class Beats(Sequence[Beat]):
    """Everything that a step shows, in order; none if it recorded no event.

    Only their number is worked out in advance.
    """

    def __init__(self, timeline: Timeline, step: int) -> None:
        self._timeline = timeline
        self._places = [
            (frame, place) for frame in timeline.frames_of(step) for place in range(len(timeline.frames[frame].events))
        ]
        self._ends = np.cumsum([n_steps(event) for event in timeline.events_of(step)], dtype=np.int64)
        self._settled: dict[int, dict[str, int]] = {}

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @overload
    def __getitem__(self, number: int) -> Beat: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Beat, ...]: ...
    def __getitem__(self, number: int | slice) -> Beat | tuple[Beat, ...]:
        if isinstance(number, slice):
            return tuple(self[i] for i in range(len(self))[number])
        at = range(len(self))[number]
        which = int(np.searchsorted(self._ends, at, side="right"))
        frame, place = self._places[which]
        begin = int(self._ends[which - 1]) if which else 0
        return self._beat(frame, place, at - begin)

    def _beat(self, frame: int, place: int, step: int) -> Beat:
        event = self._timeline.frames[frame].events[place]
        marked = marks(event, step)
        settles = self._settling(frame)
        concerned = [settles[event.cache]] if event.cache in settles else settles.values()
        done = all(arrived(marked, place, at) for at in concerned)
        return Beat(frame, place, done, event, explain_step(event, step), event.cache, marked)

    def _settling(self, frame: int) -> dict[str, int]:
        if frame not in self._settled:
            self._settled[frame] = settling(self._timeline.frames[frame])
        return self._settled[frame]


def beats(timeline: Timeline, step: int) -> Beats:
    """What happens inside a step, one thing after the other.

    Args:
        timeline: a played scenario.
        step: number of a step; step 0 is the empty cache, which has no beats.

    Raises:
        ParamError: there is no such step.
    """
    return Beats(timeline, step)
