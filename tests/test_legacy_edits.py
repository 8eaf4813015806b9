"""The older transformer cache: removing, copying, keeping, moving and dividing positions, and clearing."""

import pytest

from kvmodel.errors import CacheAbort, ParamError
from kvmodel.events import (
    Cleared,
    NothingToDo,
    SeqAdded,
    SeqKept,
    SeqRemoved,
    ShiftApplied,
    SlotSearched,
    UBatchStored,
)
from tests.bench_legacy import Bench

INT32_MAX = 2**31 - 1


@pytest.fixture
def holes() -> Bench:
    """Eight cells: `a..aaa..`, head at the first hole."""
    bench = Bench(8)
    bench.place((0, 6, (0,)))
    bench.cache.seq_rm(0, 1, 3)
    bench.told()
    return bench


def test_removing_frees_what_has_no_owner_left(holes):
    holes.cache.seq_cp(0, 1, 4, 6)
    holes.cache.head = 7
    holes.told()
    assert holes.cache.seq_rm(0, 3, -1)
    [event] = holes.told()
    assert isinstance(event, SeqRemoved)
    assert (event.cells.tolist(), event.freed.tolist()) == ([3, 4, 5], [3])
    assert (event.head_before, event.head, holes.row(), holes.cache.used) == (7, 3, "a...bb..", 3)


def test_removing_never_moves_head_forward(holes):
    assert holes.cache.head == 1
    holes.cache.seq_rm(0, 5, 6)
    assert (holes.cache.head, holes.row()) == (1, "a..aa...")


def test_numbers_outside_the_sets_own_nothing(holes):
    for seq in (64, INT32_MAX):
        assert holes.cache.seq_rm(seq, -1, -1)
        holes.cache.seq_add(seq, 0, 9, 3)
        assert (holes.row(), holes.cache.seq_pos_max(seq), holes.cache.seq_pos_min(seq)) == ("a..aaa..", 0, -1)
    assert not holes.cache.has_shift
    holes.cache.seq_cp(-1, 99, -1, -1)
    with pytest.raises(ParamError, match="dst is 99; allowed: a whole number from 0 to 63"):
        holes.cache.seq_cp(0, 99, -1, -1)
    holes.cache.seq_keep(-1)
    assert (holes.row(), holes.cache.used) == ("........", 0)


def test_copying_always_moves_head_to_0():
    bench = Bench(8)
    bench.place((0, 3, (0,)))
    bench.cache.seq_cp(0, 0, 5, 9)
    assert (bench.cache.head, bench.row()) == (0, "aaa.....")
    bench.cache.head = 3
    bench.cache.seq_cp(0, 2, 1, -1)
    assert (bench.cache.head, bench.row(), bench.cache.used) == (0, "aMM.....", 3)


def test_keeping_moves_head_to_the_first_cell_of_another(holes):
    holes.cache.seq_cp(0, 1, 3, 5)
    holes.cache.head = 6
    holes.told()
    holes.cache.seq_keep(1)
    [event] = holes.told()
    assert isinstance(event, SeqKept)
    assert (event.freed.tolist(), event.narrowed.tolist()) == ([0, 5], [3, 4])
    assert (holes.row(), holes.cache.head, holes.cache.used) == ("...bb...", 0, 2)


def test_keeping_moves_head_to_a_cell_that_was_free_before():
    bench = Bench(8)
    bench.place((0, 4, (0,)))
    bench.cache.head = 6
    bench.cache.seq_keep(0)
    assert (bench.row(), bench.cache.head) == ("aaaa....", 4)


def test_what_falls_below_0_is_freed_with_its_delta():
    bench = Bench(6)
    bench.place((0, 4, (0,)))
    bench.told()
    bench.cache.seq_add(0, 0, -1, -2)
    [event] = bench.told()
    assert isinstance(event, SeqAdded)
    assert (event.cells.tolist(), event.freed.tolist()) == ([0, 1, 2, 3], [0, 1])
    assert (bench.pos(), bench.delta()) == ([-1, -1, 0, 1, -1, -1], [-2, -2, -2, -2, 0, 0])
    assert (bench.cache.head, bench.cache.used, bench.cache.has_shift) == (0, 2, True)


