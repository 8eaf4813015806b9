"""The cell store by hand: small states whose every number can be checked with a pencil."""

import numpy as np
import pytest

from kvmodel.cells import Cells, single_owners
from kvmodel.limits import INT32_MAX
from kvmodel.spans import members, owns, seq_bit, union

A, B, AB = 0b01, 0b10, 0b11


def index(*cells: int) -> np.ndarray:
    return np.array(cells, np.intp)


def filled(pos: list[int], seqs: list[int], n: int = 8) -> Cells:
    """Cells 0, 1, ... with these positions and owners; serial numbers count from 100."""
    cells = Cells(n)
    token = np.arange(100, 100 + len(pos), dtype=np.int32)
    cells.put(0, np.array(pos, np.int32), np.array(seqs, np.uint64), token)
    return cells


@pytest.fixture
def five() -> Cells:
    """Sequence 0 at positions 0, 1, 2 and sequence 1 at 1, 0, 7; cell 1 is shared."""
    return filled([0, 1, 2, 0, 7], [A, AB, A, B, B])


def test_new_cells_are_empty():
    cells = Cells(4)
    assert (cells.pos.tolist(), cells.shift.tolist(), cells.seqs.tolist()) == ([-1] * 4, [0] * 4, [0] * 4)
    assert (cells.used, cells.used_max_p1, cells.has_shift) == (0, 0, False)
    assert (cells.seq_pos_min(0), cells.seq_pos_max(0)) == (-1, -1)


def test_put_counts_cells_and_positions(five):
    assert (five.used, five.used_max_p1) == (5, 5)
    assert [(five.seq_pos_min(s), five.seq_pos_max(s)) for s in (0, 1, 2)] == [(0, 2), (0, 7), (-1, -1)]
    assert five.token.tolist() == [100, 101, 102, 103, 104, -1, -1, -1]


@pytest.mark.parametrize(
    ("p0", "p1", "seq", "found"),
    [
        (0, INT32_MAX, -1, [0, 1, 2, 3, 4]),
        (0, INT32_MAX, 1, [1, 3, 4]),
        (1, 3, 0, [1, 2]),
        (-5, 1, -1, [0, 3]),
        (2, 2, -1, []),
        (3, 1, -1, []),
        (7, 8, 1, [4]),
        (8, INT32_MAX, 1, []),
        (0, INT32_MAX, 63, []),
    ],
)
def test_select(five, p0, p1, seq, found):
    assert five.select(p0, p1, seq).tolist() == found


def test_an_open_range_ends_before_the_largest_position():
    cells = filled([INT32_MAX - 1, INT32_MAX], [A, A])
    assert cells.select(0, INT32_MAX).tolist() == [0]


def test_seq_rm_frees_what_nobody_owns(five):
    freed = five.seq_rm(index(0, 1, 2), 0)
    assert freed.tolist() == [0, 2]
    assert five.pos.tolist() == [-1, 1, -1, 0, 7, -1, -1, -1]
    assert five.seqs.tolist() == [0, B, 0, B, B, 0, 0, 0]
    assert five.token.tolist() == [-1, 101, -1, 103, 104, -1, -1, -1]
    assert (five.used, five.used_max_p1) == (3, 5)
    assert (five.seq_pos_min(0), five.seq_pos_min(1)) == (-1, 0)


def test_the_used_end_goes_back_over_every_empty_cell(five):
    five.free(index(2, 3, 4))
    assert (five.used, five.used_max_p1) == (2, 2)
    five.free(index(0, 1))
    assert (five.used, five.used_max_p1) == (0, 0)


def test_seq_add_tells_who_was_there(five):
    assert five.seq_add(index(0, 1), 1).tolist() == [1]
    assert five.seqs.tolist()[:3] == [AB, AB, A]


def test_a_position_counted_twice_outlives_its_cell(five):
    five.seq_add(index(1), 1)
    five.seq_rm(index(1, 3, 4), 1)
    assert (five.seq_pos_min(1), five.seq_pos_max(1)) == (1, 1)
    assert five.check_integrity() == []
    five.reset()
    assert (five.seq_pos_min(1), five.seq_pos_max(1)) == (-1, -1)


def test_seq_keep_leaves_cells_without_any_owner():
    cells = filled([0, 1, 2, 3], [A, AB, B, 0])
    freed, narrowed = cells.seq_keep(0)
    assert (freed.tolist(), narrowed.tolist()) == ([2], [1])
    assert cells.pos.tolist()[:4] == [0, 1, -1, 3]
    assert cells.seqs.tolist()[:4] == [A, A, 0, 0]
    assert (cells.used, cells.seq_pos_max(0), cells.seq_pos_max(1)) == (3, 1, -1)


def test_seq_keep_counts_what_changed_before(five):
    five.seq_rm(index(0), 0)
    five.seq_keep(0)
    assert (five.seq_pos_min(0), five.seq_pos_max(0)) == (1, 2)


