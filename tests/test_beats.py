"""Operations beat by beat: which they are, what they say, which cells they mark and what the cells are then."""

import time
from typing import Any

import numpy as np
import pytest

from kvmodel.beats import Beat, beats, parts_at
from kvmodel.errors import ParamError
from kvmodel.events import (
    CellsOverwritten,
    DefragApplied,
    DefragPlanned,
    ShiftApplied,
    SlotSearched,
    UBatchStored,
)
from kvmodel.explain import explain, explain_search
from kvmodel.library import IDS, load
from kvmodel.player import play
from kvmodel.scenario import Scenario
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline

Json = dict[str, Any]


def played(ops: list[Json], context: Json | None = None, **cache: Any) -> Timeline:
    document = {"title": "t", "cache": {"kv_size": 32, "n_seq_max": 8} | cache, "context": context or {}, "ops": ops}
    return play(Scenario.model_validate(document))


def decode(n: int, seq: int = 0, **more: Any) -> Json:
    return {"op": "decode", "tokens": [{"n": n, "seq": [seq]}], **more}


def of(timeline: Timeline, step: int, kind: type) -> list[Beat]:
    return [beat for beat in beats(timeline, step) if isinstance(beat.event, kind)]


def held(part: PartSnapshot) -> list[tuple[int, tuple[int, ...]]]:
    """Position and owners of the cells up to the last one in use."""
    used = np.flatnonzero(part.pos >= 0)
    return [(int(part.pos[i]), part.owners(i)) for i in range(used[-1] + 1 if len(used) else 0)]


FRAGMENTED: list[Json] = [
    *(decode(4, seq) for seq in range(4)),
    {"op": "seq_rm", "seq": 0},
    {"op": "seq_rm", "seq": 2},
]
"""Cells 0-3 free, 4-7 sequence 1, 8-11 free, 12-15 sequence 3; head at 0."""


def test_a_search_is_told_probe_by_probe() -> None:
    timeline = played([*FRAGMENTED, decode(6, 5)])
    told = of(timeline, 7, SlotSearched)
    assert [(beat.sentence, beat.marks.tried, beat.marks.blocked, beat.marks.slot) for beat in told] == [
        ("Ubatch 0: 6 cells in a row sought from head, cell 0.", (0, 6), (0, 0), (0, 0)),
        ("Cells 0-3 are too few, since cells 4-7 are still seen by their sequences.", (0, 4), (4, 8), (0, 0)),
        ("Cells 8-11 are too few, since cells 12-15 are still seen by their sequences.", (8, 12), (12, 16), (0, 0)),
        ("Found cells 16-21.", (0, 0), (0, 0), (16, 22)),
    ]
    assert not any(beat.done for beat in told)
    (stored,) = of(timeline, 7, UBatchStored)
    assert (stored.done, stored.marks.slot) == (True, (16, 22))
    assert stored.marks.cells.tolist() == [*range(16, 22)]
    cursor = timeline.cursor()
    assert [parts_at(cursor, beat)["kv"].used for beat in (*told, stored)] == [8, 8, 8, 8, 14]


def test_a_search_that_wraps_marks_no_cell_behind_the_end() -> None:
    timeline = played([decode(29), {"op": "seq_rm", "seq": 0, "p0": 0, "p1": 2}, decode(3, 1), decode(2, 2)])
    at_end, found = of(timeline, 4, SlotSearched)[1:]
    assert at_end.sentence == "The end of the cache is reached."
    assert (at_end.marks.tried, at_end.marks.blocked) == ((0, 0), (0, 0))
    assert found.marks.slot == (0, 2)


def test_a_search_in_vain_marks_the_longest_run_that_is_left() -> None:
    result = of(played([decode(28), decode(6, 1)]), 2, SlotSearched)[-1]
    assert result.sentence == "No slot: 4 cells free, the longest run is 4 (cells 28-31)."
    assert (result.marks.tried, result.marks.slot) == ((28, 32), (0, 0))


