"""Why: the story of a cell; values worked out by hand."""

import time
from typing import Any

import pytest

from kvmodel.errors import ParamError
from kvmodel.timeline import Timeline
from kvmodel.why import CellStory, cell_story
from kvmodel.why.cell import MOST_CHANGES
from tests.asked import Json, decode, played, rm


def story(timeline: Timeline, cell: int, step: int | None = None, name: str = "kv") -> CellStory:
    return cell_story(timeline, timeline.frame_of(timeline.n_steps - 1 if step is None else step), name, cell)


EDITED: list[Json] = [
    {"op": "decode", "tokens": [{"text": ["a", "b", "c", "d", "e", "f"]}]},
    {"op": "seq_cp", "src": 0, "dst": 1, "p0": 0, "p1": 3},
    rm(0, 1, 4),
    {"op": "seq_add", "seq": 0, "p0": 4, "p1": -1, "shift": -3},
    {"op": "update"},
    {"op": "seq_div", "seq": 0, "p0": 2, "p1": -1, "d": 2},
    {"op": "seq_keep", "seq": 0},
    {"op": "clear"},
]


def test_every_edit_tells_what_it_did_to_a_cell() -> None:
    timeline = played(EDITED)
    told = {cell: [change.sentence for change in story(timeline, cell).history] for cell in (1, 3, 5, 6)}
    assert told == {
        1: [
            "Step 1, decode: token 1 is stored as position 1 of sequence 0.",
            "Step 2, seq_cp: sequence 1 shares what sequence 0 has here.",
            "Step 3, seq_rm: sequence 0 leaves position 1; sequence 1 stays.",
            "Step 7, seq_keep: only sequence 0 is kept, so sequence 1 goes; the cell is free.",
        ],
        3: [
            "Step 1, decode: token 3 is stored as position 3 of sequence 0.",
            "Step 3, seq_rm: sequence 0 leaves position 3; the cell is free.",
        ],
        5: [
            "Step 1, decode: token 5 is stored as position 5 of sequence 0.",
            "Step 4, seq_add: position 5 becomes 2 (-3); its K is rotated at the next update.",
            "Step 5, update: its K is rotated by -3 positions.",
            "Step 6, seq_div: position 2 becomes 1 (divided by 2); its K is rotated at the next update.",
            "Step 8, clear: every cell is emptied.",
        ],
        6: [],
    }


def test_a_cell_tells_what_it_holds_and_since_when() -> None:
    timeline = played(EDITED)
    shared, moved = story(timeline, 0, 2), story(timeline, 5, 4)
    assert (shared.now.pos, shared.now.seqs, shared.now.token, shared.text) == (0, (0, 1), 0, "a")
    assert shared.sentences == [
        "Cell 0 holds position 0 of sequences 0 and 1, token 0.",
        "Step 1, decode: token 0 of the batch was stored in ubatch 0, at position 0.",
    ]
    assert (moved.now.pos, moved.now.shift, moved.text) == (2, -3, "f")
    assert moved.sentences[1] == "A shift of -3 waits for the next update."
    assert moved.written
    assert (moved.written.step, moved.written.frame) == (1, 1)
    assert (story(timeline, 5, 0).now.empty, story(timeline, 5, 0).n_changes) == (True, 0)


def test_an_empty_cell_tells_how_it_became_free() -> None:
    timeline = played(EDITED)
    assert story(timeline, 3).sentences == [
        "Cell 3 holds nothing.",
        "It became free in step 3, seq_rm: sequence 0 leaves position 3; the cell is free.",
    ]
    assert story(timeline, 3).written is None
    assert story(timeline, 30).sentences == ["Cell 30 holds nothing.", "It was never used."]
    assert story(timeline, 30).freed is None


def test_a_content_is_followed_over_two_defrags() -> None:
    """Sequence 2 is in cells 8-9, then in 4-5 when sequence 1 goes, then in 0-1 when sequence 0 goes."""
    ops = [decode(4, 0), decode(4, 1), decode(2, 2), rm(1), {"op": "update", "optimize": True}]
    timeline = played([*ops, rm(0), {"op": "update", "optimize": True}])
    last = story(timeline, 1)
    assert (last.now.pos, last.now.seqs) == (1, (2,))
    assert last.came_from == (5, 9)
    assert last.sentences[-1] == "Since then it has moved: it was in cell 5, before that in cell 9."
    assert last.history[-1].sentence == "Step 7, update: position 1 of sequence 2 moved here from cell 5."
    assert story(timeline, 5).history[-1].sentence == (
        "Step 7, update: position 1 of sequence 2 moved to cell 1; the cell is free."
    )


