"""Sentences about pairs and the older caches, and that nothing any cache does goes without one."""

from hypothesis import given

from kvmodel.advice import advice
from kvmodel.events import DefragApplied, SlotSearched
from kvmodel.explain import explain, explain_search
from kvmodel.player import play
from kvmodel.scenario import Scenario
from kvmodel.timeline import Timeline
from tests.random_scenarios import any_scenario

Json = dict[str, object]


def played(cache: Json, ops: list[Json], **context: object) -> Timeline:
    return play(Scenario.model_validate({"title": "t", "cache": cache, "context": context, "ops": ops}))


def decode(n: int, seq: int = 0, **more: object) -> Json:
    return {"op": "decode", "tokens": [{"n": n, "seq": [seq]}], **more}


def said(timeline: Timeline, step: int) -> list[str]:
    return [explain(event) for event in timeline.events_of(step)]


def is_sentence(line: str) -> bool:
    """A capital, a figure or a name first, a full stop last, nothing as Python prints it."""
    begins = not line[0].islower() or line.startswith("llama.cpp")
    return begins and line.endswith(".") and not any(odd in line for odd in ("  ", "array(", "np.", "None", "()"))


@given(any_scenario)
def test_whatever_happens_is_told_in_whole_sentences(drawn: Scenario) -> None:
    timeline = play(drawn)
    told = [line for step in range(timeline.n_steps) for line in (*said(timeline, step), *advice(timeline, step))]
    for i in range(len(timeline.frames)):
        told += [
            line for e in timeline.frames[i].events if isinstance(e, SlotSearched) for line in explain_search(e.search)
        ]
    assert [line for line in told if not is_sentence(line)] == []
    failed = [step for step in range(1, timeline.n_steps) if timeline.results[step - 1].failed]
    assert [step for step in failed if not advice(timeline, step)] == []


def test_an_older_search_is_stopped_by_tokens() -> None:
    timeline = played(
        {"kind": "legacy", "kv_size": 16}, [decode(12), {"op": "seq_rm", "seq": 0, "p1": 3}, decode(5, 1)]
    )
    assert said(timeline, 3)[1] == (
        "Ubatch 0: 5 cells in a row sought from head, cell 0; cells 0-2 are too few, since cells 3-11 hold tokens;"
        " cells 12-15 are too few before the end of the cache; cells 0-2 are too few, since cell 3 holds a token;"
        " no slot: 7 cells free, the longest run is 4 (cells 12-15)."
    )


def test_an_older_defrag_leaves_head_behind_the_cells_in_use() -> None:
    holes = [decode(4), decode(4, 1), {"op": "seq_rm", "seq": 0}, {"op": "defrag"}, {"op": "update"}]
    timeline = played({"kind": "legacy", "kv_size": 16}, holes)
    assert said(timeline, 4) == ["A defrag will be part of the next update."]
    assert said(timeline, 5)[-1] == "The defrag moved 4 cells to cells 0-3; head goes from 0 to 4."
    [applied] = [event for event in timeline.events_of(5) if isinstance(event, DefragApplied)]
    assert (applied.head, timeline.cursor().seek(timeline.frame_of(5)).first.head) == (4, 4)


def test_an_older_decode_says_why_it_asks_for_no_defrag() -> None:
    timeline = played({"kind": "legacy", "kv_size": 32}, [decode(4)], defrag_thold=0.1)
    assert said(timeline, 1)[-2:] == [
        "No defrag: fewer than 128 cells in view never ask for it.",
        "Decoding 4 tokens returned 0: done.",
    ]


def test_a_failed_computation_of_an_older_cache() -> None:
    timeline = played({"kind": "legacy", "kv_size": 32}, [decode(4, fail_at=0)])
    failed, removed, _ = said(timeline, 1)[-3:]
    assert failed == "Computing ubatch 0 failed with return code -3; what follows is the roll-back of the whole decode."
    assert removed == "Positions 0 to 3 of every sequence removed; free now: 4 cells (0-3); head stays at 0."


def test_each_half_of_a_pair_is_named() -> None:
    cache: Json = {"kind": "iswa", "kv_size": 32, "n_swa": 4, "n_layer": 2}
    assert said(played(cache, [decode(4), {"op": "seq_rm", "seq": 0, "p0": 2}]), 2) == [
        "In base: Positions from 2 on of sequence 0 removed; free now: 2 cells (2-3); head goes from 4 to 2.",
        "In swa: Positions from 2 on of sequence 0 removed; free now: 2 cells (2-3); head goes from 4 to 2.",
    ]
