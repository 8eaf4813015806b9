"""Sentences: one for every event, with the figures of the event."""

import inspect

import numpy as np
import pytest

from kvmodel import events
from kvmodel.defrag import plan_defrag
from kvmodel.events import (
    BatchSplit,
    CellsOverwritten,
    ComputeFailed,
    DefragDecided,
    DefragPlanned,
    Event,
    NoUpdate,
    PositionsPurged,
    Retried,
    SeqRemoved,
    ShiftApplied,
)
from kvmodel.explain import explain
from kvmodel.explain.sentence import sentence
from kvmodel.library import shipped
from kvmodel.player import play
from kvmodel.scenario import Scenario
from kvmodel.timeline import Timeline

EVENTS = [
    kind for _, kind in inspect.getmembers(events, inspect.isclass) if issubclass(kind, Event) and kind is not Event
]


def played(ops: list[dict[str, object]], cache: dict[str, object], **context: object) -> Timeline:
    return play(Scenario.model_validate({"title": "t", "cache": cache, "context": context, "ops": ops}))


def decode(n: int, seq: int = 0, **more: object) -> dict[str, object]:
    return {"op": "decode", "tokens": [{"n": n, "seq": [seq]}], **more}


def said(timeline: Timeline, step: int) -> list[str]:
    return [explain(event) for event in timeline.events_of(step)]


def index(*cells: int) -> np.ndarray:
    return np.array(cells, np.intp)


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_every_event_has_a_sentence(kind: type[Event]) -> None:
    assert kind in sentence.registry


def test_there_are_events() -> None:
    assert len(EVENTS) == 28


def test_an_unknown_event_is_told() -> None:
    class Odd(Event):
        pass

    with pytest.raises(TypeError, match="no sentence for the event Odd"):
        explain(Odd())


@pytest.mark.parametrize("scenario_id", shipped())
def test_shipped_scenarios_are_told_in_whole_sentences(scenario_id: str) -> None:
    timeline = play(shipped()[scenario_id])
    sentences = [line for step in range(timeline.n_steps) for line in said(timeline, step)]
    assert len(sentences) >= timeline.n_steps - 1
    assert [line for line in sentences if not (line[0].isupper() and line.endswith(".")) or "  " in line] == []
    assert [line for line in sentences if "array(" in line or "np." in line or "None" in line] == []


def test_a_cache_of_a_pair_is_named() -> None:
    assert explain(NoUpdate(cache="swa")) == "In swa: The update found no shift and no move to make."


def test_a_decode_is_told_from_batch_to_result() -> None:
    timeline = played([decode(20)], {"kv_size": 32}, n_ubatch=8)
    assert said(timeline, 1) == [
        "The batch of 20 tokens was accepted: sequence 0 at positions 0 to 19, continued from the cache.",
        "The batch was split in token order into 3 ubatches of 2 x 8 and 4 tokens (at most 8 each).",
        "Ubatch 0: 8 cells in a row sought from head, cell 0; found cells 0-7.",
        "Ubatch 1: 8 cells in a row sought from head, cell 8; found cells 8-15.",
        "Ubatch 2: 4 cells in a row sought from head, cell 16; found cells 16-19.",
        "Ubatch 0 (8 tokens) is stored in cells 0-7; head goes from 0 to 8, n_kv stays 32.",
        "Ubatch 1 (8 tokens) is stored in cells 8-15; head goes from 8 to 16, n_kv stays 32.",
        "Ubatch 2 (4 tokens) is stored in cells 16-19; head goes from 16 to 20, n_kv stays 32.",
        "Decoding 20 tokens returned 0: done.",
    ]


def test_a_refused_batch_repeats_the_reason() -> None:
    ops = [decode(4), {"op": "decode", "tokens": [{"n": 1, "pos": 9}]}]
    first, last = said(played(ops, {"kv_size": 32}), 2)
    assert first == (
        "The batch was refused: sequence 0 starts at position Y = 9 in the batch, but the last position in the cache"
        " is X = 3; needed: Y = X + 1."
    )
    assert last == "Decoding 1 token returned -1: the batch was refused, nothing was stored."


