"""Plays a recorded run on the model and yields what differs: results, ranges, views, maps, files, sizes, updates."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from kvmodel.batch import Batch
from kvmodel.caches.base import Part
from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.legacy_view import view_cells
from kvmodel.caches.recurrent import RecurrentCache
from kvmodel.caches.unified import UnifiedCache
from kvmodel.events import DefragApplied, Event, Retried, ShiftApplied, SlotSearched
from kvmodel.formats.debuglog import LoggedSearch, MemoryLine
from kvmodel.formats.errors import FormatError
from kvmodel.formats.session import open_sequence, open_session
from kvmodel.generations import make_context
from kvmodel.limits import MAX_SEQ
from tests.replay.compare import ABSENT, HEADER, Difference, differences
from tests.replay.driver import Json
from tests.replay.live_config import scenario_of
from tests.replay.live_files import saved
from tests.replay.live_run import LiveRun, Step
from tests.replay.player import FAILURES

Found = Iterator[tuple[str, Any, Any]]


class LivePlayer:
    """One run being played.

    Attributes:
        maps: maps of the log that were compared.
        files: saved files that were compared.
        found: the differences.
    """

    def __init__(self, run: LiveRun) -> None:
        self.run = run
        self.context = make_context(scenario_of(run), self.receive)
        self.cache = self.context.cache
        self.maps = self.files = self.searches = 0
        self.done: Counter[str] = Counter()
        self.found: list[Difference] = []
        self.step, self.name = HEADER, "header"

    def play(self) -> None:
        """Play everything."""
        self.tell(self.memory())
        for number, step in enumerate(self.run.steps):
            self.step, self.name = number, step.name
            try:
                self.tell([("result", step.result, self.carry_out(step))])
            except FAILURES as error:
                self.tell([("result", step.result, f"{type(error).__name__}: {error}")])
            self.tell(self.shown(step))
        self.step, self.name = HEADER, "log"
        self.tell(self.counts())

    def tell(self, fields: Any) -> None:
        """Note every field in which recorded and played differ."""
        for field, expected, got in fields:
            for path, left, right in differences(expected, got, field):
                self.found.append(Difference(self.run.path.name, self.step, self.name, path, left, right))

    def carry_out(self, step: Step) -> Any:
        """Make one call; return its result."""
        call, name = step.call, step.name
        if name == "decode":
            return self.context.decode(batch_of(call["tokens"])).ret
        if name in ("save_seq", "save_session"):
            file, fields = saved(self.run, self.cache, call)
            self.files += file is not None
            self.tell(fields)
            return (file.nbytes if name == "save_seq" else True) if file else None
        if name in ("load_seq", "load_session"):
            return self.load(call)
        if name not in CALLS:
            return f"no such call; known: {', '.join(CALLS)}, decode, and save and load of seq and session"
        target = self.context if hasattr(self.context, name) else self.cache
        result = getattr(target, name)(*call.get("args", ()))
        return None if name in ("update", "defrag") else result

    def load(self, call: Json) -> Any:
        """Restore a file; a refusal is 0 or False, as the library answers."""
        path = self.run.file(call["file"])
        try:
            if call["op"] == "load_session":
                return open_session(path).restore(self.cache) > 0
            return open_sequence(path).restore(self.cache, call["seq"])
        except FormatError:
            return False if call["op"] == "load_session" else 0

    def shown(self, step: Step) -> Found:
        """What the library shows after a call."""
        if step.ranges is not None:
            spans = {seq: [self.cache.seq_pos_min(seq), self.cache.seq_pos_max(seq)] for seq in range(MAX_SEQ)}
            yield "ranges", step.ranges, {seq: span for seq, span in spans.items() if span[1] >= 0}
        if step.view is not None:
            yield "view", {**step.view, "cells": dict(enumerate(step.view["cells"]))}, self.view(step.view)

    def view(self, recorded: Json) -> Any:
        """The fields of the cache view that were recorded."""
        if not isinstance(self.cache, LegacyCache | RecurrentCache):
            return ABSENT
        view = view_cells(self.cache.cells, self.run.config["n_seq_max"])
        rows = zip(view.pos.tolist(), view.seqs.tolist(), strict=True)
        cells = {i: [pos, [seq for seq in seqs if seq >= 0]] for i, (pos, seqs) in enumerate(rows)}
        return {name: cells if name == "cells" else getattr(view, name, ABSENT) for name in recorded}

    def receive(self, event: Event) -> None:
        """Compare the cache with the log at every slot search; count what the log tells of besides."""
        match event:
            case SlotSearched() if not event.search.too_many and self.run.log.level:
                [part] = [part for part in self.cache.parts if part.name == event.cache]
                self.searched(part)
            case ShiftApplied():
                self.done["shift"] += 1
            case DefragApplied():
                self.done["defrag"] += 1
            case Retried():
                self.done["retry"] += event.again

    def searched(self, part: Any) -> None:
        """Compare one half with the next search of the log."""
        number, self.searches = self.searches, self.searches + 1
        if number >= len(self.run.log.searches):
            return
        logged = self.run.log.searches[number]
        self.maps += logged.has_map
        self.tell((f"searches[{number}].{field}", *pair) for field, *pair in searched_fields(logged, part))

    def counts(self) -> Found:
        """How often the log tells of searches and updates."""
        log = self.run.log
        yield "faults", [], [f"line {fault.line}: {fault.message}" for fault in log.faults]
        if not log.level:
            return
        yield "searches", len(log.searches), self.searches
        told = Counter(notice.kind for notice in log.notices)
        for kind in ("shift", "defrag", "retry"):
            yield kind, told[kind], self.done[kind]

    def memory(self) -> Found:
        """The memory lines."""
        lines, parts = self.run.log.memory, self.cache.parts
        yield "memory lines", len(lines), len(parts)
        for i, (line, part) in enumerate(zip(lines, parts, strict=False)):
            for field, expected, got in memory_fields(line, part, self.cache.can_shift):
                if expected is not None:
                    yield f"memory[{i}].{field}", expected, got


CALLS = (
    "seq_rm", "seq_cp", "seq_keep", "seq_add", "seq_div", "seq_pos_min", "seq_pos_max", "clear", "update", "defrag",
)  # fmt: skip
"""Calls with positional arguments. What a program may ask of the context first goes through it."""


def batch_of(tokens: list[Any]) -> Batch:
    """Tokens [id, position, [owners]] as a batch; without any position they are generated."""
    auto_pos = all(token[1] is None for token in tokens)
    runs = [(token[1] or 0, 1, tuple(token[2])) for token in tokens]
    return Batch.from_runs(runs, token=np.array([token[0] for token in tokens], np.int32), auto_pos=auto_pos)


def searched_fields(logged: LoggedSearch, part: UnifiedCache) -> Found:
    """One search of a log against the cache in that moment."""
    cells = part.cells
    yield "part", logged.part, part.name
    yield "n", logged.n, cells.used_max_p1
    yield "used", logged.used, cells.used
    yield "head", logged.head, part.head
    yield "size", logged.size, part.size
    yield "n_swa", logged.n_swa, part.params.n_swa
    spans = {seq: (part.seq_pos_min(seq), part.seq_pos_max(seq)) for seq in range(MAX_SEQ)}
    yield "ranges", dict(logged.spans), {seq: span for seq, span in spans.items() if span[0] >= 0}
    if logged.has_map:
        yield "differing cells", [], logged.differing(cells.pos, cells.seqs).tolist()


def memory_fields(line: MemoryLine, part: Part, can_shift: bool) -> Found:
    """One memory line against the sizes of a cache, in MiB with two decimals as they are printed."""
    params, size_k, size_v = part.params, part.size_k_bytes, part.size_v_bytes
    yield "cells", line.cells, params.kv_size
    yield "seqs", line.n_seqs, params.n_seq_max
    yield "types", [line.type_k, line.type_v], [params.type_k, params.type_v]
    yield "K", mib(line.k_mib), mib(size_k / 2**20)
    yield "V", mib(line.v_mib), mib(size_v / 2**20)
    yield "K and V", mib(line.mib), mib((size_k + size_v) / 2**20)
    yield "can_shift", line.can_shift, can_shift
    if len(line.buffers) == 1:
        yield "buffer", mib(line.buffers[0][1]), mib(part.total_size / 2**20)
    n_layer = params.n_layer if line.kind != "unified" else len(params.layers)
    yield "layers", line.n_layer, n_layer
    widths = {il: (params.n_embd_k_gqa(il), params.n_embd_v_gqa(il)) for il in params.layers}
    yield "row widths", dict(line.widths) or None, widths


def mib(size: float) -> str:
    """As llama.cpp prints it."""
    return f"{size:.2f}"
