"""Shipped scenarios that replay public reports: the outcomes that the reports give, or that follow from them.

The expected figures are those of the reports, each named by its number (c01 and so on) in the collection that they
were taken from; where a scenario goes on beyond its report, the figures were counted by hand.
"""

from collections.abc import Callable

import numpy as np
import pytest

from kvmodel.advice import advice
from kvmodel.configs import Kind
from kvmodel.defrag import DefragPlan
from kvmodel.events import DefragApplied, PrepareFailed, Retried, ShiftApplied, SlotSearched
from kvmodel.library import IDS, load
from kvmodel.mask import MaskReason, mask_reasons
from kvmodel.player import play
from kvmodel.slots import SlotSearch
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline

LLAMA = "https://github.com/ggml-org/llama.cpp/"

SOURCES = {
    "case-window-without-a-run": LLAMA + "pull/13194",
    "case-defrag-in-passes": "https://github.com/ollama/ollama/pull/8092",
    "case-one-large-hole": LLAMA + "issues/6019",
    "case-really-full": "https://github.com/mozilla-ai/llamafile/issues/238",
    "case-self-extend-fills-up": LLAMA + "issues/9171",
    "case-shift-bookkeeping": "https://github.com/ikawrakow/ik_llama.cpp/pull/2459",
    "case-position-gap": LLAMA + "issues/17316",
    "case-recurrent-removal": LLAMA + "pull/5328",
    "case-remove-any-sequence": LLAMA + "issues/15215",
    "case-position-twice": LLAMA + "pull/14339",
    "case-reuse-moves": LLAMA + "pull/12161",
    "case-other-cells": LLAMA + "issues/4113",
}

Played = Callable[[str], Timeline]


@pytest.fixture(scope="module")
def played() -> Played:
    timelines: dict[str, Timeline] = {}

    def of(scenario_id: str) -> Timeline:
        return timelines.setdefault(scenario_id, play(load(scenario_id)))

    return of


def after(timeline: Timeline, step: int) -> PartSnapshot:
    return timeline.cursor().seek(timeline.frame_of(step)).first


def held(cells: PartSnapshot) -> list[int]:
    """Positions in the order of the cells, empty cells left out."""
    return cells.pos[cells.pos >= 0].tolist()


def spans(cells: PartSnapshot, *seqs: int) -> list[list[int]]:
    return [cells.spans[seq].tolist() for seq in seqs]


def searches(timeline: Timeline, step: int) -> list[SlotSearch]:
    return [event.search for event in timeline.events_of(step) if isinstance(event, SlotSearched)]


def plans(timeline: Timeline, step: int) -> list[DefragPlan]:
    return [event.plan for event in timeline.events_of(step) if isinstance(event, DefragApplied)]


def by_position(timeline: Timeline, step: int) -> list[str]:
    """Texts of the tokens in the order of their positions."""
    cells = after(timeline, step)
    order = [cell for cell in np.argsort(cells.pos, kind="stable").tolist() if cells.pos[cell] >= 0]
    return [timeline.tokens[int(cells.token[cell])].text for cell in order]


def seen(timeline: Timeline, step: int) -> list[list[int]]:
    """Positions that each token of a one-ubatch decode can see."""
    frame = timeline.frames[timeline.frame_of(step)]
    assert frame.ubatch is not None
    cells = after(timeline, step)
    pos = cells.pos[: cells.n_kv]
    reasons = mask_reasons(pos, cells.seqs[: cells.n_kv], frame.ubatch.pos, frame.ubatch.seq_id[:, 0])
    return [sorted(pos[row == MaskReason.VISIBLE].tolist()) for row in reasons]


def test_every_case_names_its_source() -> None:
    assert {name: load(name).source for name in IDS if name.startswith("case-")} == SOURCES


@pytest.mark.parametrize("scenario_id", SOURCES)
def test_a_title_fits_a_line_and_a_description_says_where_to_look(scenario_id: str) -> None:
    scenario = load(scenario_id)
    assert len(scenario.title) <= 70
    assert "Look at " in scenario.description


def test_c01_enough_window_cells_but_no_run(played: Played) -> None:
    timeline = played("case-window-without-a-run")
    first, pruned = after(timeline, 5), after(timeline, 6)
    assert (first.used, first.n_cells) == (2048, 3072)
    assert np.flatnonzero(first.pos >= 0).tolist() == [*range(2048)]
    assert (pruned.used, pruned.n_cells - pruned.used) == (1024, 2048)
    assert np.flatnonzero(pruned.pos >= 0).tolist() == [*range(1024, 2048)]


