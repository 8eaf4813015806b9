"""The list of quirks: complete, well formed, and named rightly by whoever shows one."""

import ast
import re
from typing import Any

import pytest

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.unified import UnifiedCache
from kvmodel.context import Context, ContextParams
from kvmodel.errors import ParamError
from kvmodel.events import Event, QuirkSeen
from kvmodel.player import play
from kvmodel.quirks import LEGACY, QUIRKS, UNIFIED, quirk
from kvmodel.scenario import Scenario
from kvmodel.types import CacheParams, SWAType
from tests.sources import parsed, python_files, shown

IDS = {
    "div-shift-sign": (UNIFIED,),
    "yarn-shift-magnitude": (UNIFIED,),
    "cp-double-count": (UNIFIED,),
    "purge-leak": (UNIFIED,),
    "swa-shift-lost": (UNIFIED,),
    "defrag-zero-budget": (UNIFIED, LEGACY),
    "equal-split-overflow": (UNIFIED,),
    "state-truncated": (UNIFIED, LEGACY),
    "state-ids-dropped": (UNIFIED,),
    "state-empty-seq": (UNIFIED, LEGACY),
    "bf16-shift-abort": (UNIFIED, LEGACY),
    "restore-by-index": (LEGACY,),
    "partial-decode": (LEGACY,),
    "stale-delta": (LEGACY,),
    "recurrent-swap-loss": (LEGACY,),
    "recurrent-dangling-tail": (LEGACY,),
    "recurrent-self-copy": (LEGACY,),
    "no-seq": (UNIFIED,),
    "dead-batch-checks": (UNIFIED,),
}
MODEL_FILES = python_files("kvmodel")


def named_in_calls(tree: ast.Module) -> set[str]:
    """Ids given as `quirk=` or to a `_quirk` helper; one that is no plain string is told as its source."""
    nodes = list(ast.walk(tree))
    given = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "quirk"]
    given += [
        node.args[0]
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "_quirk"
    ]
    names = {value.value if isinstance(value, ast.Constant) else ast.unparse(value) for value in given}
    passed_on = {arg.arg for node in nodes if isinstance(node, ast.FunctionDef) for arg in node.args.args}
    return names - ({"quirk"} & passed_on)


def named_in_words(text: str) -> set[str]:
    """Ids that comments and docstrings point at: (quirk some-id)."""
    return set(re.findall(r"quirk ([a-z0-9]+(?:-[a-z0-9]+)+)", text))


def test_the_list_is_complete() -> None:
    assert {entry.id: entry.versions for entry in QUIRKS} == IDS
    assert len(QUIRKS) == len(IDS)


@pytest.mark.parametrize("entry", QUIRKS, ids=lambda entry: entry.id)
def test_an_entry_is_whole(entry: Any) -> None:
    assert quirk(entry.id) is entry
    assert entry.title[0].isupper()
    assert not entry.title.endswith(".")
    assert entry.what.endswith(".")
    assert entry.see.endswith(".")


def test_an_unknown_id_is_told() -> None:
    with pytest.raises(ParamError, match="quirk is 'haunted'; allowed: div-shift-sign, "):
        quirk("haunted")


@pytest.mark.parametrize("path", MODEL_FILES, ids=shown)
def test_every_quirk_that_is_named_is_listed(path: Any) -> None:
    assert named_in_calls(parsed(path)) - IDS.keys() == set()
    assert named_in_words(path.read_text(encoding="utf-8")) - IDS.keys() == set()


def test_names_are_found_where_they_stand() -> None:
    found = set().union(*(named_in_calls(parsed(path)) for path in MODEL_FILES))
    assert found >= {"cp-double-count", "div-shift-sign", "defrag-zero-budget", "swa-shift-lost", "purge-leak"}
    assert named_in_calls(ast.parse("emit(QuirkSeen(quirk=name)); self._quirk('odd', detail)")) == {"name", "odd"}
    assert named_in_words("as upstream (quirk no-such-thing)") == {"no-such-thing"}


