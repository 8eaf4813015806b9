"""What to do about a failed step; what is advised is tried, and one token more than advised fails."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.advice import advice
from kvmodel.library import load
from kvmodel.ops import Decode, SeqRm, TokenRun
from kvmodel.player import play
from kvmodel.scenario import Scenario
from tests.random_scenarios import scenarios

Json = dict[str, object]
FREE_4 = (
    "Free 4 more cells: remove a sequence that is done (seq_rm), or drop old positions of one and shift the rest"
    " (seq_rm, then seq_add)."
)


def scenario(ops: list[Json], context: Json | None = None, **cache: object) -> Scenario:
    document = {"title": "t", "cache": {"kv_size": 32, "n_seq_max": 8} | cache, "context": context or {}, "ops": ops}
    return Scenario.model_validate(document)


def decode(n: int, seq: int = 0, **more: object) -> Json:
    return {"op": "decode", "tokens": [{"n": n, "seq": [seq]}], **more}


def last_advice(given: Scenario) -> list[str]:
    timeline = play(given)
    return advice(timeline, timeline.n_steps - 1)


def test_nothing_failed_nothing_to_do() -> None:
    timeline = play(load("chat-context-shift"))
    assert [advice(timeline, step) for step in range(timeline.n_steps)] == [[]] * timeline.n_steps


def test_a_full_cache() -> None:
    timeline = play(load("cache-full"))
    assert advice(timeline, 2) == [
        "Send at most 16 tokens in one decode.",
        FREE_4,
        "Serve fewer sequences at once: without sequence 0, which has 16 cells for itself, the batch fits.",
        "Make the cache larger: with kv_size 64 the whole batch fits.",
    ]


def test_a_cache_without_any_usable_cell() -> None:
    assert last_advice(scenario([decode(32), decode(1)]))[0] == "No smaller batch helps: no cell can be used."


def test_a_ubatch_longer_than_the_cache() -> None:
    """Shorter parts do not help: 33 tokens have no room in 32 cells, however they are cut."""
    assert last_advice(scenario([decode(33)])) == [
        "Send at most 32 tokens in one decode.",
        "Make the cache larger: with kv_size 64 the whole batch fits.",
    ]


def test_a_defrag_that_used_up_its_moves() -> None:
    holes: list[Json] = [decode(2, seq) for _ in range(4) for seq in range(4)]
    ops = [*holes, {"op": "seq_rm", "seq": 1}, {"op": "seq_rm", "seq": 3}, decode(14, 1)]
    first, second, third, fourth = last_advice(scenario(ops, {"n_max_nodes": 8}))
    assert first == "Send at most 6 tokens in one decode (cells 26-31 are the longest run left)."
    assert second == (
        "Run an update with optimize once more, or with a larger n_max_nodes: 16 cells are free but not in a row,"
        " since this defrag used up its moves."
    )
    assert third == "Serve fewer sequences at once: without sequence 0, which has 8 cells for itself, the batch fits."
    assert fourth == "Make the cache larger: with kv_size 64 the whole batch fits."


def test_a_window() -> None:
    timeline = play(load("sliding-window"))
    assert advice(timeline, 10) == [
        "Send at most 11 tokens in one decode (cells 0-10 are the longest run left).",
        "Set n_ubatch to 11 at most: each part that is stored pushes older positions out of the window.",
        "Make the cache larger: 64 cells hold every window and one ubatch.",
    ]


def test_a_window_that_still_shows_every_cell() -> None:
    ops = [decode(8, 0), decode(8, 1), decode(8, 2), decode(8, 3), decode(1, 0)]
    assert last_advice(scenario(ops, swa_type="standard", n_swa=9)) == [
        "No smaller batch helps: no cell can be used.",
        "Serve fewer sequences at once: without sequence 1, which has 8 cells for itself, the batch fits.",
        "Make the cache larger: 608 cells hold every window and one ubatch.",
    ]


def test_a_part_longer_than_what_left_the_window() -> None:
    ops = [decode(32), decode(20, n_ubatch=20)]
    assert last_advice(scenario(ops, swa_type="standard", n_swa=14, n_seq_max=1)) == [
        "Send at most 19 tokens in one decode (cells 0-18 are the longest run left).",
        "Set n_ubatch to 19 at most: each part that is stored pushes older positions out of the window.",
        "Make the cache larger: 64 cells hold every window and one ubatch.",
    ]


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        ({"n": 2, "pos": 12}, "Start sequence 0 at position 10: positions 10 to 11 would be left out."),
        ({"n": 2, "pos": 11}, "Start sequence 0 at position 10: position 10 would be left out."),
        (
            {"n": 2, "pos": 4},
            "Start sequence 0 at position 10, or remove what it has from position 4 on first (seq_rm).",
        ),
        ({"n": 1, "pos": 10, "seq": [64]}, "Give every token at least one sequence id, each from 0 to 63."),
        (
            {"n": 1, "pos": 10, "seq": [0, 1]},
            (
                "Bring the sequences to one span first: remove sequence 1 (seq_rm) and copy the other onto it (seq_cp)."
                " Or send a token of its own to each."
            ),
        ),
    ],
)
def test_a_refused_batch(batch: Json, expected: str) -> None:
    assert last_advice(scenario([decode(10), {"op": "decode", "tokens": [batch]}])) == [expected]


def test_a_batch_with_a_gap() -> None:
    ops: list[Json] = [{"op": "decode", "tokens": [{"n": 1, "pos": 0}, {"n": 1, "pos": 2}]}]
    assert last_advice(scenario(ops)) == ["Send the positions of sequence 0 without leaving any out."]


def test_a_failed_computation() -> None:
    assert last_advice(scenario([decode(20, fail_at=1)], {"n_ubatch": 8})) == [
        "The ubatches before number 1 are stored; send the rest again: sequence 0 from position 8 on."
    ]


def test_a_call_that_ends_the_process() -> None:
    assert last_advice(scenario([decode(4), decode(5)], {"n_batch": 4})) == [
        "llama.cpp would end its process here, so the timeline ends: change or remove step 2."
    ]


@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    removed=st.sets(st.integers(0, 5), max_size=4),
    n=st.integers(1, 40),
    n_ubatch=st.integers(1, 40),
)
def test_the_advised_length_fits_and_one_more_does_not(
    sizes: list[int], removed: set[int], n: int, n_ubatch: int
) -> None:
    before = scenario([decode(size, seq) for seq, size in enumerate(sizes)], {"n_ubatch": n_ubatch})
    before = before.model_copy(update={"ops": (*before.ops, *(SeqRm(seq=seq) for seq in sorted(removed)))})

    def with_batch(length: int) -> Scenario:
        return before.with_op(Decode(tokens=(TokenRun(n=length, seq=(7,)),)))

    timeline = play(with_batch(n))
    if timeline.results[-1].ret != 1:
        return
    told = advice(timeline, timeline.n_steps - 1)[0]
    fits = re.fullmatch(r"Send at most (\d+) tokens? in one decode.*\.", told)
    if not fits:
        assert told.startswith(("No smaller batch", "Set n_ubatch"))
        return
    length = int(fits[1])
    assert 0 < length < n
    assert [play(with_batch(k)).results[-1].ret for k in (length, length + 1)] == [0, 1]


@given(before=scenarios(max_ops=10), n=st.integers(1, 40), seq=st.integers(0, 3))
def test_the_advised_length_fits_after_anything(before: Scenario, n: int, seq: int) -> None:
    failing = before.with_op(Decode(tokens=(TokenRun(n=n, seq=(seq,)),)))
    timeline = play(failing)
    if timeline.n_steps <= len(failing.ops) or timeline.results[-1].ret != 1:
        return
    fits = re.match(r"Send at most (\d+)", advice(timeline, timeline.n_steps - 1)[0])
    if fits:
        smaller = Decode(tokens=(TokenRun(n=int(fits[1]), seq=(seq,)),))
        assert play(failing.with_op(smaller)).results[-1].ret == 0