def test_a_search_of_a_full_cache_marks_nothing_at_its_end() -> None:
    result = of(played([decode(32), decode(1, 1)]), 2, SlotSearched)[-1]
    assert (result.sentence, result.marks.tried) == ("No slot: 0 cells free.", (0, 0))


def test_a_long_search_counts_what_it_leaves_out() -> None:
    holes = [decode(1, seq) for _ in range(60) for seq in (0, 1)]
    timeline = played([*holes, {"op": "seq_rm", "seq": 0}, decode(2, 2)], kv_size=128)
    told = of(timeline, 122, SlotSearched)
    assert len(told) == 1 + 50 + 1 + 1
    assert told[50].sentence == "Cell 98 alone is not enough, since cell 99 is still seen by its sequence."
    assert told[51].sentence == "10 more runs refused."
    assert told[51].marks.tried == told[51].marks.blocked == (0, 0)
    assert told[52].sentence == "Found cells 120-121."


def test_a_defrag_moves_block_by_block() -> None:
    timeline = played([*FRAGMENTED, {"op": "update", "optimize": True}])
    (planned,), moves = of(timeline, 7, DefragPlanned), of(timeline, 7, DefragApplied)
    assert (planned.marks.n_moved, planned.done, planned.marks.cells.tolist()) == (0, False, [12, 13, 14, 15])
    (move,) = moves
    assert move.sentence == ("Move 1 of 1: cells 12-15 go to cells 0-3; the budget is 10,922 moves; head stays at 0.")
    assert move.marks.cells.tolist() == [0, 1, 2, 3, 12, 13, 14, 15]


def test_the_cells_between_the_moves_of_a_defrag() -> None:
    """Nine cells stay: the holes 0-1, 6 and 8 below take the last cells 13-14, 11 and 10. Copied in order of source."""
    ops = [decode(2, 0), decode(4, 1), decode(1, 0), decode(1, 1), decode(2, 0), decode(2, 2), decode(1, 0)]
    timeline = played([*ops, decode(2, 3), {"op": "seq_rm", "seq": 0}, {"op": "update", "optimize": True}])
    cursor = timeline.cursor()
    ones, three, none = [(0, (1,)), (1, (1,)), (2, (1,)), (3, (1,))], [(0, (3,)), (1, (3,))], (-1, ())
    four, two_0, two_1 = (4, (1,)), (0, (2,)), (1, (2,))
    before = [none, none, *ones, none, four, none, none, two_0, two_1, none, *three]
    assert held(cursor.seek(timeline.frame_of(9)).first) == before
    moves = of(timeline, 10, DefragApplied)
    parts = [parts_at(cursor, beat)["kv"] for beat in moves]
    assert [beat.sentence.partition(";")[0] for beat in moves] == [
        "Move 1 of 3: cell 10 goes to cell 8",
        "Move 2 of 3: cell 11 goes to cell 6",
        "Move 3 of 3: cells 13-14 go to cells 0-1",
    ]
    assert [beat.done for beat in moves] == [False, False, True]
    assert [held(part) for part in parts] == [
        [none, none, *ones, none, four, two_0, none, none, two_1, none, *three],
        [none, none, *ones, two_1, four, two_0, none, none, none, none, *three],
        [*three, *ones, two_1, four, two_0],
    ]
    assert [part.counters["used_max_p1"] for part in parts] == [15, 15, 9]


def test_a_move_counts_against_the_budget() -> None:
    timeline = played([*FRAGMENTED, {"op": "update", "optimize": True, "n_max_nodes": 8}])
    assert of(timeline, 7, DefragApplied)[0].sentence.endswith("; the budget is 1 move; head stays at 0.")
    timeline = played([*FRAGMENTED, {"op": "update", "optimize": True, "n_max_nodes": 2}])
    assert "; there is no limit; " in of(timeline, 7, DefragApplied)[0].sentence


