"""Why: the story of a cell, of a mask square, of a failure; values worked out by hand."""

import time
from typing import Any

import pytest

from kvmodel.batch import Batch, UBatch
from kvmodel.errors import ParamError
from kvmodel.library import load
from kvmodel.player import play
from kvmodel.scenario import Scenario
from kvmodel.snapshot import PartSnapshot
from kvmodel.split import split_simple
from kvmodel.timeline import Timeline
from kvmodel.why import CellStory, cell_story, failure_story, largest_fit, mask_story
from kvmodel.why.cell import MOST_CHANGES

Json = dict[str, Any]


def played(ops: list[Json], context: Json | None = None, **cache: Any) -> Timeline:
    document = {"title": "t", "cache": {"kv_size": 32, "n_seq_max": 8} | cache, "context": context or {}, "ops": ops}
    return play(Scenario.model_validate(document))


def decode(n: int, *seq: int, **more: Any) -> Json:
    return {"op": "decode", "tokens": [{"n": n, "seq": list(seq) or [0]}], **more}


def rm(seq: int, p0: int = -1, p1: int = -1) -> Json:
    return {"op": "seq_rm", "seq": seq, "p0": p0, "p1": p1}


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


def asking(pos: int, seq: int = 0, text: bool = False) -> UBatch:
    return split_simple(Batch.from_runs([(pos, 1, [seq])], token=[0 if text else -1]), 8)[0]


def part_of(timeline: Timeline) -> PartSnapshot:
    return timeline.cursor().seek(len(timeline.frames)).first


def test_a_square_of_the_mask_names_its_rule() -> None:
    part = part_of(played([decode(6, 0), decode(2, 1), decode(1, 0), rm(0, 4, 5)]))
    who = "Token 0 (position 5, sequence 0)"
    told = [mask_story(part, asking(5), 0, cell) for cell in (2, 5, 8, 4, 6, 31)]
    assert told == [
        f"{who} sees cell 2 (position 2): both belong to sequence 0, and that is 3 positions earlier.",
        f"{who} sees cell 5 (position 5): both belong to sequence 0, and it is its own position.",
        f"{who} does not see cell 8 (position 6): that is 1 position later.",
        f"{who} does not see cell 4: the cell is empty.",
        f"{who} does not see cell 6 (position 0): it belongs to sequence 1.",
        f"{who} does not see cell 31: the cell is empty.",
    ]
    assert mask_story(part, asking(5), 63, 2) == "Row 63 is padding behind the 1 token of the ubatch; it sees no cell."


@pytest.mark.parametrize(
    ("window", "pos", "cell", "told"),
    [
        (("standard", 4), 11, 7, "does not see cell 7 (position 7): the window of 4 shows positions 8 to 11."),
        (("standard", 4), 11, 8, "; the window of 4 shows positions 8 to 11."),
        (("standard", 32), 11, 0, "; the window of 32 shows positions 0 to 11."),
        (("chunked", 4), 9, 7, "does not see cell 7 (position 7): the chunk of 4 shows positions 8 to 9."),
        (("chunked", 4), 9, 8, "; the chunk of 4 shows positions 8 to 9."),
    ],
)
def test_a_window_shows_its_figures(window: tuple[str, int], pos: int, cell: int, told: str) -> None:
    part = part_of(played([decode(12)], swa_type=window[0], n_swa=window[1]))
    assert mask_story(part, asking(pos), 0, cell).endswith(told)


def test_without_causal_attention_later_positions_are_seen() -> None:
    part = part_of(played([decode(12)], swa_type="standard", n_swa=4))
    assert mask_story(part, asking(5), 0, 9, causal=False) == (
        "Token 0 (position 5, sequence 0) sees cell 9 (position 9): both belong to sequence 0, and that is 4 positions"
        " later, which counts for nothing without causal attention; the window of 4 shows positions from 2 on."
    )


def test_a_square_outside_the_view_says_so() -> None:
    part = part_of(played([decode(12)], kv_size=64))
    assert mask_story(part, asking(5), 0, 40) == (
        "Token 0 (position 5, sequence 0) does not see cell 40: attention looks at the first 32 cells only (n_kv)."
    )


def test_a_token_is_quoted_on_one_line() -> None:
    timeline = played([{"op": "decode", "tokens": [{"text": ["a\nb\u2028“"]}]}])
    told = mask_story(part_of(timeline), asking(0, text=True), 0, 0, tokens=timeline.tokens)
    assert told.startswith("Token 0 “a\\nb\\u2028“” (position 0,")


