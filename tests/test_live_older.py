"""Recorded runs of January 2025 against the model: after every call its result and the whole cache view.

Debug maps of the cells came later; this generation shows its cells through a view: position (with the pending delta)
and owners of each, and a few counts. The logs give the sizes.
"""

import re

import numpy as np
import pytest

from kvmodel.caches.legacy_view import CacheView, view_cells
from kvmodel.context_legacy import LegacyContext
from kvmodel.generations import make_context
from kvmodel.limits import MAX_SEQ
from kvmodel.player import Player
from kvmodel.snapshot import PartSnapshot
from tests.live import Json, Run, runs, scenario_of

RUNS = runs("0.3.7")
LATER = runs("0.3.11")["recurrent"]
"""The same calls on the recurrent memory of mid-2025, which is written anew and shows no cells, only ranges."""

CALLS = {
    "chat-context-shift": 5,
    "fragment-then-defrag": 20,
    "recurrent": 7,
    "speculative": 6,
    "types-f32-f32": 5,
    "types-q8_0-f16": 5,
    "types-q8_0-q8_0-fa": 5,
    "y-equals-x-plus-1": 6,
}
"""Calls that touch the cache, counted by hand."""

INIT = re.compile(
    r"^llama_kv_cache_init: kv_size = (\d+), offload = 1, type_k = '(\w+)', type_v = '(\w+)', n_layer = (\d+),"
    r" can_shift = ([01])$",
    re.MULTILINE,
)
LAYER = re.compile(r"^llama_kv_cache_init: layer (\d+): n_embd_k_gqa = (\d+), n_embd_v_gqa = (\d+)$", re.MULTILINE)
SIZES = re.compile(
    r"^llama_kv_cache_init: +CPU KV buffer size = +([\d.]+) MiB$\n"
    r"^llama_init_from_model: KV self size += +([\d.]+) MiB, K \((\w+)\): +([\d.]+) MiB, V \((\w+)\): +([\d.]+) MiB$",
    re.MULTILINE,
)


def older(run: Run) -> LegacyContext:
    context = make_context(scenario_of(run))
    assert isinstance(context, LegacyContext)
    return context


def views(run: Run) -> list[tuple[CacheView, Player]]:
    """The view of the live cache after every call."""
    player = Player(scenario_of(run))
    seen = []
    for op in player.timeline.scenario.ops:
        assert player.play(op)
        seen.append((view_cells(player.cache.cells, MAX_SEQ), player))
    return seen


def listed(view: CacheView) -> list[list[object]]:
    """Position and owners of every cell, as the recordings write them."""
    return [
        [pos, [seq for seq in ids if seq >= 0]] for pos, ids in zip(view.pos.tolist(), view.seqs.tolist(), strict=True)
    ]


def shown(part: PartSnapshot) -> list[list[object]]:
    """The same of what the timeline shows."""
    return [[pos, [*part.owners(cell)]] for cell, pos in enumerate((part.pos + part.shift).tolist())]


def test_every_run_is_here() -> None:
    assert {name: len(run.played) for name, run in RUNS.items()} == CALLS


@pytest.mark.parametrize("name", RUNS)
def test_every_field_of_every_view_is_what_the_cache_holds(name: str) -> None:
    run = RUNS[name]
    for step, (view, _) in zip(run.played, views(run), strict=True):
        recorded: Json = dict(step.view or {})
        assert listed(view) == recorded.pop("cells")
        assert {field: getattr(view, field) for field in recorded} == recorded
        assert [*recorded] == ["n_cells", "token_count", "used_cells", "max_contiguous", "max_contiguous_idx"]


@pytest.mark.parametrize("name", RUNS)
def test_the_timeline_shows_the_cells_of_every_view(name: str) -> None:
    run = RUNS[name]
    timeline = views(run)[-1][1].timeline
    cursor = timeline.cursor()
    assert timeline.n_steps == CALLS[name] + 1
    for step, recorded in enumerate(run.played, start=1):
        part = cursor.seek(timeline.frame_of(step)).first
        assert shown(part) == (recorded.view or {})["cells"]
        assert part.used == (recorded.view or {})["used_cells"]


@pytest.mark.parametrize("name", RUNS)
def test_every_call_gives_back_what_was_recorded(name: str) -> None:
    run = RUNS[name]
    timeline = views(run)[-1][1].timeline
    returned = [repr(result.ret) for result in timeline.results]
    assert returned == [repr(step.result) for step in run.played]
    assert (
        returned.count("1")
        == run.log.count("failed to decode, ret = 1")
        == (2 if name == "fragment-then-defrag" else 0)
    )


@pytest.mark.parametrize("name", RUNS)
def test_a_view_after_a_call_that_only_writes_a_file_is_the_one_before(name: str) -> None:
    steps = RUNS[name].steps
    written = [i for i, step in enumerate(steps) if step.call["op"].startswith("save")]
    assert [steps[i].view == steps[i - 1].view for i in written] == [True] * (len(steps) - CALLS[name])


@pytest.mark.parametrize("name", RUNS)
def test_the_cache_is_the_one_the_log_tells_of(name: str) -> None:
    cache, log = older(RUNS[name]).cache, RUNS[name].log
    params = cache.params
    [told] = INIT.findall(log)
    n_layer = str(len(params.layers))
    assert told == (str(params.kv_size), params.type_k, params.type_v, n_layer, str(int(cache.can_shift)))
    widths = [(str(il), str(params.n_embd_k_gqa(il)), str(params.n_embd_v_gqa(il))) for il in params.layers]
    assert LAYER.findall(log) == widths


@pytest.mark.parametrize("name", RUNS)
def test_sizes_are_those_of_the_memory_lines(name: str) -> None:
    cache = older(RUNS[name]).cache
    [told] = SIZES.findall(RUNS[name].log)
    size_k, size_v = cache.size_k_bytes, cache.size_v_bytes
    buffer, total, k, v = (f"{size / 2**20:.2f}" for size in (cache.total_size, size_k + size_v, size_k, size_v))
    assert told == (buffer, total, cache.params.type_k, k, cache.params.type_v, v)


def test_a_shift_is_pending_until_the_next_decode() -> None:
    run = RUNS["chat-context-shift"]
    timeline = views(run)[-1][1].timeline
    added, decoded = (timeline.cursor().seek(timeline.frame_of(step)).first for step in (4, 5))
    assert np.flatnonzero(added.shift).tolist() == [*range(64, 120)]
    assert (set(added.shift[64:120].tolist()), decoded.shift.any()) == ({-56}, False)


def test_the_later_recurrent_memory_answers_alike() -> None:
    run = RUNS["recurrent"]
    assert [step.call for step in LATER.steps] == [step.call for step in run.steps]
    assert [repr(step.result) for step in LATER.steps] == [repr(step.result) for step in run.steps]
    timeline = views(run)[-1][1].timeline
    cursor = timeline.cursor()
    for step, recorded in enumerate(LATER.played, start=1):
        spans = cursor.seek(timeline.frame_of(step)).first.spans
        told = {seq: (low, high) for seq, (low, high) in enumerate(spans.tolist()) if high >= 0}
        assert told == recorded.ranges
    cache = older(run).cache
    size_k, size_v = cache.size_k_bytes, cache.size_v_bytes
    total, k, v = (f"{size / 2**20:.2f}" for size in (size_k + size_v, size_k, size_v))
    assert f"KV self size  =    {total} MiB, R (f32):    {k} MiB, S (f32):    {v} MiB" in LATER.log