@pytest.mark.parametrize(("step", "free", "reusable"), [(2, 1024, 1025), (7, 2048, 1)])
def test_c01_1024_tokens_would_have_fit_at_cell_0(played: Played, step: int, free: int, reusable: int) -> None:
    """The cell of position 1024 has expired for the next query, so the run is one cell longer than 1024."""
    search = searches(played("case-window-without-a-run"), step)[0]
    assert not search.found
    assert (search.n_tokens, search.free, search.reusable) == (2048, free, reusable)
    assert (search.longest_start, search.longest) == (0, 1025)


def test_c01_both_remedies(played: Played) -> None:
    timeline = played("case-window-without-a-run")
    assert timeline.results[1].ret == 1
    assert "Set n_ubatch to 1,025 at most" in advice(timeline, 2)[1]
    assert [search.cell for search in searches(timeline, 3)] == [2048, 0]
    assert spans(after(timeline, 3), 0)[0][1] == 4095
    assert [any(isinstance(e, kind) for e in timeline.events_of(7)) for kind in (PrepareFailed, Retried)] == [True] * 2
    assert [plan.moves.tolist() for plan in plans(timeline, 7)] == [[[1024, 0, 1024]]]
    assert (timeline.results[6].ret, held(after(timeline, 7))) == (0, [*range(1024, 4096)])


def test_c05_one_pass_is_capped_and_passes_are_repeated(played: Played) -> None:
    timeline = played("case-defrag-in-passes")
    filled = after(timeline, 3).pos >= 0
    holes = int(np.count_nonzero(np.diff(filled.astype(np.int8)) == -1))
    assert (holes, int(np.count_nonzero(~filled))) == (64, 512)
    assert [(plan.max_moves, plan.n_moves) for step in (6, 8) for plan in plans(timeline, step)] == [(16, 16)] * 2
    assert plans(timeline, 4) == []
    assert [timeline.results[step - 1].ret for step in (4, 6, 8)] == [1, 1, 0]
    packed = after(timeline, 8)
    assert packed.used == packed.n_cells == 1024
    assert (sorted(held(packed)[:512]), held(packed)[512:]) == ([*range(512)], [*range(512)])


def test_c05_what_is_advised_is_the_remedy_of_the_report(played: Played) -> None:
    timeline = played("case-defrag-in-passes")
    again = "Ask for a defrag and an update: 512 cells are free, but not in a row."
    assert advice(timeline, 4)[0] == advice(timeline, 6)[0] == again
    assert searches(timeline, 6)[0].longest == 264


