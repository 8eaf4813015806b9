"""Pending shifts are found with the position their key stands for."""

import pytest

from kvmodel.pending import PendingShift, pending_cells, pending_shift
from kvmodel.player import play
from kvmodel.scenario import Scenario
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline

DECODE = {"op": "decode", "tokens": [{"n": 8}]}


def after(*ops: dict, kind: str = "unified") -> tuple[Timeline, int, PartSnapshot]:
    cache = {"kind": kind, "kv_size": 32}
    timeline = play(Scenario.model_validate({"title": "x", "cache": cache, "ops": [DECODE, *ops]}))
    frame = len(timeline.frames) - 1
    return timeline, frame, timeline.cursor().seek(frame).first


@pytest.mark.parametrize("kind", ["unified", "legacy"])
def test_a_shift_is_told_from_the_position_the_key_was_made_at(kind: str) -> None:
    moment = after({"op": "seq_add", "seq": 0, "p0": 4, "shift": -3}, kind=kind)
    assert pending_cells(moment[2]).tolist() == [4, 5, 6, 7]
    assert pending_shift(*moment, 6) == PendingShift(6, 6, 3, -3)
    assert pending_shift(*moment, 6).shift == -3
    assert pending_shift(*moment, 0) is None


def test_shifts_add_up_until_the_update() -> None:
    twice = [{"op": "seq_add", "seq": 0, "p0": 4, "shift": 5}, {"op": "seq_add", "seq": 0, "p0": 9, "shift": 2}]
    assert pending_shift(*after(*twice), 7) == PendingShift(7, 7, 14, 7)
    assert pending_cells(after(*twice, {"op": "update"})[2]).tolist() == []


@pytest.mark.parametrize(("kind", "handed"), [("unified", 6), ("legacy", -6)])
def test_a_division_hands_over_its_sign_as_the_generation_does(kind: str, handed: int) -> None:
    found = pending_shift(*after({"op": "seq_div", "seq": 0, "p0": 0, "p1": 8, "d": 8}, kind=kind), 6)
    assert found == PendingShift(6, 6, 0, handed)
    assert found.shift == -6


def test_a_freed_cell_waits_for_nothing() -> None:
    moment = after({"op": "seq_add", "seq": 0, "p0": 0, "p1": 4, "shift": -2}, kind="legacy")
    assert pending_cells(moment[2]).tolist() == [2, 3]
    assert pending_shift(*moment, 0) is None
