"""Recorded runs of mid-2025 against the model: every call's result, and every map of the cells in their logs.

A log shows the cache before each slot search. The searches of one decode follow each other with the earlier ubatches
stored on trial, so the model's cache is looked at in that very moment; before the first search of a decode it is also
what the timeline shows. Of a pair the searches of the full half come first, then those of the window half.
"""

import re

import numpy as np
import pytest

from kvmodel.events import DefragApplied, Event, Retried, ShiftApplied, SlotSearched
from kvmodel.generations import make_context
from kvmodel.library import shipped
from kvmodel.limits import MAX_SEQ
from kvmodel.player import Player, play
from kvmodel.snapshot import PartSnapshot, snapshot
from kvmodel.timeline import Timeline
from tests.live import Run, UnknownCall, operation, runs, scenario_of, token_runs
from tests.live_log import CellMap, cell_maps, printed

RUNS = {name: run for name, run in runs("0.3.11").items() if name != "recurrent"}
N_MAPS = {
    "cache-full": 9,
    "chat-context-shift": 9,
    "fragment-then-defrag": 19,
    "self-extend": 3,
    "swa-slide": 26,
    "types-f32-f32": 2,
    "types-q8_0-f16": 2,
    "types-q8_0-q8_0-fa": 2,
    "y-equals-x-plus-1": 2,
}
RECORDED = {
    "recorded-fragment-then-defrag": ("0.3.11", "fragment-then-defrag"),
    "recorded-self-extend": ("0.3.11", "self-extend"),
    "recorded-refused-batches": ("0.3.11", "y-equals-x-plus-1"),
    "recorded-window-pair": ("0.3.11", "swa-slide"),
    "recorded-older-fragments": ("0.3.7", "fragment-then-defrag"),
    "recorded-states": ("0.3.7", "recurrent"),
}
"""Shipped scenarios and the runs they are."""

MEMORY = re.compile(
    r"^llama_kv_cache_unified: +CPU KV buffer size = +([\d.]+) MiB$\n"
    r"^llama_kv_cache_unified: size = +([\d.]+) MiB \( *(\d+) cells, +(\d+) layers, +(\d+) seqs\),"
    r" K \((\w+)\): +([\d.]+) MiB, V \((\w+)\): +([\d.]+) MiB$",
    re.MULTILINE,
)


class Watcher(Player):
    """Plays, and looks at the cache in the moment of every slot search."""

    def __init__(self, run: Run) -> None:
        self.before_search: list[PartSnapshot] = []
        self.seen: list[Event] = []
        super().__init__(scenario_of(run))
        for op in self.timeline.scenario.ops:
            self.play(op)

    def receive(self, event: Event) -> None:
        if isinstance(event, SlotSearched):
            [part] = [part for part in self.cache.parts if part.name == event.cache]
            self.before_search.append(snapshot(part))
        self.seen.append(event)
        super().receive(event)


def owner_symbols(part: PartSnapshot) -> str:
    counts = np.bitwise_count(part.seqs)
    ids = np.where(counts == 1, np.log2(np.maximum(part.seqs, 1).astype(np.float64)), -1).astype(int)
    return "".join("." if not n else str(i) if n == 1 else "M" for n, i in zip(counts, ids, strict=True))


def spans(part: PartSnapshot) -> dict[int, tuple[int, int]]:
    return {s: (int(part.spans[s, 0]), int(part.spans[s, 1])) for s in range(MAX_SEQ) if part.spans[s, 0] >= 0}


def assert_shows(part: PartSnapshot, shown: CellMap) -> None:
    summary = (part.counters["used_max_p1"], part.used, part.head, part.n_cells, part.params.n_swa)
    assert summary == (shown.n, shown.used, shown.head, shown.size, shown.n_swa)
    assert owner_symbols(part) == shown.owners
    assert part.pos.tolist() == shown.pos.tolist()
    assert spans(part) == shown.ranges


def first_searches(timeline: Timeline) -> list[tuple[int, int, str]]:
    """(number in the log, frame before it, cache) for the first search of every cache in every decode."""
    searches = [
        (frame, event)
        for frame in range(len(timeline.frames))
        for event in timeline.frames[frame].events
        if isinstance(event, SlotSearched)
    ]
    firsts: dict[tuple[int, str], tuple[int, int, str]] = {}
    for number, (frame, event) in enumerate(searches):
        firsts.setdefault((timeline.frames[frame].op, event.cache), (number, frame - 1, event.cache))
    return list(firsts.values())


def test_every_run_is_here() -> None:
    assert RUNS.keys() == N_MAPS.keys()


@pytest.mark.parametrize("name", RUNS)
def test_every_map_of_the_log_is_what_the_cache_holds(name: str) -> None:
    maps = cell_maps(RUNS[name].log)
    moments = Watcher(RUNS[name]).before_search
    assert len(maps) == RUNS[name].log.count("find_slot: n =") == N_MAPS[name]
    for part, shown in zip(moments, maps, strict=True):
        assert_shows(part, shown)