WINDOW: Json = {"kv_size": 16, "n_pad": 8, "swa_type": "standard", "n_swa": 4, "n_seq_max": 2}


def test_what_a_window_gives_up_is_marked_before_it_goes() -> None:
    timeline = played([decode(12), decode(4, 1), decode(4, 0)], **WINDOW)
    (overwritten,), (stored,) = of(timeline, 3, CellsOverwritten), of(timeline, 3, UBatchStored)
    cursor = timeline.cursor()
    assert overwritten.marks.cells.tolist() == [0, 1, 2, 3]
    assert not overwritten.done
    assert parts_at(cursor, overwritten)["kv"].pos[:4].tolist() == [0, 1, 2, 3]
    assert parts_at(cursor, stored)["kv"].pos[:4].tolist() == [12, 13, 14, 15]


def test_what_a_trial_purges_is_gone_once_the_trial_has_failed() -> None:
    """Ubatch 0 takes cells 2-4 on trial: 3 and 4 hold expired positions, so the older ones in cells 0-1 go as well.

    Ubatch 1 takes cells 12-14 and ubatch 2 has no slot. The defrag that follows fills cells 0-2 with 9-11.
    """
    ops = [decode(12), {"op": "seq_rm", "seq": 0, "p0": 2, "p1": 3}, decode(9, 1, n_ubatch=3)]
    timeline = played(ops, kv_size=16, n_pad=8, swa_type="standard", n_swa=8, n_seq_max=2)
    assert timeline.results[-1].ret == 1
    cursor = timeline.cursor()
    shown: dict[str, tuple[list[int], int, list[int], bool]] = {}
    for beat in beats(timeline, 3):
        part = parts_at(cursor, beat)["kv"]
        facts = part.pos.tolist(), part.used, part.spans[0].tolist(), beat.done
        shown.setdefault(type(beat.event).__name__, facts)
    rest = [*range(5, 12), -1, -1, -1, -1]
    assert shown["PositionsPurged"] == ([0, 1, -1, 3, 4, *rest], 11, [0, 11], False)
    assert shown["PrepareFailed"] == ([-1, -1, -1, 3, 4, *rest], 9, [3, 11], False)
    assert shown["DefragPlanned"] == ([-1, -1, -1, 3, 4, *rest], 9, [3, 11], False)
    assert shown["DefragApplied"] == ([9, 10, 11, 3, 4, 5, 6, 7, 8, *[-1] * 7], 9, [3, 11], True)


def test_a_search_in_vain_moves_the_head_of_an_older_cache_when_it_ends() -> None:
    """Ubatches of 8: 20-27 are stored, then 7 tokens find 28-31 too short and cell 0 taken; head is behind that."""
    timeline = played([decode(20), decode(15, 1)], {"n_ubatch": 8}, kind="legacy")
    cursor = timeline.cursor()
    heads = [(type(beat.event).__name__, parts_at(cursor, beat)["kv"].head) for beat in beats(timeline, 2)]
    assert [head for name, head in heads if name == "UBatchStored"] == [28]
    assert heads[-1] == ("Decoded", 1)


PAIR: Json = {"kind": "iswa", "kv_size": 32, "n_layer": 2, "n_pad": 8, "n_swa": 4, "n_seq_max": 2}


def test_each_half_of_a_pair_fills_at_its_own_beat() -> None:
    timeline = played([decode(3)], {"n_ubatch": 8}, **PAIR)
    cursor = timeline.cursor()
    stored = of(timeline, 1, UBatchStored)
    used = [{name: part.used for name, part in parts_at(cursor, beat).items()} for beat in stored]
    assert [beat.part for beat in stored] == ["base", "swa"]
    assert [beat.sentence[:9] for beat in stored] == ["In base: ", "In swa: U"]
    assert used == [{"base": 3, "swa": 0}, {"base": 3, "swa": 3}]
    assert [beat.part for beat in beats(timeline, 1)][:1] == ["kv"]
    assert beats(timeline, 1)[0].done is False
    assert beats(timeline, 1)[-1].done is True


