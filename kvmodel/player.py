"""Playing a scenario on live caches and writing its timeline."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import Part, Sequences
from kvmodel.context import DecodeResult
from kvmodel.errors import CacheAbort, KVModelError, ParamError
from kvmodel.events import (
    BatchSplit,
    Cleared,
    DefragApplied,
    Event,
    SeqAdded,
    SeqCopied,
    SeqDivided,
    SeqKept,
    SeqRemoved,
    ShiftApplied,
    SlotSearched,
    UBatchStored,
)
from kvmodel.events_recurrent import SlotFilled
from kvmodel.generations import make_context
from kvmodel.limits import MAX_TIMELINE_BYTES
from kvmodel.ops import AnyOp, Clear, Decode, Defrag, SeqAdd, SeqCp, SeqDiv, SeqKeep, SeqRm, Update
from kvmodel.scenario import Scenario
from kvmodel.snapshot import Counters, Delta, PartMoment, Spans, copy_arrays, difference, snapshot, spans_of
from kvmodel.timeline import Frame, OpResult, Timeline

LASTING = (
    UBatchStored,
    SlotFilled,
    ShiftApplied,
    DefragApplied,
    SeqRemoved,
    SeqCopied,
    SeqKept,
    SeqAdded,
    SeqDivided,
    Cleared,
)
"""Events that close a frame: the cells are in a state worth looking at."""


@dataclass
class Work:
    """How far a decode is, in ubatches.

    Attributes:
        parts: how many caches seek slots, 2 of a pair.
        ubatches: into how many the batch was cut; 0 of other operations. A batch that is cut anew begins anew.
        sought: for how many each of the caches sought a slot.
        stored: how many are stored.
    """

    parts: int = 1
    ubatches: int = 0
    sought: dict[str, int] = field(default_factory=dict)
    stored: int = 0

    @property
    def share(self) -> float:
        """From 0 to 1; one half is seeking the slots, the other storing the tokens."""
        if not self.ubatches:
            return 0.0
        return (max(sum(self.sought.values()) / self.parts, self.stored) + self.stored) / (2 * self.ubatches)

    def count(self, event: Event) -> None:
        """Take an event. Mutates."""
        match event:
            case BatchSplit(sizes=sizes):
                self.ubatches, self.sought, self.stored = len(sizes), {}, 0
            case SlotSearched(ubatch=ubatch):
                self.sought[event.cache] = ubatch + 1
            case UBatchStored(ubatch=ubatch):
                self.stored = ubatch + 1


class Player:
    """Plays operations on live caches and writes the timeline.

    Both halves of a pair do everything one after the other, so a frame stays open until the last half has done what
    the first one did; a frame that only the first half has a part in ends where the decode goes on.

    Attributes:
        watch: called at every event; what it raises ends the playing.
        work: how far the operation is.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.pending: list[Event] = []
        self.op = -1
        self.ubatch: UBatch | None = None
        self.watch: Callable[[], None] | None = None
        self.work = Work()
        self.context = make_context(scenario, self.receive)
        self.cache: Sequences = self.context.cache
        start = {part.name: snapshot(part) for part in self.cache.parts}
        self.timeline = Timeline(scenario, start)
        self.n_bytes = 0
        self.last = {name: copy_arrays(part.arrays) for name, part in start.items()}
        self.spans = {name: part.spans for name, part in start.items()}
        self.waiting: type[Event] | None = None
        self.close_frame()

    def receive(self, event: Event) -> None:
        """Take an event; one that lasts closes a frame, in a pair once every half has come so far."""
        self.work.count(event)
        if self.watch:
            self.watch()
        if self.waiting and isinstance(event, BatchSplit):
            self.close_frame()
        self.pending.append(event)
        if isinstance(event, UBatchStored):
            self.ubatch = event.stored
        if not isinstance(event, LASTING):
            return
        if event.cache != self.cache.parts[-1].name:
            self.waiting = type(event)
        elif self.waiting in (None, type(event)):
            self.close_frame()

    def close_frame(self, deltas: Mapping[str, Delta] | None = None) -> None:
        """Write down what changed since the last frame."""
        moments = {}
        for part in self.cache.parts:
            delta = deltas[part.name] if deltas else difference(self.last[part.name], part.arrays)
            for name, values in delta.after.items():
                self.last[part.name][name][delta.cells] = values
            self.n_bytes += delta.nbytes
            moments[part.name] = PartMoment(delta, *self._figures(part, delta))
        self.timeline.frames.append(Frame(self.op, tuple(self.pending), moments, self.ubatch))
        self.pending, self.ubatch, self.waiting = [], None, None

    def _figures(self, part: Part, delta: Delta) -> tuple[Counters, Spans]:
        self.spans[part.name] = spans_of(part, self.spans[part.name], delta)
        return dict(part.counters), self.spans[part.name]

    def play(self, op: AnyOp) -> bool:
        """Play one operation; False if it ended the timeline."""
        self.op += 1
        self.work = Work(len(self.cache.parts))
        frames_before = len(self.timeline.frames)
        try:
            result = self._carry_out(op)
        except KVModelError as problem:
            result = OpResult(error=str(problem), aborted=isinstance(problem, CacheAbort))
        self._finish(frames_before)
        if self.n_bytes > MAX_TIMELINE_BYTES and not result.error:
            result = replace(result, error=f"the timeline takes {self.n_bytes} bytes; allowed: {MAX_TIMELINE_BYTES}")
        self.timeline.results.append(result)
        self.timeline.op_frames.append(len(self.timeline.frames) - 1)
        return not result.error

    def _finish(self, frames_before: int) -> None:
        """Close the operation: what is left over is a frame if cells changed, else it joins the last one.

        A head that a search in vain has moved, or a defrag that is requested, is no moment of its own.
        """
        deltas = {part.name: difference(self.last[part.name], part.arrays) for part in self.cache.parts}
        if len(self.timeline.frames) == frames_before or any(len(delta.cells) for delta in deltas.values()):
            self.close_frame(deltas)
            return
        last = self.timeline.frames[-1]
        moments = {
            part.name: PartMoment(last.parts[part.name].delta, *self._figures(part, deltas[part.name]))
            for part in self.cache.parts
        }
        self.timeline.frames[-1] = Frame(last.op, (*last.events, *self.pending), moments, last.ubatch)
        self.pending, self.waiting = [], None

    def _carry_out(self, op: AnyOp) -> OpResult:
        cache = self.cache
        match op:
            case Decode():
                return _decode_result(self.context.decode(self._batch(op), n_ubatch=op.n_ubatch, fail_at=op.fail_at))
            case SeqRm():
                return OpResult(cache.seq_rm(op.seq, op.p0, op.p1))
            case SeqCp():
                self.context.seq_cp(op.src, op.dst, op.p0, op.p1)
            case SeqKeep():
                cache.seq_keep(op.seq)
            case SeqAdd():
                self.context.seq_add(op.seq, op.p0, op.p1, op.shift)
            case SeqDiv():
                self.context.seq_div(op.seq, op.p0, op.p1, op.d)
            case Update():
                done = self.context.update(optimize=op.optimize, thold=op.thold, n_max_nodes=op.n_max_nodes)
                return OpResult(None, message="" if done else "nothing to update")
            case Defrag():
                self.context.defrag()
            case Clear():
                cache.clear(op.data)
        return OpResult()

    def _batch(self, op: Decode) -> Batch:
        n = sum(run.n for run in op.tokens)
        has_text = any(run.text for run in op.tokens)
        texts = tuple(text for run in op.tokens for text in run.text or ("",) * run.n) if has_text else None
        first = self.timeline.tokens.add(self.op, n, texts)
        return Batch.from_runs(
            [(run.pos or 0, run.n, run.seq) for run in op.tokens],
            token=np.arange(first, first + n, dtype=np.int32),
            embd=op.embd,
            auto_pos=op.tokens[0].pos is None,
        )


def _decode_result(result: DecodeResult) -> OpResult:
    return OpResult(result.ret, message=result.message)


def play(scenario: Scenario) -> Timeline:
    """Play a whole scenario; an operation that cannot be carried out ends it.

    Raises:
        ParamError: `scenario` is none.
    """
    if not isinstance(scenario, Scenario):
        raise ParamError("scenario", scenario, "a Scenario")
    player = Player(scenario)
    for op in scenario.ops:
        if not player.play(op):
            break
    return player.timeline