@pytest.mark.parametrize(
    ("row", "cell", "told"),
    [(64, 0, "row is 64; allowed: a whole number from 0 to 63"), (0, 32, "cell is 32; allowed: a whole number from 0")],
)
def test_there_is_no_square_outside_the_mask(row: int, cell: int, told: str) -> None:
    with pytest.raises(ParamError, match=f"^{told}"):
        mask_story(part_of(played([decode(12)])), asking(5), row, cell)


def test_states_have_no_mask() -> None:
    part = part_of(played([decode(2)], kind="recurrent", kv_size=3, n_seq_max=3))
    with pytest.raises(ParamError, match=r"^part is 'kv'; allowed: cells of a transformer cache"):
        mask_story(part, asking(0), 0, 0)


def test_what_succeeded_has_no_failure_story() -> None:
    timeline = play(load("chat-context-shift"))
    assert [failure_story(timeline, step) for step in range(timeline.n_steps)] == [None] * timeline.n_steps
    assert largest_fit(timeline, 0) is largest_fit(timeline, 1) is None


def test_a_failed_pair_tells_every_search_of_each_half() -> None:
    """40 + 24 + 32 tokens fill the full half; then 40 more: two ubatches of 16 fit, the third has no cell left."""
    told = failure_story(play(load("window-pair-no-slot")), 4)
    assert told
    assert told.what == "Decoding 40 tokens returned 1: there is no slot."
    assert [(one.part, one.ubatch, one.attempt) for one in told.searches] == [("base", 2, 1), ("base", 2, 2)]
    assert told.searches[0].lines[0] == "8 cells in a row sought from head, cell 96."
    assert told.searches[0].lines[-1] == "No slot: 0 cells free."
    assert (told.fits, told.n_tokens) == (32, 40)
    assert told.remedies[0] == "Send at most 32 tokens in one decode: base has room for no more."


def test_a_retry_is_another_attempt() -> None:
    """Six cells stay free after the defrag, so of 8 tokens only 6 fit; before it no run was longer than 2."""
    ops = [*(decode(2, seq) for seq in range(16)), rm(0), rm(4), rm(8), decode(8, 20)]
    told = failure_story(played(ops, n_seq_max=32), 20)
    assert told
    assert [(one.attempt, one.lines[-1]) for one in told.searches] == [
        (1, "No slot: 6 cells free, the longest run is 2 (cells 0-1)."),
        (2, "No slot: 6 cells free, the longest run is 6 (cells 26-31)."),
    ]
    assert told.fits == 6


@pytest.mark.parametrize(
    ("ops", "what"),
    [
        (
            [decode(4), {"op": "decode", "tokens": [{"n": 1, "pos": 9}]}],
            "The batch was refused: ",
        ),
        ([decode(4), decode(5, n_ubatch=2, fail_at=1)], "Decoding 5 tokens returned -3: the computation failed."),
        ([decode(4), decode(3000)], "The batch has 3000 tokens; allowed: n_batch = 2048 at most."),
    ],
)
def test_other_failures_say_what_they_were(ops: list[Json], what: str) -> None:
    told = failure_story(played(ops), 2)
    assert told
    assert told.what.startswith(what)
    assert (told.fits, told.searches) == (None, ())
    assert told.remedies


def test_a_refused_state_says_why() -> None:
    told = failure_story(played([decode(8), rm(0, 4)], kind="recurrent", kv_size=3, n_seq_max=3), 2)
    assert told
    assert told.what.startswith("Removing positions from 4 on of sequence 0 was refused: its state is at position 7")
    assert (told.fits, told.n_tokens, len(told.remedies)) == (None, 0, 2)


def test_a_state_without_a_place_is_a_search_in_vain() -> None:
    told = failure_story(played([decode(2, 5)], kind="recurrent", kv_size=3, n_seq_max=3), 1)
    assert told
    assert [one.lines for one in told.searches] == [
        ("Ubatch 0: no slot, since sequence 5 has no place in a cache of 3 cells; allowed: 0 to 2.",)
    ]
    assert told.fits is None


def test_a_ubatch_longer_than_the_cache_leaves_the_model_to_say_what_fits() -> None:
    told = failure_story(played([decode(5), decode(40, 1)]), 2)
    assert told
    assert told.searches[0].lines[-1] == "No slot: the whole cache has 32 cells."
    assert told.fits == 27
