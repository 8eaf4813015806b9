"""Sequence edits of the recurrent cache, worked by hand from the rules of llama-kv-cache.cpp (January 2025)."""

import pytest

from kvmodel.errors import CacheAbort
from kvmodel.events import NothingToDo
from kvmodel.events_recurrent import SeqRmRefused, SlotFilled
from tests.bench_recurrent import Bench


@pytest.mark.parametrize(("p0", "p1"), [(5, -1), (9, -1), (0, 9), (0, 1), (3, 6)])
def test_a_part_of_a_state_cannot_be_removed(p0: int, p1: int) -> None:
    bench = Bench(1, n_ubatch=16)
    bench.decode((0, 10, (0,)))
    before = bench.rows
    assert not bench.cache.seq_rm(0, p0, p1)
    assert bench.rows == before
    [refused] = bench.told(SeqRmRefused)
    assert (refused.why, refused.pos) == ("partial", 9)


@pytest.mark.parametrize(("p0", "p1"), [(10, -1), (10, 12), (0, 0), (-1, 0)])
def test_a_range_behind_a_state_removes_nothing(p0: int, p1: int) -> None:
    bench = Bench(1, n_ubatch=16)
    bench.decode((0, 10, (0,)))
    assert bench.cache.seq_rm(0, p0, p1)
    assert bench.rows == [(9, 0, 0, 0, (0,))]


@pytest.mark.parametrize(("p0", "p1"), [(-1, -1), (0, -1), (0, 10), (-1, 2**31 - 1)])
def test_a_whole_state_is_removed(p0: int, p1: int) -> None:
    bench = Bench(1, n_ubatch=16)
    bench.decode((0, 10, (0,)))
    assert bench.cache.seq_rm(0, p0, p1)
    assert bench.rows == [(-1, 0, -1, -1, ())]
    assert bench.cache.used == 0


def test_removing_one_owner_leaves_the_state_to_the_other() -> None:
    bench = Bench(2)
    bench.decode((0, 3, (0,)))
    bench.cache.seq_cp(0, 1, -1, -1)
    assert bench.cache.seq_rm(0, -1, -1)
    assert bench.rows == [(2, 0, 0, -1, (1,)), (-1, 0, -1, 0, ())]
    assert bench.cache.used == 1


@pytest.mark.parametrize(("seq", "p0", "p1", "ret"), [(2, -1, -1, False), (-1, 1, -1, False), (-1, 3, 3, True)])
def test_removals_that_touch_no_state(seq: int, p0: int, p1: int, ret: bool) -> None:
    bench = Bench(2)
    bench.decode((0, 3, (0,)))
    assert bench.cache.seq_rm(seq, p0, p1) is ret
    assert bench.rows[0] == (2, 0, 0, 0, (0,))


def test_copying_onto_a_state_frees_it_with_a_mark() -> None:
    """The freed cell has delta -1 from then on, also through clear."""
    bench = Bench(2)
    bench.decode((0, 2, (0,)), (0, 2, (1,)))
    bench.cache.seq_cp(0, 1, -1, -1)
    assert bench.rows == [(-1, -1, -1, 1, ()), (1, 0, 1, 1, (0, 1))]
    assert bench.cache.used == 1
    bench.cache.clear()
    assert bench.rows == [(-1, -1, -1, -1, ()), (-1, 0, -1, -1, ())]


def test_a_sequence_copied_onto_itself_is_dropped() -> None:
    bench = Bench(2)
    bench.decode((0, 3, (0,)))
    bench.cache.seq_cp(0, 0, -1, -1)
    assert bench.rows == [(-1, -1, -1, -1, ()), (-1, 0, -1, -1, ())]
    assert (bench.cache.used, bench.cache.seq_pos_max(0)) == (0, 0)
    assert bench.quirks == ["recurrent-self-copy"]


