"""Timelines: any frame, reached any way, is what a fresh play shows; deltas are what differs; nothing is writable."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kvmodel.configs import Kind
from kvmodel.errors import ParamError
from kvmodel.events import Event, UBatchStored
from kvmodel.library import load
from kvmodel.limits import MAX_OPS
from kvmodel.ops import SeqAdd
from kvmodel.player import LASTING, Player, play
from kvmodel.scenario import Scenario
from kvmodel.snapshot import PartSnapshot, snapshot
from kvmodel.timeline import Frame, Timeline, Tokens
from tests.random_scenarios import any_scenario, scenarios

Arrays = dict[str, NDArray[Any]]


Parts = dict[str, PartSnapshot]
ALONE = {"ShiftApplied", "DefragApplied"}
"""What an update may do to one half of a pair only."""

KINDS = ("unified", "iswa", "legacy", "recurrent")


def live(player: Player) -> Parts:
    return {part.name: snapshot(part) for part in player.cache.parts}


class Recorder(Player):
    """Plays, and keeps a copy of the live caches and every event by itself."""

    def __init__(self, scenario: Scenario) -> None:
        self.seen: list[Event] = []
        self.copies: list[Parts] = []
        super().__init__(scenario)
        for op in scenario.ops:
            goes_on = self.play(op)
            self.copies[-1] = live(self)
            if not goes_on:
                break

    def receive(self, event: Event) -> None:
        self.seen.append(event)
        super().receive(event)

    def close_frame(self, *deltas: Any) -> None:
        self.copies.append(live(self))
        super().close_frame(*deltas)


def assert_same(shown: Parts, expected: Parts) -> None:
    assert shown.keys() == expected.keys()
    for name, part in expected.items():
        assert shown[name].arrays.keys() == part.arrays.keys()
        for array, values in part.arrays.items():
            assert shown[name].arrays[array].tolist() == values.tolist(), (name, array)
        assert shown[name].counters == part.counters
        assert shown[name].spans.tolist() == part.spans.tolist()


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), visits=st.lists(st.integers(-2, 60), min_size=1, max_size=12))
def test_any_frame_in_any_order_is_what_the_cache_held(kind: Kind, data: st.DataObject, visits: list[int]) -> None:
    scenario = data.draw(scenarios(kind=kind))
    recorder = Recorder(scenario)
    timeline = play(scenario)
    cursor = timeline.cursor()
    assert len(timeline.frames) == len(recorder.copies)
    for frame in visits:
        clamped = min(max(frame, 0), len(timeline.frames) - 1)
        shown = cursor.seek(frame)
        assert shown.frame == cursor.frame == clamped
        assert_same(shown.parts, recorder.copies[clamped])


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_step_is_what_playing_up_to_it_gives(kind: Kind, data: st.DataObject) -> None:
    scenario = data.draw(scenarios(max_ops=8, kind=kind))
    timeline = play(scenario)
    cursor = timeline.cursor()
    for step in reversed(range(timeline.n_steps)):
        fresh = Player(scenario)
        for op in scenario.ops[:step]:
            fresh.play(op)
        assert_same(cursor.seek(timeline.frame_of(step)).parts, live(fresh))


@given(any_scenario)
def test_deltas_are_the_differences(scenario: Scenario) -> None:
    recorder = Recorder(scenario)
    frames = recorder.timeline.frames
    for (before, now), frame in zip(pairwise(recorder.copies), frames[1:], strict=True):
        for name, part in now.items():
            delta = frame.parts[name].delta
            differs = np.zeros(part.n_cells, np.bool_)
            for array, values in part.arrays.items():
                old = before[name].arrays[array]
                differs |= old != values
                assert delta.before[array].tolist() == old[delta.cells].tolist()
                assert delta.after[array].tolist() == values[delta.cells].tolist()
            assert delta.cells.tolist() == np.flatnonzero(differs).tolist()


@given(any_scenario)
def test_history_and_changes_agree_with_the_arrays(scenario: Scenario) -> None:
    recorder = Recorder(scenario)
    timeline = recorder.timeline
    for name, start in timeline.start.items():
        rows = [
            np.stack([values.astype(np.int64) for values in parts[name].arrays.values()]) for parts in recorder.copies
        ]
        changed = np.array([(now != before).any(axis=0) for before, now in pairwise(rows)])
        for cell in range(start.n_cells):
            expected = [frame for frame in range(1, len(rows)) if changed[frame - 1, cell]]
            assert list(timeline.history(cell, name)) == expected
        if len(rows) > 1:
            everything = timeline.changed(1, len(rows) - 1, name)
            assert everything.tolist() == np.flatnonzero(changed.any(axis=0)).tolist()


@given(any_scenario)
def test_every_event_stands_in_one_frame_of_its_operation(scenario: Scenario) -> None:
    recorder = Recorder(scenario)
    timeline = recorder.timeline
    told = [event for step in range(timeline.n_steps) for event in timeline.events_of(step)]
    assert [id(event) for event in told] == [id(event) for event in recorder.seen]
    assert [frame for step in range(timeline.n_steps) for frame in timeline.frames_of(step)] == [
        *range(len(timeline.frames))
    ]
    for step in range(1, timeline.n_steps):
        assert {timeline.frames[i].op for i in timeline.frames_of(step)} == {step - 1}


@given(any_scenario)
def test_series_are_the_counters_of_the_steps(scenario: Scenario) -> None:
    timeline = play(scenario)
    cursor = timeline.cursor()
    for name in timeline.start:
        parts = [cursor.seek(timeline.frame_of(step)).parts[name] for step in range(timeline.n_steps)]
        for counter in ("head", "used", "used_max_p1", "n_kv", "fragmentation"):
            assert timeline.series(counter, name).tolist() == [float(part.counters[counter]) for part in parts]


def base_and_swa(frame: Frame) -> tuple[list[str], list[str]]:
    """The kinds of the lasting events of each half, in order."""
    lasting = [event for event in frame.events if isinstance(event, LASTING)]
    base, swa = ([type(event).__name__ for event in lasting if event.cache == half] for half in ("base", "swa"))
    return base, swa


@given(scenarios(kind="iswa"))
def test_both_halves_of_a_pair_are_at_the_same_moment(scenario: Scenario) -> None:
    timeline = play(scenario)
    for frame in timeline.frames:
        base, swa = base_and_swa(frame)
        stored = [event.ubatch for event in frame.events if isinstance(event, UBatchStored)]
        assert stored in ([], [stored[0]] * 2 if stored else [])
        assert {*base} - ALONE == {*swa} - ALONE
        assert len(base) <= 2
        assert not stored or base == swa == ["UBatchStored"]


@pytest.fixture(scope="module")
def chat() -> Timeline:
    return play(load("chat-context-shift"))


def test_a_snapshot_cannot_be_written(chat: Timeline) -> None:
    part = chat.cursor().seek(5).first
    for values in part.arrays.values():
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        part.spans[0, 0] = 3


def test_a_snapshot_stays_what_it_was(chat: Timeline) -> None:
    cursor = chat.cursor()
    early = cursor.seek(2).first
    before = early.pos.tolist()
    cursor.seek(len(chat.frames) - 1)
    assert early.pos.tolist() == before != cursor.snapshot().first.pos.tolist()


def test_cursors_do_not_disturb_each_other(chat: Timeline) -> None:
    one, other = chat.cursor(), chat.cursor()
    one.seek(9)
    assert other.snapshot().first.used == 0
    other.seek(3)
    assert one.frame == 9


def test_a_step_says_which_cells_changed(chat: Timeline) -> None:
    frames = chat.frames_of(12)
    assert chat.changed(frames[0], frames[-1], "kv").tolist() == [*range(10, 36)]
    assert chat.changed(5, 4, "kv").tolist() == []


def test_tokens_stay_with_their_cells(chat: Timeline) -> None:
    part = chat.cursor().seek(chat.frame_of(2)).first
    words = "".join(chat.tokens[serial].text for serial in part.token.tolist() if serial >= 0)
    assert words == "You are a kind ghost who tends a library. User: Where do you keep the sea charts?"
    assert [chat.tokens[10].op, chat.tokens[10].index] == [1, 0]


def test_tokens_are_a_sequence() -> None:
    tokens = Tokens()
    assert (tokens.add(0, 2, ("a", "b")), tokens.add(3, 3, None), len(tokens)) == (0, 2, 5)
    assert [(token.op, token.index, token.text) for token in tokens] == [
        (0, 0, "a"),
        (0, 1, "b"),
        (3, 0, ""),
        (3, 1, ""),
        (3, 2, ""),
    ]
    assert [token.index for token in tokens[1:3]] == [1, 0]
    assert tokens[-1].index == 2
    with pytest.raises(IndexError):
        tokens[5]


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda chat: chat.frame_of(-1), "step is -1; allowed: a whole number from 0 to 15"),
        (lambda chat: chat.frames_of(16), "step is 16; allowed: a whole number from 0 to 15"),
        (lambda chat: chat.events_of(-1), "step is -1; allowed: a whole number from 0 to 15"),
        (lambda chat: chat.events_of(64), "step is 64; allowed: a whole number from 0 to 15"),
        (lambda chat: chat.events_of("x"), "step is 'x'; allowed: a whole number from 0 to 15"),
        (
            lambda chat: chat.series("x", "kv"),
            "counter is 'x'; allowed: head, used, used_max_p1, n_kv, has_shift, fragmentation",
        ),
        (lambda chat: chat.series("used", "base"), "part is 'base'; allowed: kv"),
        (lambda chat: chat.series([], "kv"), "counter is []; allowed: head, used,"),
        (lambda chat: chat.changed(0, 1, "swa"), "part is 'swa'; allowed: kv"),
        (lambda chat: next(chat.history(4096, "kv")), "cell is 4096; allowed: a whole number from 0 to"),
        (lambda chat: next(chat.history(0, "swa")), "part is 'swa'; allowed: kv"),
        (lambda chat: chat.cursor().seek("x"), "frame is 'x'; allowed: a whole number"),
        (lambda _: play(None), "scenario is None; allowed: a Scenario"),
    ],
)
def test_what_a_timeline_does_not_have_is_refused(chat: Timeline, ask: Callable[[Any], object], told: str) -> None:
    with pytest.raises(ParamError, match=re.escape(told)):
        ask(chat)


def test_ten_thousand_operations_play_and_step() -> None:
    up, down = SeqAdd(seq=0, shift=1), SeqAdd(seq=0, shift=-1)
    document = {
        "title": "t",
        "cache": {"kv_size": 32},
        "ops": [{"op": "decode", "tokens": [{"n": 4}]}],
    }
    scenario = Scenario.model_validate(document)
    scenario = scenario.model_copy(update={"ops": (*scenario.ops, *((up, down) * (MAX_OPS // 2))[: MAX_OPS - 1])})
    timeline = play(scenario)
    cursor = timeline.cursor()
    assert timeline.n_steps == MAX_OPS + 1
    assert cursor.seek(timeline.frame_of(MAX_OPS)).first.pos[:5].tolist() == [1, 2, 3, 4, -1]
    assert cursor.seek(timeline.frame_of(MAX_OPS - 1)).first.pos[:5].tolist() == [0, 1, 2, 3, -1]
    assert cursor.seek(timeline.frame_of(1)).first.pos[:5].tolist() == [0, 1, 2, 3, -1]
    assert sum(frame.parts["kv"].delta.nbytes for frame in timeline.frames) < 4 << 20