def test_edits_are_told_with_their_cells() -> None:
    ops = [
        decode(6),
        {"op": "seq_cp", "src": 0, "dst": 1, "p0": 4, "p1": -1},
        {"op": "seq_rm", "seq": 0, "p0": 2, "p1": 5},
        {"op": "seq_add", "seq": 0, "p0": 5, "p1": -1, "shift": -3},
        {"op": "seq_div", "seq": 0, "p0": 0, "p1": 2, "d": 2},
        {"op": "seq_keep", "seq": 1},
        {"op": "clear", "data": False},
    ]
    timeline = played(ops, {"kv_size": 32, "n_seq_max": 2})
    assert [said(timeline, step)[0] for step in range(2, 8)] == [
        "Sequence 1 shares positions from 4 on of sequence 0: it owns 2 cells (4-5) as well; no K or V was copied.",
        (
            "Positions 2 to 4 of sequence 0 removed; free now: 2 cells (2-3), 1 cell still owned by others;"
            " head goes from 6 to 2."
        ),
        (
            "Positions from 5 on of sequence 0 moved by -3 in cell 5; K is rotated at the next update;"
            " head goes from 2 to 0."
        ),
        "Positions 0 to 1 of sequence 0 divided by 2 in 2 cells (0-1); K is rotated at the next update.",
        "Only sequence 1 is kept; free now: 2 cells (0-1); cell 5 lost the other owners; head stays at 0.",
        "All cells are empty (32), K and V bytes stay as they are, head is 0.",
    ]


def test_edits_that_hit_nothing_say_so() -> None:
    ops = [
        {"op": "seq_rm", "seq": 1},
        {"op": "seq_rm", "seq": -1, "p0": 3, "p1": 5},
        {"op": "seq_cp", "src": 0, "dst": 1, "p0": 2, "p1": -1},
        {"op": "seq_add", "seq": 0, "shift": 2},
        {"op": "seq_div", "seq": 0, "d": 2},
        {"op": "seq_add", "seq": 0, "shift": 0},
        {"op": "seq_rm", "seq": 0, "p0": 5, "p1": 4},
    ]
    timeline = played(ops, {"kv_size": 32, "n_seq_max": 2})
    assert [said(timeline, step)[0] for step in range(1, 8)] == [
        "Sequence 1 has no cell, so nothing was removed; head stays at 0.",
        "No sequence has a cell at positions 3 to 4, so nothing was removed; head stays at 0.",
        "Sequence 0 has no cell at positions from 2 on, so sequence 1 gained none.",
        "Sequence 0 has no cell, so nothing moved; head stays at 0.",
        "Sequence 0 has no cell, so nothing was divided.",
        "Nothing to do for seq_add: the shift is 0.",
        "The range of positions from 5 to 4 is empty, so nothing was removed; head stays at 0.",
    ]


def test_a_window_is_told_as_it_lets_go() -> None:
    ops = [decode(32), decode(6), decode(1), decode(24, n_ubatch=24)]
    window = {"kv_size": 32, "swa_type": "standard", "n_swa": 12}
    timeline = played(ops, window, n_ubatch=32)
    assert "New tokens overwrite 6 cells (0-5) that no later query can see: positions 0 to 5 of sequence 0." in said(
        timeline, 2
    )
    assert "New tokens overwrite cell 6 that no later query can see: position 6 of sequence 0." in said(timeline, 3)


def test_a_purge_names_what_the_sequence_lost() -> None:
    event = PositionsPurged(seq=1, p0=4, p1=9, cells=index(3, 4, 5), trial=True)
    assert explain(event) == (
        "Positions 4 to 8 of sequence 1 went during the trial: a newer one was overwritten, and a sequence keeps no"
        " gaps; 3 cells (3-5) lost it."
    )


