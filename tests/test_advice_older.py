"""What to do about a failed step of a pair or of an older cache; what is advised is tried."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.advice import advice
from kvmodel.events import Retried
from kvmodel.ops import Decode, Defrag, TokenRun, Update
from kvmodel.player import play
from kvmodel.scenario import Scenario

Json = dict[str, object]
PAIR: Json = {"kind": "iswa", "kv_size": 64, "n_layer": 6, "swa_pattern": 6, "n_pad": 8, "n_swa": 8}
LEGACY: Json = {"kind": "legacy", "kv_size": 32, "n_seq_max": 8}
STATES: Json = {"kind": "recurrent", "kv_size": 3, "n_seq_max": 3}


def scenario(cache: Json, ops: list[Json], **context: object) -> Scenario:
    return Scenario.model_validate({"title": "t", "cache": cache, "context": context, "ops": ops})


def decode(n: int, *seq: int, **more: object) -> Json:
    return {"op": "decode", "tokens": [{"n": n, "seq": list(seq) or [0]}], **more}


def told(cache: Json, ops: list[Json], **context: object) -> list[str]:
    timeline = play(scenario(cache, ops, **context))
    return advice(timeline, timeline.n_steps - 1)


def test_a_window_half_without_a_slot() -> None:
    """Made for ubatches of 20 it has 32 cells, but 17-23 are in the window and no 20 lie in a row beside them."""
    ops = [decode(24), decode(20, n_ubatch=20)]
    assert told(PAIR, ops, n_ubatch=8) == [
        "Send at most 8 tokens in one decode: swa has room for no more.",
        "Set n_ubatch to 8 at most: each part that is stored pushes older positions out of the window.",
        "Set swa_full: swa then has as many cells as base, 64.",
    ]


def test_a_window_half_whose_window_is_in_the_way() -> None:
    ops = [decode(24), decode(12, n_ubatch=12)]
    assert told(PAIR, ops, n_ubatch=8) == [
        "Send at most 8 tokens in one decode: swa has room for no more (cells 8-15 are the longest run left).",
        "Set n_ubatch to 8 at most: each part that is stored pushes older positions out of the window.",
        "Set the n_ubatch of the context to 12: swa is made for it, then with 24 cells.",
        "Set swa_full: swa then has as many cells as base, 64.",
    ]


def test_a_full_half_without_a_slot() -> None:
    """With more cells in base it is swa that has no 6 cells in a row: 12-15 and, before the window, 0-4."""
    first, free, larger = told(PAIR, [decode(60), decode(6)], n_ubatch=8)
    assert (
        first
        == "Send at most 4 tokens in one decode: base has room for no more (cells 60-63 are the longest run left)."
    )
    assert free.startswith("Free 2 more cells: ")
    assert larger == "Make the cache larger and set swa_full: with kv_size 72 the whole batch fits."


def test_a_full_half_without_any_cell() -> None:
    assert told(PAIR, [decode(64), decode(1)], n_ubatch=8)[0] == "No smaller batch helps: no cell of base can be used."


def test_an_older_cache_keeps_what_it_stored() -> None:
    assert told(LEGACY, [decode(20), decode(15, 1)], n_ubatch=8) == [
        "The first 8 tokens are stored and stay: send the others only, or remove these before (seq_rm).",
        "Send parts of at most 4 tokens: cells 28-31 are the longest run left.",
        (
            "Free 3 more cells: remove a sequence that is done (seq_rm), or drop old positions of one and shift the"
            " rest (seq_rm, then seq_add)."
        ),
        "Serve fewer sequences at once: without sequence 0, which has 20 cells for itself, the batch fits.",
        "Make the cache larger: with kv_size 64 the whole batch fits.",
    ]


def test_an_older_cache_with_holes_tries_no_defrag() -> None:
    holes = [decode(4, seq) for seq in range(8)] + [{"op": "seq_rm", "seq": seq} for seq in (0, 2, 4)]
    assert told(LEGACY, [*holes, decode(10, 0)]) == [
        "Ask for a defrag and an update: 12 cells are free, but not in a row.",
        "Send parts of at most 4 tokens: cells 0-3 are the longest run left.",
    ]


def test_a_part_longer_than_an_older_cache() -> None:
    assert told(LEGACY, [decode(33)]) == [
        "Send at most 32 tokens: a part of a batch cannot be longer than the cache.",
        "Make the cache larger: with kv_size 64 the whole batch fits.",
    ]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ([], "Send the batch again: what this decode had stored is removed."),
        (
            [decode(4, 1)],
            (
                "Remove what is left of this batch (seq_rm), then send again what is missing: the roll-back took cell"
                " numbers for positions, so it removed other cells."
            ),
        ),
    ],
)
def test_a_computation_that_failed(before: list[Json], expected: str) -> None:
    failing = {"op": "decode", "tokens": [{"n": 6, "pos": 0}], "fail_at": 0}
    assert told(LEGACY, [*before, failing]) == [expected]


def test_a_state_whose_computation_failed() -> None:
    assert told(STATES, [decode(4), decode(2, fail_at=0)]) == [
        "Send every sequence again from position 0: states cannot be taken back, so all of them were removed."
    ]


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (
            {"seq": 0, "p0": 4},
            [
                "Remove all of sequence 0 (p0 and p1 left open) and send positions 0 to 3 again.",
                "Keep a copy to return to (seq_cp) before tokens that may have to be taken back.",
            ],
        ),
        (
            {"seq": 0, "p1": 4},
            [
                "Remove all of sequence 0 (p0 and p1 left open) and send what is to remain again.",
                "Keep a copy to return to (seq_cp) before tokens that may have to be taken back.",
            ],
        ),
        ({"seq": -1, "p0": 4}, ["Leave p0 and p1 open: of all sequences only all positions can be removed."]),
        ({"seq": 5}, ["Use the id of a sequence that has a place in this cache."]),
    ],
)
def test_a_part_of_a_state_cannot_be_removed(edit: Json, expected: list[str]) -> None:
    assert told(STATES, [decode(8), {"op": "seq_rm", **edit}]) == expected


def test_a_sequence_without_a_place() -> None:
    runs = [{"n": 2, "seq": [0], "pos": 0}, {"n": 3, "seq": [3], "pos": 0}]
    where = "Use sequence ids from 0 to 2, or make the cache with 4 cells at least: it needs one for each."
    assert told(STATES, [{"op": "decode", "tokens": [runs[1]]}]) == [where]
    assert told(STATES, [{"op": "decode", "tokens": runs}], n_ubatch=2) == [
        "The states have taken in 2 tokens of the batch: send the others only.",
        where,
    ]


FILLED = {
    "sizes": st.lists(st.integers(1, 12), min_size=3, max_size=6),
    "removed": st.sets(st.integers(0, 5), max_size=4),
    "n": st.integers(1, 40),
}
"""Sequences one after the other, some of them removed again, and the length of a batch of another one."""


def filled(cache: Json, sizes: list[int], removed: set[int], **context: object) -> Scenario:
    ops = [*(decode(size, seq) for seq, size in enumerate(sizes)), *({"op": "seq_rm", "seq": seq} for seq in removed)]
    return scenario(cache, ops, **context)


def batch(n: int, n_ubatch: int) -> Decode:
    return Decode(tokens=(TokenRun(n=n, seq=(7,)),), n_ubatch=n_ubatch)


def returned(given_: Scenario, n: int, n_ubatch: int) -> int | bool | None:
    return play(given_.with_op(batch(n, n_ubatch))).results[-1].ret


@given(n_ubatch=st.integers(1, 32), **FILLED)
def test_what_is_advised_for_an_older_cache_fits(sizes: list[int], removed: set[int], n: int, n_ubatch: int) -> None:
    failing = filled(LEGACY, sizes, removed).with_op(batch(n, n_ubatch))
    timeline = play(failing)
    codes = [result.ret for result in timeline.results if result.ret is not True]
    if codes != [0] * len(sizes) + [1]:
        return
    words = " ".join(advice(timeline, timeline.n_steps - 1))
    free = int(np.count_nonzero(timeline.cursor().seek(len(timeline.frames)).first.pos < 0))
    part = re.search(r"Send parts of at most (\d+)", words)
    longest = int(part[1]) if part else 0
    assert not longest or returned(failing, longest, 64) == 0
    assert returned(failing, longest + 1, 64) == 1
    if "Ask for a defrag" in words:
        mended = failing.with_op(Defrag()).with_op(Update())
        assert f"an update: {free} cell" in words
        assert [returned(mended, k, 64) for k in (free, free + 1)] == [0, 1]
        return
    enough = re.search(r"with kv_size (\d+) the whole", words)
    assert enough
    larger = failing.model_copy(update={"cache": failing.cache.model_copy(update={"kv_size": int(enough[1])})})
    assert play(larger).results[-1].ret == 0
    more = re.search(r"Free (\d+) more cells?: ", words)
    assert free + int(more[1]) <= n if more else n > 32


@given(n_ubatch=st.integers(1, 40), swa_full=st.booleans(), **FILLED)
def test_what_is_advised_for_a_window_half_fits(
    sizes: list[int], removed: set[int], n: int, n_ubatch: int, swa_full: bool
) -> None:
    before = filled(PAIR | {"kv_size": 48, "swa_full": swa_full, "n_seq_max": 4}, sizes, removed, n_ubatch=4)
    failing = before.with_op(batch(n, n_ubatch))
    timeline = play(failing)
    codes = [result.ret for result in timeline.results if result.ret is not True]
    if codes != [0] * len(sizes) + [1]:
        return
    first = advice(timeline, timeline.n_steps - 1)[0]
    fits = re.match(r"Send at most (\d+) tokens? in one decode: (base|swa)", first)
    if not fits:
        assert first.startswith(("No smaller batch", "Set n_ubatch"))
        return
    length = int(fits[1])
    assert 0 < length < n
    assert fits[2] == "base" or returned(failing, length, n_ubatch) == 0
    if not any(isinstance(event, Retried) and event.again for event in timeline.events_of(timeline.n_steps - 1)):
        assert returned(before, length + 1, n_ubatch) == 1
        assert fits[2] == "base" or returned(before, length, n_ubatch) == 0


def states(kind: str, *ops: dict) -> list[str]:
    cache = {"kind": kind, "kv_size": 2, "n_seq_max": 2}
    timeline = play(Scenario.model_validate({"title": "x", "cache": cache, "ops": list(ops)}))
    return advice(timeline, len(ops))


@pytest.mark.parametrize("kind", ["recurrent", "memory_recurrent"])
def test_states_of_both_versions_are_advised_on(kind: str) -> None:
    filled = {"op": "decode", "tokens": [{"n": 3}]}
    assert "Remove all of sequence 0" in states(kind, filled, {"op": "seq_rm", "seq": 0, "p0": 1})[0]
    assert "ids from 0 to 1" in states(kind, {"op": "decode", "tokens": [{"n": 3, "seq": [5]}]})[0]
    assert len(states(kind, {**filled, "fail_at": 0})) == 1
