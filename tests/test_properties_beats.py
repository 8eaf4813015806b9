"""Beats of any scenario: they end where the step ends, tell something each, and lose no cell on the way."""

from collections import Counter
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from kvmodel.beats import Beat, beats, parts_at
from kvmodel.events import DefragApplied, SlotSearched
from kvmodel.player import play
from kvmodel.scenario import Scenario
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Cursor
from tests.random_scenarios import any_scenario


def contents(part: PartSnapshot) -> Counter[tuple[int, int]]:
    """Every (position, owners) with how many cells hold it."""
    return Counter(zip(part.pos.tolist(), part.seqs.tolist(), strict=True))


def same(one: PartSnapshot, other: PartSnapshot) -> bool:
    arrays = all((one.arrays[name] == values).all() for name, values in other.arrays.items())
    return arrays and one.counters == other.counters and bool((one.spans == other.spans).all())


@given(any_scenario)
def test_the_last_beat_of_a_step_shows_the_step(scenario: Scenario) -> None:
    timeline = play(scenario)
    cursor = timeline.cursor()
    for step in range(timeline.n_steps):
        told = beats(timeline, step)
        if len(told):
            shown = parts_at(cursor, told[-1])
            expected = cursor.seek(timeline.frame_of(step)).parts
            assert shown.keys() == expected.keys()
            assert all(same(shown[name], part) for name, part in expected.items())


@given(any_scenario)
def test_beats_are_in_order_and_all_say_something(scenario: Scenario) -> None:
    timeline = play(scenario)
    for step in range(timeline.n_steps):
        told = beats(timeline, step)
        listed = list(told)
        assert len(told) == len(listed)
        assert all(beat.sentence.endswith(".") and len(beat.sentence) > 10 for beat in listed)
        places = [(beat.frame, beat.place) for beat in listed]
        assert places == sorted(places)
        assert [key for key, _ in groupby(listed, lambda beat: id(beat.event))] == [
            id(event)
            for event in timeline.events_of(step)
            if not isinstance(event, DefragApplied) or len(event.plan.src)
        ]


@given(any_scenario)
def test_marks_lie_inside_the_part_they_mean(scenario: Scenario) -> None:
    timeline = play(scenario)
    for step in range(timeline.n_steps):
        for beat in beats(timeline, step):
            marks = beat.marks
            runs = (marks.tried, marks.blocked, marks.slot)
            marked = any(end for _, end in runs) or len(marks.cells)
            assert not marked or beat.part in timeline.start
            n = timeline.start[beat.part].n_cells if marked else 0
            assert all(0 <= begin < end <= n or (begin, end) == (0, 0) for begin, end in runs)
            assert marks.cells.tolist() == sorted({*marks.cells.tolist()} & {*range(n)})


@given(any_scenario)
def test_a_defrag_loses_no_cell_on_the_way(scenario: Scenario) -> None:
    timeline = play(scenario)
    cursor = timeline.cursor()
    for step in range(timeline.n_steps):
        moves = [beat for beat in beats(timeline, step) if isinstance(beat.event, DefragApplied)]
        for _, group in groupby(moves, lambda beat: id(beat.event)):
            assert_moves(cursor, list(group))


@given(
    kind=st.sampled_from(["unified", "legacy"]),
    lengths=st.lists(st.integers(1, 4), min_size=4, max_size=16),
    removed=st.sets(st.integers(0, 3), min_size=1, max_size=3),
    n_max_nodes=st.integers(2, 60),
)
def test_a_defrag_under_a_budget_loses_no_cell_on_the_way(
    kind: str, lengths: list[int], removed: set[int], n_max_nodes: int
) -> None:
    """One layer: a move takes 6 nodes, so up to 9 moves, and with fewer than 8 nodes as many as there are."""
    ops = [{"op": "decode", "tokens": [{"n": n, "seq": [i % 4]}]} for i, n in enumerate(lengths)]
    ops += [{"op": "seq_rm", "seq": seq} for seq in sorted(removed)]
    update = [{"op": "defrag"}, {"op": "update", "n_max_nodes": n_max_nodes}]
    document = {"title": "t", "cache": {"kind": kind, "kv_size": 64, "n_seq_max": 4}, "ops": [*ops, *update]}
    timeline = play(Scenario.model_validate(document))
    moves = [beat for beat in beats(timeline, timeline.n_steps - 1) if isinstance(beat.event, DefragApplied)]
    most = (n_max_nodes - 2) // 6
    assert not most or len(moves) <= most
    if moves:
        assert_moves(timeline.cursor(), moves)


def assert_moves(cursor: Cursor, moves: list[Beat]) -> None:
    part = moves[0].part
    shown = [parts_at(cursor, beat)[part] for beat in moves]
    after = cursor.seek(moves[0].frame).parts[part]
    assert [beat.marks.n_moved for beat in moves] == [*range(1, len(moves) + 1)]
    assert all(contents(each) == contents(after) for each in shown)
    assert same(shown[-1], after)
    for one, other in zip(shown, [*shown[1:], after], strict=True):
        changed = (one.pos != other.pos) | (one.seqs != other.seqs)
        assert other is after or changed.any()


@given(any_scenario)
def test_what_a_search_marks_is_what_it_says(scenario: Scenario) -> None:
    """Blocked cells are in use; the run that was found is as long as was asked for."""
    timeline = play(scenario)
    cursor = timeline.cursor()
    for step in range(timeline.n_steps):
        for beat in beats(timeline, step):
            if not isinstance(beat.event, SlotSearched):
                continue
            begin, end = beat.marks.slot
            assert end - begin in (0, beat.event.search.n_tokens)
            if beat.event.ubatch == 0 and not beat.done:
                begin, end = beat.marks.blocked
                assert (parts_at(cursor, beat)[beat.part].pos[begin:end] >= 0).all()
