"""Why a token sees a cell or not, and why a step failed."""

import pytest

from kvmodel.batch import Batch, UBatch
from kvmodel.errors import ParamError
from kvmodel.library import load
from kvmodel.player import play
from kvmodel.snapshot import PartSnapshot
from kvmodel.split import split_simple
from kvmodel.timeline import Timeline
from kvmodel.why import failure_story, largest_fit, mask_story
from tests.asked import Json, decode, played, rm


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
