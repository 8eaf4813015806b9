"""The cache view of the older generation, worked by hand."""

import numpy as np
import pytest

from kvmodel.caches.legacy_cells import LegacyCells
from kvmodel.caches.legacy_view import longest_run, view_cells
from kvmodel.errors import ParamError


def cells_of(owners: list[set[int]]) -> LegacyCells:
    cells = LegacyCells(len(owners))
    for i, seqs in enumerate(owners):
        if seqs:
            sets = np.array([sum(1 << seq for seq in seqs)], np.uint64)
            cells.put(i, np.array([10 + i], np.int32), sets, np.array([i], np.int32))
    return cells


def test_the_view_counts_sequences_cells_and_the_longest_free_run():
    view = view_cells(cells_of([{0}, set(), set(), {5, 2, 63}, set(), {0}, set(), set()]), 2)
    assert (view.n_cells, view.n_seq_max, view.token_count, view.used_cells) == (8, 2, 5, 3)
    assert (view.max_contiguous, view.max_contiguous_idx) == (2, 1)
    assert view.pos.tolist() == [10, -1, -1, 13, -1, 15, -1, -1]
    assert view.seqs.tolist() == [[0, -1], [-1, -1], [-1, -1], [2, 5], [-1, -1], [0, -1], [-1, -1], [-1, -1]]


def test_positions_are_shown_with_their_delta_even_in_empty_cells():
    cells = cells_of([{0}, set()])
    cells.delta[:] = [5, -3]
    assert view_cells(cells, 1).pos.tolist() == [15, -4]


@pytest.mark.parametrize(("n_seq_max", "used"), [(0, 0), (1, 1), (70, 1)])
def test_a_view_without_room_for_ids_sees_no_used_cell(n_seq_max, used):
    view = view_cells(cells_of([{1, 4}]), n_seq_max)
    assert (view.token_count, view.used_cells, view.seqs.shape) == (2, used, (1, n_seq_max))
    assert view.seqs[0].tolist() == [1, 4, *[-1] * 68][:n_seq_max]


def test_a_full_set_lists_all_64_ids():
    assert view_cells(cells_of([set(range(64))]), 64).seqs[0].tolist() == list(range(64))


@pytest.mark.parametrize(
    ("free", "expected"),
    [("", (-1, 0)), ("00", (-1, 0)), ("011", (1, 2)), ("110", (0, 2)), ("1011", (2, 2)), ("1101011", (0, 2))],
)
def test_the_first_of_the_longest_runs_counts(free, expected):
    assert longest_run(np.array([bit == "1" for bit in free], np.bool_)) == expected


def test_a_view_of_absurd_width_is_refused():
    with pytest.raises(ParamError, match="n_seq_max is -1"):
        view_cells(cells_of([{0}]), -1)
    with pytest.raises(ParamError, match="n_seq_max is 268435457"):
        view_cells(cells_of([{0}]), (1 << 28) + 1)
