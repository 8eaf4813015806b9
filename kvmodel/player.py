"""Playing a scenario on live caches and writing its timeline."""

from dataclasses import replace
from typing import Any

import numpy as np

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import Sequences
from kvmodel.context import DecodeResult
from kvmodel.errors import CacheAbort, KVModelError
from kvmodel.events import (
    Cleared,
    DefragApplied,
    Event,
    SeqAdded,
    SeqCopied,
    SeqDivided,
    SeqKept,
    SeqRemoved,
    ShiftApplied,
    UBatchStored,
)
from kvmodel.generations import make_context
from kvmodel.limits import MAX_TIMELINE_BYTES
from kvmodel.ops import AnyOp, Clear, Decode, Defrag, SeqAdd, SeqCp, SeqDiv, SeqKeep, SeqRm, Update
from kvmodel.scenario import Scenario
from kvmodel.snapshot import PartMoment, copy_arrays, difference, snapshot, spans_of
from kvmodel.timeline import Frame, OpResult, Timeline

LASTING = (
    UBatchStored,
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


class Player:
    """Plays operations on live caches and writes the timeline."""

    def __init__(self, scenario: Scenario) -> None:
        self.pending: list[Event] = []
        self.op = -1
        self.ubatch: UBatch | None = None
        self.context = make_context(scenario, self.receive)
        self.cache: Sequences = self.context.cache
        start = {part.name: snapshot(part) for part in self.cache.parts}
        self.timeline = Timeline(scenario, start)
        self.n_bytes = 0
        self.last = {part.name: copy_arrays(part.arrays) for part in self.cache.parts}
        self.close_frame()

    def receive(self, event: Event) -> None:
        """Take an event; one that lasts closes a frame."""
        self.pending.append(event)
        if isinstance(event, UBatchStored):
            self.ubatch = event.stored
        if isinstance(event, LASTING) and event.cache == self.cache.parts[-1].name:
            self.close_frame()

    def close_frame(self) -> None:
        """Write down what changed since the last frame."""
        moments = {}
        for part in self.cache.parts:
            delta = difference(self.last[part.name], part.arrays)
            for name, values in delta.after.items():
                self.last[part.name][name][delta.cells] = values
            self.n_bytes += delta.nbytes
            moments[part.name] = PartMoment(delta, dict(part.counters), spans_of(part))
        self.timeline.frames.append(Frame(self.op, tuple(self.pending), moments, self.ubatch))
        self.pending, self.ubatch = [], None

    def play(self, op: AnyOp) -> bool:
        """Play one operation; False if it ended the timeline."""
        self.op += 1
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
        """Close the operation: what is left over joins its last frame unless cells changed since."""
        changed = any(
            len(difference(self.last[part.name], part.arrays).cells) or dict(part.counters) != self._counters(part.name)
            for part in self.cache.parts
        )
        if changed or len(self.timeline.frames) == frames_before:
            self.close_frame()
            return
        last = self.timeline.frames[-1]
        self.timeline.frames[-1] = Frame(last.op, (*last.events, *self.pending), last.parts, last.ubatch)
        self.pending = []

    def _counters(self, name: str) -> Any:
        return self.timeline.frames[-1].parts[name].counters

    def _carry_out(self, op: AnyOp) -> OpResult:
        cache = self.cache
        match op:
            case Decode():
                return _decode_result(self.context.decode(self._batch(op), n_ubatch=op.n_ubatch, fail_at=op.fail_at))
            case SeqRm():
                return OpResult(cache.seq_rm(op.seq, op.p0, op.p1))
            case SeqCp():
                cache.seq_cp(op.src, op.dst, op.p0, op.p1)
            case SeqKeep():
                cache.seq_keep(op.seq)
            case SeqAdd():
                cache.seq_add(op.seq, op.p0, op.p1, op.shift)
            case SeqDiv():
                cache.seq_div(op.seq, op.p0, op.p1, op.d)
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
    """Play a whole scenario; an operation that cannot be carried out ends it."""
    player = Player(scenario)
    for op in scenario.ops:
        if not player.play(op):
            break
    return player.timeline