def test_adding_moves_head_to_the_first_freed_cell_or_to_0():
    bench = Bench(8)
    bench.place((5, 3, (0,)), (0, 2, (1,)))
    bench.cache.seq_add(1, 0, 1, -1)
    assert (bench.row(), bench.cache.head) == ("aaa.b...", 3)
    bench.cache.seq_add(0, 6, 7, 10)
    assert (bench.pos(5), bench.cache.head) == ([5, 16, 7, -1, 1], 0)


def test_a_shift_of_0_counts_as_pending_and_an_empty_range_does_not(holes):
    holes.cache.seq_add(0, 4, 4, 7)
    holes.cache.seq_div(0, 4, 4, 7)
    assert [type(event) for event in holes.told()] == [NothingToDo, NothingToDo]
    assert (holes.cache.has_shift, holes.cache.head) == (False, 1)
    holes.cache.seq_add(0, 0, -1, 0)
    assert (holes.cache.has_shift, holes.cache.head, holes.row()) == (True, 0, "a..aaa..")


def test_dividing_leaves_new_minus_old_as_delta():
    bench = Bench(8)
    bench.place((0, 6, (0,)))
    bench.cache.seq_div(0, 0, -1, 3)
    assert bench.pos(6) == [0, 0, 0, 1, 1, 1]
    assert bench.delta(6) == [0, -1, -2, -2, -3, -4]
    assert (bench.cache.has_shift, bench.cache.head) == (True, 6)


@pytest.mark.parametrize("d", [0, -2])
def test_a_divisor_below_1_ends_the_process_if_it_meets_a_cell(holes, d):
    holes.cache.seq_div(1, 0, -1, d)
    with pytest.raises(CacheAbort, match=f"d is {d}; allowed: 1 or more"):
        holes.cache.seq_div(0, 0, -1, d)


def test_the_largest_position_of_nothing_is_0(holes):
    assert (holes.cache.seq_pos_max(0), holes.cache.seq_pos_min(0)) == (5, 0)
    assert (holes.cache.seq_pos_max(3), holes.cache.seq_pos_min(3)) == (0, -1)


def test_the_last_cell_needs_position_and_owner():
    bench = Bench(8)
    bench.place((0, 2, (0,)), (9, 1, ()))
    assert (bench.cache.cell_max, bench.cache.max_pos) == (2, 9)
    bench.cache.seq_rm(0, -1, -1)
    assert (bench.cache.cell_max, bench.cache.max_pos) == (0, 9)


def test_a_token_inherits_the_delta_of_the_cell():
    bench = Bench(4)
    bench.place((0, 4, (0,)))
    bench.cache.seq_add(0, 0, -1, 5)
    bench.cache.seq_rm(0, 7, 9)
    bench.told()
    bench.place((0, 2, (1,)))
    [searched, quirk, stored] = bench.told()
    assert isinstance(searched, SlotSearched)
    assert isinstance(stored, UBatchStored)
    assert quirk.detail == "2 new cells inherited the delta that a former token had left behind"
    assert (bench.pos(), bench.delta()) == ([5, 6, 0, 1], [5, 5, 5, 5])
    bench.cache.clear()
    assert (bench.pos(), bench.delta(), bench.cache.has_shift) == ([-1] * 4, [5] * 4, True)
    assert bench.cache.apply_shift().tolist() == [5, 5, 5, 5]
    assert (bench.delta(), bench.cache.has_shift) == ([0] * 4, False)
    [cleared, shifted] = bench.told()
    assert isinstance(cleared, Cleared)
    assert isinstance(shifted, ShiftApplied)
    assert bench.place((0, 1, (0,)))
    assert bench.quirks() == []


def test_clearing_always_clears_the_data(holes):
    holes.cache.clear(data=False)
    [event] = holes.told()
    assert (event.data, event.n_cells, holes.row()) == (True, 8, "........")
    assert (holes.cache.head, holes.cache.used) == (0, 0)