def test_a_shift_may_lead_below_zero_and_nothing_reaches_the_state_there() -> None:
    """At position -4 no range holds the state: neither a shift nor a removal finds it, only decode and keep do."""
    bench = Bench(2)
    bench.decode((0, 3, (0,)))
    bench.cache.seq_add(0, 0, -1, -6)
    assert bench.rows[0] == (-4, 0, 0, 0, (0,))
    assert (bench.cache.seq_pos_max(0), bench.cache.max_pos, bench.cache.cell_max) == (0, -1, 0)
    bench.cache.seq_add(0, -1, -1, 9)
    assert bench.cache.seq_rm(0, -1, -1)
    assert bench.cache.seq_rm(-1, -1, -1)
    assert bench.rows[0] == (-4, 0, 0, 0, (0,))
    assert bench.quirks == []
    assert bench.decode((0, 2, (0,))) == 0
    assert bench.rows[0] == (1, 0, 0, 0, (0,))
    assert bench.told(SlotFilled)[-1].jumps == ()


def test_a_shift_moves_all_owners_of_the_state() -> None:
    bench = Bench(2)
    bench.decode((0, 6, (0,)))
    bench.cache.seq_cp(0, 1, -1, -1)
    bench.cache.seq_add(1, 0, -1, 4)
    assert [bench.cache.seq_pos_max(seq) for seq in (0, 1)] == [9, 9]
    bench.cache.seq_div(0, 0, -1, 2)
    assert [bench.cache.seq_pos_max(seq) for seq in (0, 1)] == [4, 4]
    bench.cache.seq_div(0, 0, -1, -3)
    assert bench.rows[0] == (-1, 0, 0, 0, (0, 1))
    assert not bench.cache.has_shift


@pytest.mark.parametrize(
    ("seq", "p0", "p1", "why"),
    [
        (0, 3, 3, "the range is empty"),
        (1, 0, -1, "sequence 1 has no state"),
        (7, 0, -1, "sequence 7 has no state"),
        (0, 0, 2, "sequence 0 is at position 2, outside the range"),
    ],
)
def test_shifts_of_nothing(seq: int, p0: int, p1: int, why: str) -> None:
    bench = Bench(2)
    bench.decode((0, 3, (0,)))
    bench.cache.seq_add(seq, p0, p1, 5)
    bench.cache.seq_div(seq, p0, p1, 0)
    assert [(event.call, event.why) for event in bench.told(NothingToDo)] == [("seq_add", why), ("seq_div", why)]
    assert bench.cache.seq_pos_max(0) == 2


def test_dividing_by_zero_ends_upstream() -> None:
    bench = Bench(2)
    bench.decode((0, 3, (0,)))
    with pytest.raises(CacheAbort, match="d is 0"):
        bench.cache.seq_div(0, 0, -1, 0)


def test_keeping_one_sequence() -> None:
    """Cell 1 is the first that sequence 2 does not own, so head goes there at most."""
    bench = Bench(3)
    bench.decode((0, 1, (0,)), (0, 1, (1,)), (0, 1, (2,)))
    bench.cache.seq_cp(2, 1, -1, -1)
    bench.cache.head = 2
    bench.cache.seq_keep(2)
    assert bench.rows == [(0, 0, 0, -1, (2,)), (-1, -1, -1, -1, ()), (-1, 0, -1, 0, ())]
    assert (bench.cache.head, bench.cache.used) == (1, 1)


def test_keeping_a_sequence_without_a_place_frees_everything() -> None:
    bench = Bench(2)
    bench.decode((0, 1, (0,)))
    bench.cache.seq_keep(-1)
    assert bench.rows == [(-1, 0, -1, -1, ())] * 2


def test_a_copy_onto_a_dangling_tail_counts_below_zero() -> None:
    """`used` is unsigned: one less than no cell at all is 2^32 - 1."""
    bench = Bench(3)
    bench.decode((0, 1, (0,)))
    bench.cache.seq_rm(-1, -1, -1)
    bench.cache.seq_cp(1, 0, -1, -1)
    assert bench.cache.used == 2**32 - 1
    assert "4294967295 cells count as used instead of 0" in bench.cache.check_integrity()