def test_a_pair_that_shifts_and_moves_in_one_frame() -> None:
    """With swa_full both halves have one size, so a shift is possible; both then move as well, one after the other."""
    ops = [decode(4, 0), decode(4, 1), {"op": "seq_rm", "seq": 0}, {"op": "seq_add", "seq": 1, "p0": 0, "shift": 2}]
    timeline = played([*ops, {"op": "update", "optimize": True}], {"n_ubatch": 8}, **(PAIR | {"swa_full": True}))
    cursor = timeline.cursor()
    seen = [
        (
            type(beat.event).__name__,
            beat.part,
            *(
                (part.pos[:8].tolist().index(2), int(part.shift.any()), bool(part.counters["has_shift"]))
                for part in parts_at(cursor, beat).values()
            ),
        )
        for beat in beats(timeline, 5)
        if isinstance(beat.event, ShiftApplied | DefragApplied)
    ]
    assert seen == [
        ("ShiftApplied", "base", (4, 0, False), (4, 1, True)),
        ("DefragApplied", "base", (0, 0, False), (4, 1, True)),
        ("ShiftApplied", "swa", (0, 0, False), (4, 0, False)),
        ("DefragApplied", "swa", (0, 0, False), (0, 0, False)),
    ]


def test_states_are_marked_where_they_stand() -> None:
    timeline = play(load("shared-states"))
    named = {type(beat.event).__name__ for step in range(timeline.n_steps) for beat in beats(timeline, step)}
    assert {"StateBegun", "StateCopied", "SlotFilled", "StatesStored"} <= named
    first = beats(timeline, 1)
    begun = next(beat for beat in first if type(beat.event).__name__ == "StateBegun")
    assert begun.marks.cells.tolist() == [0]
    assert not begun.done


@pytest.mark.parametrize("name", IDS)
def test_every_other_event_is_one_beat_with_its_own_sentence(name: str) -> None:
    timeline = play(load(name))
    for step in range(timeline.n_steps):
        told = [beat.sentence for beat in beats(timeline, step)]
        expected: list[str] = []
        for event in timeline.events_of(step):
            if isinstance(event, SlotSearched):
                expected += explain_search(event.search)
            elif isinstance(event, DefragApplied):
                expected += [f"Move {k + 1}" for k in range(len(event.plan.moves))]
            else:
                expected.append(explain(event))
        assert len(told) == len(expected)
        for sentence, part in zip(told, expected, strict=True):
            assert part.rstrip(".")[1:] in sentence


def test_a_step_without_events_has_no_beats() -> None:
    timeline = played([{"op": "defrag"}])
    assert [len(beats(timeline, step)) for step in (0, 1)] == [0, 0]
    assert list(beats(timeline, 1)) == []


def test_beats_are_a_sequence() -> None:
    told = beats(played([*FRAGMENTED, decode(6, 5)]), 7)
    assert [beat.sentence for beat in told[2:4]] == [told[2].sentence, told[3].sentence]
    assert told[-1].sentence == told[len(told) - 1].sentence == "Decoding 6 tokens returned 0: done."
    with pytest.raises(IndexError):
        told[len(told)]


@pytest.mark.parametrize("step", [-1, 2, "x", None])
def test_there_are_no_beats_of_no_step(step: Any) -> None:
    with pytest.raises(ParamError, match=r"^step is .*; allowed: a whole number from 0 to 1$"):
        beats(played([decode(1)]), step)


def test_ten_thousand_ubatches_are_counted_at_once() -> None:
    timeline = played([decode(10_000, n_ubatch=1)], {"n_batch": 10_000}, kv_size=10_016)
    begin = time.perf_counter()
    told = beats(timeline, 1)
    assert len(told) == 2 + 10_000 * 2 + 10_000 + 1
    assert told[-2].sentence.startswith("Ubatch 9999 (1 token) is stored in cell 9999;")
    assert time.perf_counter() - begin < 1
