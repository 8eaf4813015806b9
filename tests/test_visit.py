"""A visitor's place without any page: the two sizes of a step, edits with their way back, playing."""

import pytest

from app.visit import MAX_UNDO, Visit
from kvmodel.beats import beats
from kvmodel.ops import Clear, Decode, TokenRun
from kvmodel.player import play
from kvmodel.scenario import Scenario

SCENARIO = Scenario(
    title="Two steps",
    cache={"kv_size": 32},
    ops=(Decode(tokens=(TokenRun(n=3),)), Clear()),
)


def visit(scenario: Scenario = SCENARIO) -> Visit:
    return Visit(scenario, play(scenario).cursor())


def place(visit: Visit) -> tuple[int, int]:
    return visit.view.step, visit.view.beat


def test_by_operation_a_step_goes_from_end_to_end():
    at = visit()
    places = []
    for _ in range(3):
        at.move(1)
        places.append(place(at))
    assert places == [(1, 0), (2, 0), (2, 0)]
    at.move(-1)
    assert place(at) == (1, 0)


def test_inside_every_beat_comes_once_and_then_the_end_of_the_step():
    at = visit()
    at.inside = True
    first, second = len(beats(at.timeline, 1)), len(beats(at.timeline, 2))
    expected = [(1, beat) for beat in range(1, first + 1)] + [(1, 0)]
    expected += [(2, beat) for beat in range(1, second + 1)] + [(2, 0)]
    forward = []
    while not at.at_end:
        at.move(1)
        forward.append(place(at))
    assert forward == expected
    back = [place(at)]
    while not at.at_start:
        at.move(-1)
        back.append(place(at))
    assert back == [*reversed(expected), (0, 0)]


def test_by_operation_a_step_leaves_the_inside_to_its_nearer_end():
    at = visit()
    at.go(2, 1)
    at.move(1)
    assert place(at) == (2, 0)
    at.go(2, 1)
    at.move(-1)
    assert place(at) == (1, 0)


@pytest.mark.parametrize(
    ("step", "beat", "expected"), [(-5, 0, (0, 0)), (99, 0, (2, 0)), (1, 999, None), (0, 7, (0, 0))]
)
def test_a_place_that_is_not_there_becomes_the_nearest_one(step, beat, expected):
    at = visit()
    at.go(step, beat)
    assert place(at) == (expected or (1, len(beats(at.timeline, 1))))


def test_undo_and_redo_bring_back_the_scenario_and_show_where_it_changed():
    at = visit()
    at.go(1)
    longer = SCENARIO.with_op(Clear())
    at.edit(longer, play(longer), 3)
    assert (at.scenario, place(at)) == (longer, (3, 0))
    at.undo(play(SCENARIO))
    assert (at.scenario, place(at), len(at.past), len(at.future)) == (SCENARIO, (2, 0), 0, 1)
    at.redo(play(longer))
    assert (at.scenario, place(at)) == (longer, (3, 0))


def test_an_edit_after_an_undo_ends_the_way_forth():
    at = visit()
    longer = SCENARIO.with_op(Clear())
    at.edit(longer, play(longer), 3)
    at.undo(play(SCENARIO))
    at.edit(longer, play(longer), 3)
    assert at.future == []


def test_the_way_back_is_bounded():
    at = visit()
    for _ in range(MAX_UNDO + 5):
        at.edit(SCENARIO, at.timeline, 0)
    assert len(at.past) == MAX_UNDO


def test_playing_goes_on_when_it_is_time_and_stops_at_the_end():
    at = visit()
    at.playing, at.due = True, 10.0
    at.tick(9.0, 1.0)
    assert place(at) == (0, 0)
    at.tick(10.0, 1.0)
    assert (place(at), at.due, at.playing) == ((1, 0), 11.0, True)
    at.tick(11.0, 1.0)
    assert (place(at), at.playing) == ((2, 0), False)


def test_a_timer_that_comes_a_little_early_counts():
    at = visit()
    at.playing, at.due = True, 10.0
    at.tick(9.9, 1.0)
    assert place(at) == (1, 0)


def test_what_was_chosen_for_one_step_is_let_go():
    at = visit()
    at.look(ubatch=1, query=2, cell=4)
    at.go(1)
    assert (at.view.ubatch, at.view.query, at.view.cell) == (None, None, 4)