def test_restore_reaches_as_far_as_before(five):
    saved = five.save(4, 1)
    five.free(index(3, 4))
    assert five.used_max_p1 == 3
    five.restore(saved)
    assert five.used_max_p1 == 5


def test_pos_add_frees_what_falls_below_zero(five):
    assert five.pos_add(index(0, 1, 2), -1).tolist() == [0]
    assert five.pos.tolist()[:5] == [-1, 0, 1, 0, 7]
    assert five.shift.tolist()[:5] == [0, -1, -1, 0, 0]
    assert five.has_shift
    assert [(five.seq_pos_min(s), five.seq_pos_max(s)) for s in (0, 1)] == [(0, 1), (0, 7)]


def test_pos_add_of_no_cell_leaves_no_shift(five):
    assert five.pos_add(index(), 3).tolist() == []
    assert not five.has_shift


def test_a_shift_that_frees_every_cell_still_counts_as_pending(five):
    five.pos_add(index(0, 1, 2, 3, 4), -100)
    assert (five.used, five.has_shift, five.shift.any()) == (0, True, False)


def test_shifts_add_up_until_they_are_dropped(five):
    five.pos_add(index(3, 4), 5)
    five.pos_add(index(4), -2)
    assert five.shift.tolist()[:5] == [0, 0, 0, 5, 3]
    five.reset_shift()
    assert (five.shift.any(), five.has_shift, five.pos.tolist()[3:5]) == (False, False, [5, 10])


def test_pos_div_records_old_minus_new(five):
    five.pos_div(index(2, 3, 4), 3)
    assert five.pos.tolist()[2:5] == [0, 0, 2]
    assert five.shift.tolist()[2:5] == [2, 0, 5]


def test_mv_takes_everything_along(five):
    five.free(index(0, 1))
    five.pos_add(index(4), 1)
    five.mv(index(3, 4), index(0, 1))
    assert five.pos.tolist()[:5] == [0, 8, 2, -1, -1]
    assert five.shift.tolist()[:5] == [0, 1, 0, 0, 0]
    assert five.seqs.tolist()[:5] == [B, B, A, 0, 0]
    assert five.token.tolist()[:5] == [103, 104, 102, -1, -1]
    assert (five.used, five.used_max_p1, five.seq_pos_max(1)) == (3, 3, 8)


def test_restore_brings_back_everything_but_the_shift(five):
    five.pos_add(index(0, 1, 2), 10)
    saved = five.save(1, 3)
    five.free(index(1, 2, 3))
    five.put(1, np.array([50, 51, 52], np.int32), np.array([B, B, B], np.uint64), np.array([7, 8, 9], np.int32))
    five.restore(saved)
    assert five.pos.tolist()[:5] == [10, 11, 12, 0, 7]
    assert five.seqs.tolist()[:5] == [A, AB, A, B, B]
    assert five.token.tolist()[:5] == [100, 101, 102, 103, 104]
    assert five.shift.tolist()[:5] == [10, 0, 0, 0, 0]
    assert (five.used, five.used_max_p1, five.seq_pos_max(1)) == (5, 5, 11)
    assert five.check_integrity() == []


BREAKS = {
    "a position is below -1": lambda cells: cells.pos.__setitem__(0, -2),
    "an empty cell has an owner": lambda cells: cells.seqs.__setitem__(6, A),
    "an empty cell holds a token": lambda cells: cells.token.__setitem__(6, 3),
    "used is 9, counted 5": lambda cells: setattr(cells, "used", 9),
    "a shift is pending while has_shift is false": lambda cells: cells.shift.__setitem__(1, 4),
    "sequence 1 spans (0, 7), counted (0, 1)": lambda cells: cells.seqs.__setitem__(4, A),
    "used_max_p1 is 5": lambda cells: cells.pos.__setitem__(7, 3),
}


@pytest.mark.parametrize("sentence", BREAKS)
def test_integrity_names_what_is_broken(five, sentence):
    assert five.check_integrity() == []
    BREAKS[sentence](five)
    assert sentence in five.check_integrity()


def test_integrity_tells_every_violation_at_once(five):
    five.shift[1], five.used = 4, 9
    assert len(five.check_integrity()) == 2


@pytest.mark.parametrize("seq", range(64))
def test_every_sequence_has_a_bit_of_its_own(seq):
    seqs = np.array([1 << seq, (1 << 64) - 1, ((1 << 64) - 1) ^ (1 << seq), 0], np.uint64)
    assert int(seq_bit(seq)) == 1 << seq
    assert owns(seqs, seq).tolist() == [True, True, False, False]
    assert single_owners(seqs[:1]).tolist() == [seq]


def test_no_cell_belongs_to_sequence_minus_one():
    assert owns(np.array([0, 1, (1 << 64) - 1], np.uint64), -1).tolist() == [False] * 3


def test_sets_as_numbers_and_as_lists():
    assert union(np.array([1, 8, 1 << 63], np.uint64)) == 1 + 8 + (1 << 63)
    assert union(np.array([], np.uint64)) == 0
    assert members(0b1011) == [0, 1, 3]
    assert members(0) == []