def test_overwritten_cells_are_told_by_sequence() -> None:
    seqs, pos = np.array([2, 0, 2], np.int32), np.array([7, 1, 6], np.int32)
    event = CellsOverwritten(cells=index(0, 1, 5), seqs=seqs, pos=pos)
    assert explain(event) == (
        "New tokens overwrite 3 cells (0-1, 5) that no later query can see:"
        " position 1 of sequence 0 and positions 6 to 7 of sequence 2."
    )


@pytest.mark.parametrize(
    ("shift", "rotated", "expected"),
    [
        ([0, -2, -2], True, "K of 2 cells (1-2) was rotated by -2 positions."),
        ([3, 0, -1], True, "K of 2 cells (0, 2) was rotated by -1 to +3 positions."),
        ([0, 0, 0], True, "The pending shifts came to 0, so no K changed."),
        ([0, 5, 0], False, "The shift of cell 1 by +5 was dropped: this model does not rotate its keys."),
    ],
)
def test_a_shift_says_which_keys_turned(shift: list[int], rotated: bool, expected: str) -> None:
    assert explain(ShiftApplied(k_shift=np.array(shift, np.int32), rotated=rotated)) == expected


@pytest.mark.parametrize(
    ("why", "expected"),
    [
        ("asked", "A defrag is due: it was asked for."),
        ("threshold", "A defrag is due: fragmentation 0.250 is above the threshold 0.1."),
        ("below", "No defrag: fragmentation 0.250 is not above the threshold 0.1."),
        ("small", "No defrag: fewer than 2,048 leading cells never ask for it."),
    ],
)
def test_the_decision_to_defragment_has_its_reason(why: str, expected: str) -> None:
    event = DefragDecided(do_defrag=why in {"asked", "threshold"}, why=why, fragmentation=0.25, thold=0.1)
    assert explain(event) == expected


@pytest.mark.parametrize(
    ("filled", "budget", "expected"),
    [
        ("11011011", 9, "fills every hole with cells from the end: 2 cells in 2 block moves (at most 9 moves)."),
        ("11011011", 1, "fills 1 of 2 empty cells with cells from the end: 1 cell in 1 block move (at most 1 move)."),
        ("11011011", 0, "fills every hole with cells from the end: 2 cells in 2 block moves (no limit)."),
        ("1111", 9, "is empty: there is no hole among the used cells."),
    ],
)
def test_a_plan_gives_cells_moves_and_limit(filled: str, budget: int, expected: str) -> None:
    plan = plan_defrag(np.array([bit == "1" for bit in filled]), budget)
    assert explain(DefragPlanned(plan=plan)) == f"The defrag plan {expected}"


def test_a_failed_computation_says_what_went() -> None:
    event = ComputeFailed(ubatch=1, ret=-3, removed=((0, 8), (2, 4)))
    assert explain(event) == (
        "Computing ubatch 1 failed with return code -3;"
        " removed: sequence 0 from position 8 on and sequence 2 from position 4 on."
    )


@pytest.mark.parametrize(("again", "end"), [(True, "slots are sought once more."), (False, "so the decode gives up.")])
def test_a_retry_says_how_it_ends(again: bool, end: str) -> None:
    assert explain(Retried(again=again)).endswith(end)


def test_many_sizes_are_counted() -> None:
    sizes = (4, 3, 3, 2, 1, 2, 1)
    assert "7 ubatches of 4, 2 x 3, 2 and 3 more tokens" in explain(BatchSplit(how="equal", sizes=sizes, n_ubatch=4))


def test_removing_everyone_names_no_sequence() -> None:
    event = SeqRemoved(seq=-1, p0=0, p1=2, cells=index(0, 1), freed=index(0, 1), head_before=4, head=0)
    assert (
        explain(event) == "Positions 0 to 1 of every sequence removed; free now: 2 cells (0-1); head goes from 4 to 0."
    )
