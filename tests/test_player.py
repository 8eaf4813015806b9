"""The player: what closes a frame, what a failing operation leaves behind, and when a timeline ends."""

from typing import Any

import pytest

from kvmodel import player as player_module
from kvmodel.events import (
    ComputeFailed,
    Decoded,
    DefragApplied,
    SeqRemoved,
    ShiftApplied,
    UBatchStored,
)
from kvmodel.events_recurrent import SlotFilled, StatesStored
from kvmodel.ops import Decode, TokenRun
from kvmodel.player import LASTING, play
from kvmodel.scenario import Scenario
from kvmodel.timeline import Timeline


def played(ops: list[dict[str, Any]], context: dict[str, Any] | None = None, **cache: Any) -> Timeline:
    settings = {"kv_size": 32, "n_seq_max": 4} | cache
    return play(Scenario.model_validate({"title": "t", "cache": settings, "context": context or {}, "ops": ops}))


def decode(n: int, seq: int = 0, **more: Any) -> dict[str, Any]:
    return {"op": "decode", "tokens": [{"n": n, "seq": [seq]}], **more}


def lasting(timeline: Timeline, step: int) -> list[list[type]]:
    """For every frame of a step the kinds of its lasting events."""
    frames = (timeline.frames[i] for i in timeline.frames_of(step))
    return [[type(event) for event in frame.events if isinstance(event, LASTING)] for frame in frames]


def test_an_empty_scenario_is_one_frame() -> None:
    timeline = played([])
    assert (timeline.n_steps, len(timeline.frames), timeline.frames[0].op) == (1, 1, -1)
    assert list(timeline.frames_of(0)) == [0]
    assert timeline.events_of(0) == ()


def test_every_ubatch_is_a_frame_with_its_tokens() -> None:
    timeline = played([decode(20)], {"n_ubatch": 8})
    assert lasting(timeline, 1) == [[UBatchStored]] * 3
    ubatches = [timeline.frames[i].ubatch for i in timeline.frames_of(1)]
    assert [ubatch.pos.tolist() for ubatch in ubatches if ubatch] == [[*range(8)], [*range(8, 16)], [*range(16, 20)]]
    assert isinstance(timeline.frames[-1].events[-1], Decoded)


def test_a_pending_shift_is_a_frame_of_the_decode_that_applies_it() -> None:
    timeline = played([decode(4), {"op": "seq_add", "seq": 0, "shift": 2}, decode(1)])
    assert lasting(timeline, 3) == [[ShiftApplied], [UBatchStored]]
    assert [timeline.frames[i].ubatch is None for i in timeline.frames_of(3)] == [True, False]


def test_a_retried_decode_shows_the_defrag_between() -> None:
    holes = [decode(8), decode(8, 1), decode(8, 2), {"op": "seq_rm", "seq": 1}, decode(12, 1)]
    timeline = played(holes)
    assert lasting(timeline, 5) == [[DefragApplied], [UBatchStored]]
    assert timeline.results[-1].ret == 0


@pytest.mark.parametrize(
    ("op", "ret"), [(decode(33), 1), ({"op": "decode", "tokens": [{"n": 1, "pos": 9}]}, -1)], ids=["no slot", "refused"]
)
def test_a_decode_that_stores_nothing_is_one_frame(op: dict[str, Any], ret: int) -> None:
    timeline = played([decode(4), op, decode(1)])
    assert lasting(timeline, 2) == [[]]
    assert (timeline.results[1].ret, timeline.results[1].failed) == (ret, True)
    assert timeline.n_steps == 4
    assert timeline.changed(2, 2, "kv").tolist() == []


def test_a_failed_computation_is_stored_then_removed() -> None:
    timeline = played([decode(12, fail_at=1)], {"n_ubatch": 8})
    assert lasting(timeline, 1) == [[UBatchStored], [UBatchStored], [SeqRemoved]]
    events = timeline.events_of(1)
    assert [event.ret for event in events if isinstance(event, ComputeFailed | Decoded)] == [-3, -3]
    assert timeline.cursor().seek(3).first.pos[:9].tolist() == [*range(8), -1]


def test_an_operation_without_effect_is_one_frame() -> None:
    timeline = played([{"op": "defrag"}, {"op": "update"}, {"op": "seq_add", "seq": 0, "shift": 0}])
    assert [len(timeline.frames_of(step)) for step in (1, 2, 3)] == [1, 1, 1]
    assert [(r.ret, r.message) for r in timeline.results] == [(None, ""), (None, "nothing to update"), (None, "")]


