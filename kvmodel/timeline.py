"""A played scenario: frames with events and deltas, and a cursor that moves through them both ways.

A frame is a moment at which something lasting happened: a ubatch stored, an edit made, a shift applied, cells moved.
An operation ends with its last frame, so stepping by operation and stepping inside one use the same list.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.errors import ParamError, check_int
from kvmodel.events import Event
from kvmodel.limits import INT32_MAX
from kvmodel.scenario import Scenario
from kvmodel.show import Card, Shown, Table
from kvmodel.snapshot import Delta, PartMoment, PartSnapshot, copy_arrays, frozen
from kvmodel.words import count, joined

FIGURES = ("used", "head", "n_kv")
"""Counters that a card shows for every set of cells."""


@dataclass(frozen=True)
class Token:
    """A token of the scenario: which operation brought it, its place in the batch, its text (may be empty)."""

    op: int
    index: int
    text: str


class Tokens(Sequence[Token]):
    """Tokens by serial number, batch after batch; made when asked for, so a long batch costs no more than a short."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._batches: list[tuple[int, tuple[str, ...] | None]] = []
        self._n = 0

    def add(self, op: int, n: int, texts: tuple[str, ...] | None) -> int:
        """Append the tokens of one batch; return the serial number of the first. Mutates."""
        first = self._n
        self._starts.append(first)
        self._batches.append((op, texts))
        self._n += n
        return first

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, serial: int) -> Token: ...
    @overload
    def __getitem__(self, serial: slice) -> tuple[Token, ...]: ...
    def __getitem__(self, serial: int | slice) -> Token | tuple[Token, ...]:
        if isinstance(serial, slice):
            return tuple(self[i] for i in range(self._n)[serial])
        at = range(self._n)[serial]
        batch = bisect_right(self._starts, at) - 1
        op, texts = self._batches[batch]
        index = at - self._starts[batch]
        return Token(op, index, texts[index] if texts else "")


@dataclass(frozen=True)
class OpResult:
    """What an operation gave back.

    Attributes:
        ret: return code of a decode, bool of `seq_rm`, None otherwise.
        error: why the operation could not be carried out, empty if it could. The timeline ends there.
        aborted: `error` is one that ends the process of llama.cpp.
        message: why a decode was refused, or that an update found nothing to do; empty otherwise.
    """

    ret: int | bool | None = None
    error: str = ""
    aborted: bool = False
    message: str = ""

    @property
    def failed(self) -> bool:
        """Whether the operation did not do what it was asked for."""
        return bool(self.error) or self.ret is False or (self.ret is not True and self.ret not in (None, 0))