def test_c07_no_retry_size_helps_a_full_cache(played: Played) -> None:
    timeline = played("case-really-full")
    failed = range(3, 13)
    assert [sum(search.n_tokens for search in searches(timeline, step)) for step in failed] == [
        *(512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
    ]
    assert [timeline.results[step - 1].ret for step in failed] == [1] * 10
    assert {(search.free, search.longest) for step in failed for search in searches(timeline, step)} == {(0, 0)}
    assert not any(line.startswith("Send parts") for step in failed for line in advice(timeline, step))
    assert advice(timeline, 12)[0].startswith("Free 1 more cell: remove a sequence that is done (seq_rm)")
    assert timeline.results[13].ret == 0


def test_c10_dividing_positions_frees_no_cells(played: Played) -> None:
    timeline = played("case-self-extend-fills-up")
    divided, second = after(timeline, 3), after(timeline, 4)
    assert (held(divided), divided.used, spans(divided, 0)) == ([0, 0, 0, 0], 4, [[0, 0]])
    assert (second.used, second.n_cells - second.used) == (8, 0)
    assert (timeline.results[4].ret, spans(after(timeline, 5), 0)) == (1, [[0, 4]])
    assert searches(timeline, 5)[0].free == 0


def test_c16_n_past_is_the_largest_position_plus_1(played: Played) -> None:
    timeline = played("case-shift-bookkeeping")
    n_past = [spans(after(timeline, step), 0)[0][1] + 1 for step in (2, 4, 5, 7)]
    assert n_past == [3071, 1536, 1536 + 1535, 1536]
    assert timeline.series("used", "kv")[[2, 3, 5, 6]].tolist() == [3071, 1536, 3071, 1536]
    assert spans(after(timeline, 8), 0) == [[0, 3071]]
    assert after(timeline, 8).used == 1537


def test_c30_y_must_be_x_plus_1(played: Played) -> None:
    timeline = played("case-position-gap")
    before = after(timeline, 7)
    assert spans(before, 2) == [[0, 11855]]
    for step, start in ((8, 14963), (9, 11855)):
        result = timeline.results[step - 1]
        assert result.ret == -1
        assert f"Y = {start} in the batch, but the last position in the cache is X = 11855" in result.message
        assert after(timeline, step).pos.tolist() == before.pos.tolist()
        assert advice(timeline, step)[0].startswith("Start sequence 2 at position 11856")
    assert timeline.results[9].ret == 0
    assert spans(after(timeline, 10), 0, 1, 2, 3) == [[0, 16], [0, 16], [0, 11856], [0, 16]]


@pytest.mark.parametrize("kind", ["recurrent", "memory_recurrent"])
def test_c40_a_state_is_removed_whole_or_not_at_all(kind: Kind) -> None:
    timeline = play(load("case-recurrent-removal").on(kind))
    assert [result.ret for result in timeline.results[1:5]] == [False, False, True, True]
    assert [after(timeline, step).used for step in (1, 2, 3, 4, 5)] == [1, 1, 1, 1, 0]
    assert after(timeline, 4).pos.tolist() == [9]
    assert advice(timeline, 2)[0].endswith("and send positions 0 to 4 again.")


def test_c54_every_sequence_means_every_sequence(played: Played) -> None:
    timeline = played("case-remove-any-sequence")
    assert timeline.results[1].ret is True
    assert (held(after(timeline, 1)), held(after(timeline, 2))) == ([0, 1, 2, 3, 4], [0, 1, 2])
    assert spans(after(timeline, 5), 0, 1) == [[0, 4], [0, 6]]
    assert timeline.results[5].ret is True
    last = after(timeline, 6)
    assert (held(last), spans(last, 0, 1)) == ([0, 1, 2], [[0, 2], [0, 2]])
    assert [last.owners(cell) for cell in range(3)] == [(0, 1)] * 3


def test_c61_a_large_hole_takes_one_move(played: Played) -> None:
    timeline = played("case-one-large-hole")
    assert np.flatnonzero(after(timeline, 3).pos >= 0).tolist() == [*range(50, 100)]
    (plan,) = plans(timeline, 6)
    assert plan.moves.tolist() == [[50, 0, 50]]
    n_layer = timeline.scenario.cache.n_layer
    assert (6 * 50 * n_layer, 6 * plan.n_moves * n_layer) == (9600, 192)
    assert plan.max_moves == 42
    assert [timeline.results[step - 1].ret for step in (4, 7)] == [1, 0]


def test_c81_a_position_that_exists_twice_is_not_lost(played: Played) -> None:
    timeline = played("case-position-twice")
    assert held(after(timeline, 1)) == [5, 4]
    shifted = after(timeline, 2)
    assert (held(shifted), spans(shifted, 0)) == ([4, 3], [[3, 4]])
    assert [result.ret for result in timeline.results[2:4]] == [-1, 0]
    assert spans(after(timeline, 5), 0) == [[4, 5]]


def test_c82_reuse_follows_the_shift_before(played: Played) -> None:
    timeline = played("case-reuse-moves")
    assert by_position(timeline, 1) == list("abcdefghj")
    moved = after(timeline, 3)
    assert (by_position(timeline, 3), sorted(held(moved))) == (list("abefghj"), [*range(7)])
    assert (by_position(timeline, 5), sorted(held(after(timeline, 5)))) == (list("abefhj"), [*range(6)])
    (shift,) = (event.k_shift for event in timeline.events_of(6) if isinstance(event, ShiftApplied))
    assert shift[:9].tolist() == [0, 0, 0, 0, -2, -2, -2, -3, -3]
    assert by_position(timeline, 6) == list("abefhjk")


def test_c82_the_old_numbers_would_have_removed_three_tokens() -> None:
    scenario = load("case-reuse-moves")
    removal = scenario.ops[3].model_copy(update={"p1": 7})
    timeline = play(scenario.model_copy(update={"ops": (*scenario.ops[:3], removal)}))
    assert by_position(timeline, 4) == list("abef")


def test_c86_the_cell_index_does_not_matter(played: Played) -> None:
    timeline = played("case-other-cells")
    first, other = after(timeline, 1), after(timeline, 4)
    assert np.flatnonzero(first.seqs == 1).tolist() == [*range(10)]
    assert np.flatnonzero(other.seqs == 1).tolist() == [*range(100, 110)]
    assert held(first) == other.pos[100:110].tolist() == [*range(10)]
    assert seen(timeline, 1) == seen(timeline, 4) == [[*range(i + 1)] for i in range(10)]
    assert seen(timeline, 6) == [[*range(11)]]
    assert int(after(timeline, 6).pos[0]) == 10