def test_a_defrag_that_was_asked_for_happens_at_the_next_update() -> None:
    holes = [decode(4), decode(4, 1), {"op": "seq_rm", "seq": 0}]
    timeline = played([*holes, {"op": "defrag"}, decode(1, 2), decode(1, 2)])
    assert [[DefragApplied] in lasting(timeline, step) for step in (4, 5, 6)] == [False, True, False]


def test_a_call_that_upstream_aborts_ends_the_timeline() -> None:
    timeline = played([decode(4), decode(9), decode(1)], {"n_batch": 8})
    assert (timeline.n_steps, len(timeline.results)) == (3, 2)
    last = timeline.results[-1]
    assert (last.error, last.aborted, last.failed, last.ret) == (
        "the batch has 9 tokens; allowed: n_batch = 8 at most",
        True,
        True,
        None,
    )


def test_a_position_beyond_the_largest_ends_the_timeline() -> None:
    largest = 2**31 - 1
    timeline = played([{"op": "decode", "tokens": [{"n": 2, "pos": largest}]}])
    assert timeline.results[0].error == f"pos is {largest}; allowed: 0 to {largest - 2}"
    assert not timeline.results[0].aborted


def test_a_timeline_has_a_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player_module, "MAX_TIMELINE_BYTES", 1000)
    timeline = played([decode(8), decode(8), decode(8), decode(8)])
    assert [result.error for result in timeline.results] == ["", "", "the timeline takes 1152 bytes; allowed: 1000"]


def test_tokens_are_numbered_through_the_scenario() -> None:
    timeline = played([decode(2), decode(40, 1), {"op": "decode", "tokens": [{"text": ["hi"], "seq": [0]}]}])
    assert [(t.op, t.index, t.text) for t in (timeline.tokens[1], timeline.tokens[41], timeline.tokens[42])] == [
        (0, 1, ""),
        (1, 39, ""),
        (2, 0, "hi"),
    ]
    part = timeline.cursor().seek(len(timeline.frames) - 1).first
    assert part.token[:4].tolist() == [0, 1, 42, -1]


def test_runs_of_one_batch_follow_each_other() -> None:
    runs = (TokenRun(n=2, seq=(0,)), TokenRun(n=2, seq=(1,)), TokenRun(n=1, seq=(0, 1)))
    document = {"title": "t", "cache": {"kv_size": 32, "n_seq_max": 2}}
    timeline = play(Scenario.model_validate(document).with_op(Decode(tokens=runs)))
    assert timeline.results[0].ret == 0
    part = timeline.cursor().seek(1).first
    assert part.pos[:6].tolist() == [0, 1, 0, 1, 2, -1]
    assert [part.owners(cell) for cell in range(6)] == [(0,), (0,), (1,), (1,), (0, 1), ()]


PAIR = {"kind": "iswa", "kv_size": 32, "n_seq_max": 1, "n_layer": 2, "n_pad": 8, "n_swa": 4}
HOLE_IN_BASE = [decode(16), {"op": "seq_rm", "seq": 0, "p0": 2, "p1": 4}]
"""Positions 2 and 3 have left the window half, which is full with 8 others, but leave a hole in the full half."""


def halves(timeline: Timeline, step: int) -> list[list[str]]:
    """For every frame of a step the lasting events with the half they happened in."""
    frames = (timeline.frames[i] for i in timeline.frames_of(step))
    return [[f"{e.cache} {type(e).__name__}" for e in frame.events if isinstance(e, LASTING)] for frame in frames]


BOTH_STORED = ["base UBatchStored", "swa UBatchStored"]


def test_a_frame_of_a_pair_waits_for_both_halves() -> None:
    timeline = played([decode(6), {"op": "seq_cp", "src": 0, "dst": 1}, {"op": "clear"}], {"n_ubatch": 4}, **PAIR)
    assert halves(timeline, 1) == [BOTH_STORED, BOTH_STORED]
    assert halves(timeline, 2) == [["base SeqCopied", "swa SeqCopied"]]
    assert halves(timeline, 3) == [["base Cleared", "swa Cleared"]]


def test_what_one_half_does_alone_is_a_frame_before_the_batch_goes_on() -> None:
    timeline = played([*HOLE_IN_BASE, {"op": "defrag"}, decode(1)], {"n_ubatch": 4}, **PAIR)
    assert halves(timeline, 4) == [["base DefragApplied"], BOTH_STORED]
    moved = timeline.cursor().seek(timeline.frames_of(4)[0])
    assert moved.parts["base"].pos[:16].tolist() == [0, 1, 14, 15, *range(4, 14), -1, -1]
    assert moved.parts["swa"].pos.tolist() == [*range(8, 16)]