@dataclass(frozen=True, eq=False)
class Frame:
    """One moment, the same for both halves of a pair.

    Attributes:
        op: index of the operation, -1 for the empty cache at the start.
        events: what happened since the frame before, in order.
        parts: figures and delta of every set of cells.
        ubatch: the tokens stored in this frame, None if none were.
    """

    op: int
    events: tuple[Event, ...]
    parts: dict[str, PartMoment]
    ubatch: UBatch | None = None


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Every set of cells after one frame, by name; `frame` is its number."""

    frame: int
    parts: dict[str, PartSnapshot]

    @property
    def first(self) -> PartSnapshot:
        """The only set of cells, or the first of several."""
        return next(iter(self.parts.values()))


@dataclass(eq=False, repr=False)
class Timeline(Shown):
    """A played scenario. Nothing changes in it after `play`.

    Attributes:
        scenario: what was played.
        frames: frame 0 is the empty cache.
        op_frames: for every operation played, its last frame; one entry less than `steps`.
        results: what each operation gave back.
        tokens: tokens by serial number, which cells carry.
        start: the empty caches.
    """

    scenario: Scenario
    start: dict[str, PartSnapshot]
    frames: list[Frame] = field(default_factory=list)
    op_frames: list[int] = field(default_factory=list)
    results: list[OpResult] = field(default_factory=list)
    tokens: Tokens = field(default_factory=Tokens)

    @property
    def n_steps(self) -> int:
        """Number of steps by operation; step 0 is the empty cache."""
        return len(self.op_frames) + 1

    def frame_of(self, step: int) -> int:
        """The last frame of a step.

        Raises:
            ParamError: there is no such step.
        """
        step = check_int("step", step, 0, self.n_steps - 1)
        return self.op_frames[step - 1] if step else 0

    def frames_of(self, step: int) -> range:
        """All frames of a step.

        Raises:
            ParamError: there is no such step.
        """
        last = self.frame_of(step)
        return range(self.frame_of(step - 1) + 1, last + 1) if step else range(1)

    def events_of(self, step: int) -> tuple[Event, ...]:
        """Everything that happened in a step, in order.

        Raises:
            ParamError: there is no such step.
        """
        return tuple(event for i in self.frames_of(step) for event in self.frames[i].events)

    def part(self, name: str) -> PartSnapshot:
        """A part of the empty cache.

        Raises:
            ParamError: there is none of that name.
        """
        if name not in tuple(self.start):
            raise ParamError("part", name, ", ".join(self.start))
        return self.start[name]

    def changed(self, first: int, last: int, name: str) -> NDArray[np.intp]:
        """Cells of one part that changed in the frames `first` to `last`, also those that changed back. Ascending.

        Raises:
            ParamError: there is no such part.
        """
        self.part(name)
        hit = [self.frames[i].parts[name].delta.cells for i in range(first, last + 1)]
        return np.unique(np.concatenate(hit)) if hit else np.empty(0, np.intp)

    def history(self, cell: int, name: str) -> Iterator[int]:
        """Frames in which a cell changed, in order.

        Raises:
            ParamError: there is no such part, or it has no such cell.
        """
        check_int("cell", cell, 0, self.part(name).n_cells - 1)
        for i, frame in enumerate(self.frames):
            cells = frame.parts[name].delta.cells
            at = int(np.searchsorted(cells, cell))
            if at < len(cells) and cells[at] == cell:
                yield i

    def series(self, counter: str, name: str) -> NDArray[np.float64]:
        """One counter of a part after every step, float64 [n_steps].

        Raises:
            ParamError: there is no such part, or it has no such counter.
        """
        counters = self.part(name).counters
        if counter not in tuple(counters):
            raise ParamError("counter", counter, ", ".join(counters))
        frames = (self.frames[self.frame_of(step)] for step in range(self.n_steps))
        return np.array([frame.parts[name].counters[counter] for frame in frames], np.float64)

    def card(self) -> Card:
        """The steps, to be shown in Jupyter or printed."""
        several = len(self.start) > 1
        cells = joined(f"{part.n_cells:,} cells{f' in {name}' * several}" for name, part in self.start.items())
        facts = f"{count(len(self.op_frames), 'step')} in {count(len(self.frames), 'frame')}, {cells}"
        figures = (f"{name} {figure}" if several else figure for name in self.start for figure in FIGURES)
        table = Table.of(("step", "call", "returned", *figures, "note"), self._rows())
        return Card(self.scenario.title, facts, tables=(table,))

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for i, (op, result) in enumerate(zip(self.scenario.ops, self.results, strict=False)):
            parts = self.frames[self.op_frames[i]].parts.values()
            figures = (part.counters[figure] for part in parts for figure in FIGURES)
            returned = "ended" if result.error else "" if result.ret is None else result.ret
            yield i + 1, op.op, returned, *figures, result.error or op.note

    def cursor(self) -> "Cursor":
        """A cursor of one's own, at frame 0."""
        return Cursor(self)


class Cursor:
    """A place in a timeline; moving costs what changed on the way.

    Attributes:
        timeline: shared and read only.
        frame: number of the current frame.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.frame = 0
        self._now = {name: copy_arrays(part.arrays) for name, part in timeline.start.items()}

    def seek(self, frame: int) -> Snapshot:
        """Go to a frame, forward or back, and look. Numbers outside are clamped.

        Raises:
            ParamError: `frame` is no whole number.
        """
        frame = check_int("frame", frame, -INT32_MAX, INT32_MAX)
        frame = max(0, min(frame, len(self.timeline.frames) - 1))
        for i in range(self.frame + 1, frame + 1):
            self._apply(i, lambda delta: delta.after)
        for i in range(self.frame, frame, -1):
            self._apply(i, lambda delta: delta.before)
        self.frame = frame
        return self.snapshot()

    def _apply(self, frame: int, side: Callable[[Delta], Any]) -> None:
        for name, moment in self.timeline.frames[frame].parts.items():
            for array, values in side(moment.delta).items():
                self._now[name][array][moment.delta.cells] = values

    def snapshot(self) -> Snapshot:
        """The state at the current frame, read only."""
        parts = {}
        for name, moment in self.timeline.frames[self.frame].parts.items():
            start = self.timeline.start[name]
            parts[name] = PartSnapshot(
                name,
                start.params,
                frozen(self._now[name]),
                moment.counters,
                moment.spans,
                start.size_k_bytes,
                start.size_v_bytes,
            )
        return Snapshot(self.frame, parts)