@pytest.mark.parametrize("name", RUNS)
def test_the_timeline_shows_the_first_map_of_every_decode(name: str) -> None:
    timeline = play(scenario_of(RUNS[name]))
    maps, cursor = cell_maps(RUNS[name].log), timeline.cursor()
    firsts = first_searches(timeline)
    assert len(firsts) >= 2
    for number, frame, name_of_part in firsts:
        assert_shows(cursor.seek(frame).parts[name_of_part], maps[number])


@pytest.mark.parametrize("name", RUNS)
def test_every_call_gives_back_what_was_recorded(name: str) -> None:
    run = RUNS[name]
    timeline = play(scenario_of(run))
    cursor = timeline.cursor()
    assert len(timeline.results) == len(run.played) > 0
    for step, (recorded, result) in enumerate(zip(run.played, timeline.results, strict=True), start=1):
        assert repr(result.ret) == repr(recorded.result)
        *_, answering = cursor.seek(timeline.frame_of(step)).parts.values()
        assert spans(answering) == recorded.ranges


@pytest.mark.parametrize("name", RUNS)
def test_updates_happen_as_often_as_the_log_says(name: str) -> None:
    log, seen = RUNS[name].log, Watcher(RUNS[name]).seen
    assert sum(isinstance(e, ShiftApplied) for e in seen) == log.count("update: applying K-shift")
    assert sum(isinstance(e, DefragApplied) for e in seen) == log.count("update: defragmenting KV cache")
    retries = sum(isinstance(e, Retried) and e.again for e in seen)
    assert retries == log.count("after cache optimization")


@pytest.mark.parametrize("name", RUNS)
def test_sizes_are_those_of_the_memory_lines(name: str) -> None:
    caches = make_context(scenario_of(RUNS[name])).cache.parts
    lines = MEMORY.findall(RUNS[name].log)
    assert len(lines) == len(caches) == RUNS[name].log.count("MiB, V (")
    for cache, line in zip(caches, lines, strict=True):
        size_k, size_v = cache.size_k_bytes, cache.size_v_bytes
        sizes = [f"{size / 2**20:.2f}" for size in (cache.total_size, size_k + size_v, size_k, size_v)]
        params = cache.params
        counts = [str(params.kv_size), str(len(params.layers)), str(params.n_seq_max)]
        assert list(line) == [sizes[0], sizes[1], *counts, params.type_k, sizes[2], params.type_v, sizes[3]]


def test_the_layers_of_a_pair_are_those_of_the_log() -> None:
    run = RUNS["swa-slide"]
    halves = run.log.split("creating")[1:]
    caches = make_context(scenario_of(run)).cache.parts
    for cache, told in zip(caches, halves, strict=True):
        assert f"size = {cache.params.kv_size} cells" in told.splitlines()[0]
        held = re.findall(r"layer +(\d+): dev = CPU", told)
        left_out = re.findall(r"layer +(\d+): skipped", told)
        assert [int(layer) for layer in held] == list(cache.params.layers)
        assert sorted(map(int, held + left_out)) == [*range(6)]


@pytest.mark.parametrize("name", RUNS)
def test_the_graph_budget_is_that_of_the_log(name: str) -> None:
    assert make_context(scenario_of(RUNS[name])).params.n_max_nodes == RUNS[name].printed("max_nodes")


def test_every_recorded_scenario_is_here() -> None:
    assert [scenario_id for scenario_id in shipped() if scenario_id.startswith("recorded-")] == list(RECORDED)


@pytest.mark.parametrize("scenario_id", RECORDED)
def test_shipped_recordings_are_the_runs(scenario_id: str) -> None:
    version, name = RECORDED[scenario_id]
    scenario = shipped()[scenario_id]
    bare = [op.model_copy(update={"note": ""}) for op in scenario.ops]
    expected = scenario_of(runs(version)[name])
    assert bare == list(expected.ops)
    assert (scenario.cache, scenario.context) == (expected.cache, expected.context)
    assert scenario.source == f"A recorded run of llama.cpp as in llama-cpp-python {version}: {name}"


def test_an_unknown_call_is_told() -> None:
    with pytest.raises(UnknownCall, match=r"op is 'reboot'; allowed: decode, seq_rm, .*save_session"):
        operation({"op": "reboot"})


def test_tokens_of_several_sequences_keep_their_order() -> None:
    first, second = token_runs([[5, 0, [0]], [6, 1, [0]], [7, 0, [1]]])
    assert (first.pos, first.n, first.seq, first.text) == (0, 2, (0,), ("5", "6"))
    assert (second.pos, second.n, second.seq, second.text) == (0, 1, (1,), ("7",))


def test_a_figure_that_is_not_printed_is_told() -> None:
    with pytest.raises(ValueError, match="the log prints no n_beam"):
        printed("llama_context: n_ctx = 3", "n_beam")


def test_a_map_of_the_wrong_size_is_told() -> None:
    log = "find_slot: n =     0, used =     0, head =     0, size =     4, n_swa =     0\n\n...\n\n"
    with pytest.raises(ValueError, match="a map of 4 cells has 3 characters"):
        cell_maps(log)