def test_a_failed_decode_tells_of_its_roll_back() -> None:
    last = story(played([decode(4), decode(4, fail_at=0)]), 5).history[-1]
    assert last.sentence == (
        "Step 2, decode: the decode failed and is rolled back: sequence 0 leaves position 5; the cell is free."
    )


def test_a_position_below_zero_frees_the_cell() -> None:
    ops = [decode(4), {"op": "seq_add", "seq": 0, "p0": -1, "p1": -1, "shift": -2}]
    assert story(played(ops), 1).history[-1].sentence == (
        "Step 2, seq_add: position 1 moves by -2, which is below 0; the cell is free."
    )


WINDOW: Json = {"kv_size": 16, "n_pad": 8, "swa_type": "standard", "n_swa": 4, "n_seq_max": 2}


def test_a_window_says_whether_the_next_token_sees_the_cell() -> None:
    """12 positions: the next one, 12, sees 9 to 12."""
    timeline = played([decode(12)], **WINDOW)
    hidden, shown = story(timeline, 8), story(timeline, 9)
    assert [(seen.seq, seen.next_pos, seen.visible) for seen in (*hidden.seen, *shown.seen)] == [
        (0, 12, False),
        (0, 12, True),
    ]
    assert (hidden.expired, shown.expired, story(timeline, 12).expired) == (True, False, False)
    assert hidden.seen[0].sentence == (
        "The next token of sequence 0 (position 12) does not see cell 8: the window of 4 shows positions 9 to 12."
    )


def test_a_cell_that_was_overwritten_or_purged_says_so() -> None:
    """Head at cell 2: three tokens take cells 2-4, of which 3-4 hold expired positions; 0-1 are older ones."""
    ops = [decode(12), rm(0, 2, 3), decode(3, 1)]
    timeline = played(ops, **(WINDOW | {"n_swa": 8}))
    assert story(timeline, 3).history[-1].sentence == (
        "Step 3, decode: position 3 of sequence 0 gives way, since no later query can see it;"
        " token 13 is stored as position 1 of sequence 1."
    )
    assert (
        story(timeline, 1)
        .history[-1]
        .sentence.startswith("Step 3, decode: sequence 0 loses position 1, since a newer one was overwritten")
    )


def test_states_tell_of_their_cells() -> None:
    ops = [decode(4, 0), {"op": "seq_cp", "src": 0, "dst": 1}, decode(2, 1), rm(0)]
    timeline = played(ops, kind="recurrent", kv_size=3, n_seq_max=3)
    assert story(timeline, 1).sentences[0] == "Cell 1 holds a state at position 5 of sequence 1, token 5."
    assert [change.sentence for change in story(timeline, 0).history] == [
        (
            "Step 1, decode: sequence 0, which has no state yet, gets the cell;"
            " the state of sequence 0 is about to take in the tokens up to position 3."
        ),
        "Step 1, decode: the state takes in the tokens up to position 3.",
        "Step 2, seq_cp: sequence 1 shares the state of sequence 0.",
        "Step 3, decode: sequence 1 goes on in cell 1.",
        "Step 4, seq_rm: sequence 0 leaves position 3; the cell is free.",
    ]


def test_a_long_history_tells_the_latest_and_counts_all() -> None:
    shifts = [{"op": "seq_add", "seq": 0, "p0": -1, "p1": -1, "shift": shift} for _ in range(150) for shift in (1, -1)]
    last = story(played([decode(1), *shifts]), 0)
    assert (len(last.history), last.n_changes) == (MOST_CHANGES, 301)
    assert (last.history[0].step, last.history[-1].step) == (102, 301)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((-1, "kv", 0), "frame is -1; allowed: a whole number from 0 to 1"),
        ((2, "kv", 0), "frame is 2; allowed: a whole number from 0 to 1"),
        ((0, "swa", 0), "part is 'swa'; allowed: kv"),
        ((0, "kv", 32), "cell is 32; allowed: a whole number from 0 to 31"),
        ((0, "kv", "x"), "cell is 'x'; allowed: a whole number from 0 to 31"),
    ],
)
def test_there_is_no_story_of_no_cell(arguments: tuple[Any, ...], told: str) -> None:
    with pytest.raises(ParamError) as refused:
        cell_story(played([decode(1)]), *arguments)
    assert str(refused.value) == told


def test_a_story_of_a_large_cache_comes_at_once() -> None:
    ops = [decode(2048, i % 4) for i in range(60)]
    shifts = [{"op": "seq_add", "seq": i % 4, "p0": 0, "p1": 64, "shift": 0 if i % 2 else 1} for i in range(940)]
    timeline = played([*ops, *shifts], kv_size=131_072)
    assert timeline.n_steps == 1001
    took = []
    for cell in (0, 70_000, 131_071):
        begin = time.perf_counter()
        story(timeline, cell)
        took.append(time.perf_counter() - begin)
    assert min(took) < 0.05
