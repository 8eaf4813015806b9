"""Cells to rows and columns and back."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.figures.grid import MAX_SQUARES, Grid, ticks


@pytest.mark.parametrize(
    ("n", "rows", "columns"),
    [
        (1, 1, 1),
        (8, 1, 8),
        (32, 2, 16),
        (64, 4, 16),
        (96, 6, 16),
        (100, 5, 20),
        (128, 8, 16),
        (256, 8, 32),
        (512, 16, 32),
        (1024, 16, 64),
        (4096, 32, 128),
        (131_072, 256, 512),
    ],
)
def test_a_map_is_wide_and_its_rows_are_full(n: int, rows: int, columns: int) -> None:
    grid = Grid.of(n)
    assert (grid.rows, grid.columns, grid.pool) == (rows, columns, 1)


def test_a_thousand_cells_fit_beside_other_panels() -> None:
    assert Grid.of(1024).height <= 272
    assert Grid.of(64).height <= 272


@pytest.mark.parametrize(("n", "pool"), [(131_073, 2), (262_144, 2), (262_145, 4), (1_048_576, 8)])
def test_more_cells_than_pixels_share_squares(n: int, pool: int) -> None:
    grid = Grid.of(n)
    assert grid.pool == pool
    assert grid.squares <= MAX_SQUARES
    assert grid.cell_at(*grid.place(n - 1)) == (n - 1) // pool * pool


@given(n=st.integers(1, 5000), columns=st.one_of(st.none(), st.integers(1, 200)), data=st.data())
def test_a_cell_is_found_where_it_is_placed(n: int, columns: int | None, data: st.DataObject) -> None:
    grid = Grid.of(n, columns)
    cell = data.draw(st.integers(0, n - 1))
    row, column = grid.place(cell)
    assert 0 <= row < grid.rows
    assert 0 <= column < grid.columns
    assert grid.cell_at(row, column) == cell
    assert grid.lay_out(np.arange(n), -1)[row, column] == cell


@pytest.mark.parametrize(("row", "column"), [(-1, 0), (0, -1), (0, 16), (4, 0)])
def test_outside_there_is_no_cell(row: int, column: int) -> None:
    assert Grid.of(64).cell_at(row, column) is None


def test_what_the_last_row_lacks_is_filled() -> None:
    grid = Grid(5, 3)
    assert grid.lay_out(np.array([1, 2, 3, 4, 5], np.uint8), 9).tolist() == [[1, 2, 3], [4, 5, 9]]
    assert grid.cell_at(1, 2) is None


@pytest.mark.parametrize(("boundary", "edge"), [(0, (0, 0)), (5, (0, 5)), (16, (0, 16)), (17, (1, 1)), (64, (3, 16))])
def test_a_boundary_stays_in_the_row_it_ends(boundary: int, edge: tuple[int, int]) -> None:
    assert Grid(64, 16).edge(boundary) == edge


@given(n=st.integers(1, 300), first=st.integers(0, 40), data=st.data())
def test_runs_are_exactly_the_cells_and_apart(n: int, first: int, data: st.DataObject) -> None:
    cells = data.draw(st.sets(st.integers(first, first + n - 1)))
    runs = Grid(n, 7, first=first).runs(np.array(sorted(cells), np.intp)).tolist()
    assert [cell for begin, end in runs for cell in range(begin, end)] == sorted(cells)
    assert all(end < begin for (_, end), (begin, _) in pairwise(runs))


def test_a_run_covers_whole_squares() -> None:
    assert Grid(64, 4, pool=4).runs(np.array([5, 9, 40], np.intp)).tolist() == [[4, 12], [40, 44]]


@given(n=st.integers(1, 100_000), most=st.integers(1, 40))
def test_ticks_are_few_and_a_power_of_two_apart(n: int, most: int) -> None:
    chosen = ticks(n, most)
    assert chosen[0] == 0
    assert chosen[-1] < n
    assert len(chosen) <= most
    steps = set(np.diff(chosen).tolist())
    assert len(steps) <= 1
    assert all(step.bit_count() == 1 for step in steps)