def quirks_of(ops: list[dict[str, Any]], **cache: Any) -> list[list[str]]:
    """Ids that each step of a small scenario shows."""
    document = {"title": "t", "cache": {"kv_size": 32, "n_seq_max": 4} | cache, "context": {"n_ubatch": 8}, "ops": ops}
    timeline = play(Scenario.model_validate(document))
    assert [result.error for result in timeline.results] == [""] * len(ops)
    steps = (timeline.events_of(step) for step in range(1, timeline.n_steps))
    return [[event.quirk for event in events if isinstance(event, QuirkSeen)] for events in steps]


def decode(n: int, *seq: int, **more: Any) -> dict[str, Any]:
    return {"op": "decode", "tokens": [{"n": n, "seq": seq or (0,)} | more]}


def test_dividing_shows_its_sign() -> None:
    assert quirks_of([decode(8), {"op": "seq_div", "seq": 0, "d": 2}]) == [[], ["div-shift-sign"]]


def test_copying_twice_shows_the_double_count_and_its_consequence() -> None:
    copy = {"op": "seq_cp", "src": 0, "dst": 1}
    ops = [decode(4), copy, copy, {"op": "seq_rm", "seq": 1}, decode(1, 1, pos=0)]
    assert quirks_of(ops) == [[], [], ["cp-double-count"], [], []]
    document = {"title": "t", "cache": {"kv_size": 32, "n_seq_max": 4}, "ops": ops}
    refused = play(Scenario.model_validate(document)).results[-1]
    assert (refused.ret, "X = 3" in refused.message) == (-1, True)


def test_a_token_that_names_a_sequence_twice() -> None:
    assert quirks_of([decode(1, 2, 2)]) == [["cp-double-count"]]


def test_a_budget_without_moves_is_no_limit() -> None:
    holes = [decode(4), decode(4, 1), {"op": "seq_rm", "seq": 0}]
    update = {"op": "update", "optimize": True, "n_max_nodes": 7}
    assert quirks_of([*holes, update]) == [[], [], [], ["defrag-zero-budget"]]


def test_a_trial_store_that_drops_shifts() -> None:
    seen: list[Event] = []
    params = CacheParams(kv_size=32, swa_type=SWAType.STANDARD, n_swa=4)
    cache = UnifiedCache(params, seen.append)
    Context(cache).decode(Batch.from_runs([(0, 32, (0,))]))
    cache.seq_add(0, 0, -1, 1)
    assert cache.prepare([UBatch.plain(Batch.from_runs([(33, 8, (0,))]))]) == (0,)
    assert [event.quirk for event in seen if isinstance(event, QuirkSeen)] == ["swa-shift-lost"]
    assert cache.arrays["shift"][:10].tolist() == [0] * 8 + [1] * 2


def test_a_failed_decode_that_leaves_purged_cells_empty() -> None:
    seen: list[Event] = []
    params = CacheParams(kv_size=32, n_seq_max=2, swa_type=SWAType.STANDARD, n_swa=4)
    cache = UnifiedCache(params, seen.append)
    context = Context(cache, ContextParams(n_ubatch=4))
    context.decode(Batch.from_runs([(0, 12, (0,))]))
    context.decode(Batch.from_runs([(0, 2, (1,))]))
    context.decode(Batch.from_runs([(12, 18, (0,))]))
    cache.seq_cp(1, 2, 0, -1)
    cache.head = 8
    assert cache.prepare([UBatch.plain(Batch.from_runs([(30, n, (0,))])) for n in (4, 33)]) is None
    assert [event.quirk for event in seen if isinstance(event, QuirkSeen)] == ["purge-leak"]
    assert cache.arrays["pos"][:14].tolist() == [-1] * 8 + [8, 9, 10, 11, 0, 1]
