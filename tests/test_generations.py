"""Every kind of cache behind one contract: what a scenario makes, and one list of operations on all of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from kvmodel.caches.iswa import IswaCache
from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.recurrent import RecurrentCache
from kvmodel.caches.unified import UnifiedCache
from kvmodel.configs import Kind
from kvmodel.context import Context
from kvmodel.context_legacy import LegacyContext
from kvmodel.events import Event
from kvmodel.generations import make_context
from kvmodel.limits import MAX_SEQ
from kvmodel.player import Player, play
from kvmodel.scenario import Scenario
from kvmodel.snapshot import snapshot
from kvmodel.timeline import Timeline
from tests.random_scenarios import any_scenario

CACHES = {
    "unified": {"kv_size": 64},
    "iswa": {"kv_size": 64, "n_swa": 8, "n_layer": 2},
    "legacy": {"kv_size": 64},
    "recurrent": {"kv_size": 4},
}
MADE = {
    "unified": (Context, UnifiedCache, ["kv"]),
    "iswa": (Context, IswaCache, ["base", "swa"]),
    "legacy": (LegacyContext, LegacyCache, ["kv"]),
    "recurrent": (LegacyContext, RecurrentCache, ["kv"]),
}
EVERY_OP = [
    {"op": "decode", "tokens": [{"n": 10}]},
    {"op": "seq_cp", "src": 0, "dst": 1},
    {"op": "decode", "tokens": [{"n": 3, "pos": 10, "seq": [1]}]},
    {"op": "seq_rm", "seq": 0},
    {"op": "decode", "tokens": [{"n": 2, "pos": 0, "seq": [2]}]},
    {"op": "seq_add", "seq": 1, "shift": 4},
    {"op": "seq_div", "seq": 1, "d": 2},
    {"op": "defrag"},
    {"op": "update"},
    {"op": "seq_keep", "seq": 2},
    {"op": "clear"},
]


def scenario(kind: str, ops: list[dict[str, Any]], **context: Any) -> Scenario:
    cache = {"kind": kind, "n_seq_max": 4, **CACHES[kind]}
    return Scenario.model_validate({"title": "t", "cache": cache, "context": context, "ops": ops})


def positions(timeline: Timeline, step: int, name: str, seq: int) -> list[int]:
    part = timeline.cursor().seek(timeline.frame_of(step)).parts[name]
    return sorted(part.pos[(part.seqs >> np.uint64(seq) & np.uint64(1)) == 1].tolist())


@pytest.mark.parametrize("kind", MADE)
def test_a_scenario_makes_its_cache_in_the_context_of_its_generation(kind: Kind) -> None:
    context_type, cache_type, names = MADE[kind]
    seen: list[Event] = []
    context = make_context(scenario(kind, [], n_ubatch=16, defrag_thold=0.5), seen.append)
    assert (type(context), type(context.cache)) == (context_type, cache_type)
    assert [part.name for part in context.cache.parts] == names
    assert (context.params.n_ubatch, context.params.defrag_thold) == (16, 0.5)
    context.cache.clear()
    assert [event.cache for event in seen] == names


@pytest.mark.parametrize(("n_seq_max", "cells"), [(1, 32), (4, 64)])
def test_the_window_half_takes_the_ubatch_of_the_context(n_seq_max: int, cells: int) -> None:
    cache = {**CACHES["iswa"], "kind": "iswa", "n_seq_max": n_seq_max}
    drawn = Scenario.model_validate({"title": "t", "cache": cache, "context": {"n_ubatch": 16}})
    assert [part.params.kv_size for part in make_context(drawn).cache.parts] == [64, cells]


@pytest.mark.parametrize("kind", MADE)
def test_every_operation_runs_on_every_kind(kind: str) -> None:
    timeline = play(scenario(kind, EVERY_OP))
    assert [result.error for result in timeline.results] == [""] * len(EVERY_OP)
    assert [result.ret for result in timeline.results if result.ret is not None] == [0, 0, True, 0]
    last = timeline.cursor().seek(len(timeline.frames) - 1)
    assert [part.used for part in last.parts.values()] == [0] * len(last.parts)


@pytest.mark.parametrize(("kind", "names"), [("unified", ["kv"]), ("legacy", ["kv"]), ("iswa", ["base", "swa"])])
def test_tokens_live_in_cells_of_every_transformer_cache(kind: str, names: list[str]) -> None:
    timeline = play(scenario(kind, EVERY_OP))
    for name in names:
        assert positions(timeline, 3, name, 1) == [*range(13)]
        assert positions(timeline, 4, name, 0) == []
        assert positions(timeline, 7, name, 1) == [pos // 2 for pos in range(4, 17)]
        assert positions(timeline, 10, name, 2) == [0, 1]


def test_a_state_is_one_cell_however_many_tokens() -> None:
    timeline = play(scenario("recurrent", EVERY_OP))
    assert [positions(timeline, step, "kv", 1) for step in (1, 2, 3, 6, 7, 10)] == [[], [9], [12], [16], [8], []]
    assert [positions(timeline, step, "kv", 0) for step in (1, 2, 3, 4)] == [[9], [9], [9], []]


@given(any_scenario)
def test_spans_are_those_the_cache_answers(drawn: Scenario) -> None:
    player = Player(drawn)
    for op in drawn.ops:
        if not player.play(op):
            break
    for part in player.cache.parts:
        spans = snapshot(part).spans
        assert spans.tolist() == player.timeline.frames[-1].parts[part.name].spans.tolist()
        older = drawn.cache.kind in ("legacy", "recurrent")
        for seq, (low, high) in enumerate(spans.tolist()):
            assert part.seq_pos_max(seq) == (max(high, 0) if older else high)
            assert part.seq_pos_min(seq) == low


def test_the_older_caches_say_0_for_nothing_but_nothing_is_shown() -> None:
    for kind in ("legacy", "recurrent"):
        part = make_context(scenario(kind, [])).cache.parts[0]
        assert part.seq_pos_max(2) == 0
        assert snapshot(part).spans.tolist() == [[-1, -1]] * MAX_SEQ


@pytest.mark.parametrize("kind", MADE)
def test_what_a_card_says_of_each_part(kind: str) -> None:
    timeline = play(scenario(kind, EVERY_OP[:4]))
    columns = timeline.card().tables[0].columns
    if kind == "iswa":
        assert columns[3:9] == ("base used", "base head", "base n_kv", "swa used", "swa head", "swa n_kv")
        assert timeline.card().facts == "4 steps in 5 frames, 64 cells in base and 64 cells in swa"
    else:
        assert columns == ("step", "call", "returned", "used", "head", "n_kv", "note")
    first = timeline.cursor().seek(timeline.frame_of(1))
    assert [str(part).startswith(f"Cells of {name}\n") for name, part in first.parts.items()] == [True] * len(
        first.parts
    )