def test_what_one_half_does_alone_at_the_end_is_a_frame() -> None:
    timeline = played([*HOLE_IN_BASE, {"op": "update", "optimize": True}], {"n_ubatch": 4}, **PAIR)
    assert halves(timeline, 3) == [["base DefragApplied"]]


def test_an_update_of_both_halves_is_one_frame() -> None:
    edits = [{"op": "seq_rm", "seq": 0, "p0": 1, "p1": 3}, {"op": "seq_add", "seq": 0, "p0": 3, "shift": -2}]
    timeline = played([decode(6), *edits, {"op": "defrag"}, decode(1)], {"n_ubatch": 8}, **PAIR, swa_full=True)
    base = ["base ShiftApplied", "base DefragApplied"]
    assert halves(timeline, 5) == [[*base, "swa ShiftApplied", "swa DefragApplied"], BOTH_STORED]


def test_a_pair_that_retries_shows_the_defrag_of_its_full_half() -> None:
    holes = [{"op": "seq_rm", "seq": 0, "p0": p0, "p1": p0 + 2} for p0 in (2, 6)]
    timeline = played([decode(24), *holes, decode(11)], {"n_ubatch": 4}, **PAIR)
    assert timeline.results[-1].ret == 0
    assert halves(timeline, 4) == [["base DefragApplied"], *[BOTH_STORED] * 3]


LEGACY = {"kind": "legacy", "kv_size": 48}


def test_a_search_in_vain_moves_head_in_the_frame_before() -> None:
    timeline = played([decode(40, n_ubatch=16), decode(20, 1, n_ubatch=8)], **LEGACY)
    assert (timeline.results[1].ret, lasting(timeline, 2)) == (1, [[UBatchStored]])
    [event] = [
        e for frame in timeline.frames_of(2) for e in timeline.frames[frame].events if isinstance(e, UBatchStored)
    ]
    last = timeline.cursor().seek(timeline.frame_of(2)).first
    assert (event.head, last.used) == (0, 48)
    assert last.head == last.counters["head"] == 1


def test_a_defrag_that_a_decode_requests_is_no_frame() -> None:
    ops = [decode(156), {"op": "seq_rm", "seq": 0, "p0": 10, "p1": 100}, decode(1)]
    timeline = played(ops, {"defrag_thold": 0.1}, kind="legacy", kv_size=256)
    assert lasting(timeline, 3) == [[UBatchStored]]
    assert [timeline.cursor().seek(timeline.frame_of(step)).first.counters["do_defrag"] for step in (2, 3)] == [
        False,
        True,
    ]


def test_a_failed_decode_of_the_older_cache_shows_its_roll_back() -> None:
    timeline = played([decode(12, fail_at=1)], {"n_ubatch": 8}, **LEGACY)
    assert lasting(timeline, 1) == [[UBatchStored], [UBatchStored], [SeqRemoved], [SeqRemoved]]
    assert [timeline.cursor().seek(frame).first.used for frame in range(5)] == [0, 8, 12, 4, 0]


RECURRENT = {"kind": "recurrent", "kv_size": 4, "n_seq_max": 4}


def test_a_slot_of_states_shows_its_sources_before_they_are_taken() -> None:
    timeline = played([decode(3), {"op": "seq_cp", "src": 0, "dst": 1}, decode(1, 1)], **RECURRENT)
    assert lasting(timeline, 3) == [[SlotFilled], [StatesStored]]
    filled, stored = (timeline.cursor().seek(frame).first for frame in timeline.frames_of(3))
    assert (filled.src.tolist(), stored.src.tolist()) == ([0, -1, -1, 0], [0, -1, -1, 3])
    assert filled.tail.tolist() == stored.tail.tolist() == [0, 3, -1, -1]
    assert [timeline.frames[frame].ubatch is None for frame in timeline.frames_of(3)] == [True, False]


def test_edits_of_states_are_frames() -> None:
    edits = [
        {"op": "seq_cp", "src": 0, "dst": 1},
        {"op": "seq_add", "seq": 0, "shift": 5},
        {"op": "seq_div", "seq": 0, "d": 2},
        {"op": "seq_rm", "seq": 1, "p0": 1},
        {"op": "seq_rm", "seq": 1},
        {"op": "seq_keep", "seq": 0},
    ]
    timeline = played([decode(3), *edits], **RECURRENT)
    kinds = [[kind.__name__ for frame in lasting(timeline, step) for kind in frame] for step in range(2, 8)]
    assert kinds == [["StateShared"], ["StateShifted"], ["StateDivided"], [], ["StateRemoved"], ["SeqKept"]]
    assert timeline.results[4].ret is False
