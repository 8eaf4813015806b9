"""Move plans by hand, and against the literal walk."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.defrag import DefragPlan, move_budget, plan_defrag
from kvmodel.errors import CacheAbort
from tests.reference import RefCells, move_plan

NO_LIMIT = 10**9


def plan(pattern: str, max_moves: int = NO_LIMIT) -> DefragPlan:
    """One cell a letter, `.` for a hole; the last cell is used."""
    return plan_defrag(np.array([letter != "." for letter in pattern], np.bool_), max_moves)


@pytest.mark.parametrize(
    ("pattern", "ids", "moves"),
    [
        ("aaaa", [], []),
        ("", [], []),
        (".a", [2, 0], [[1, 0, 1]]),
        ("a..aa", [0, 5, 5, 1, 2], [[3, 1, 2]]),
        ("a.a.a.a", [0, 7, 2, 7, 3, 7, 1], [[4, 3, 1], [6, 1, 1]]),
        ("..a..aa", [7, 7, 2, 7, 7, 0, 1], [[5, 0, 2]]),
        ("a..a.aa.a", [0, 9, 9, 3, 9, 4, 1, 9, 2], [[5, 4, 1], [6, 1, 1], [8, 2, 1]]),
    ],
)
def test_holes_are_filled_with_the_last_cells(pattern, ids, moves):
    made = plan(pattern)
    assert (made.ids.tolist(), made.moves.tolist()) == (ids, moves)
    assert (made.n_moves, made.empty, made.truncated) == (len(moves), not moves, False)
    assert made.n_holes == sum(length for _, _, length in moves)


@pytest.mark.parametrize(
    ("budget", "ids", "moves"),
    [
        (1, [0, 9, 9, 9, 9, 9, 9, 9, 2], [[8, 2, 1]]),
        (2, [0, 9, 9, 9, 9, 9, 1, 9, 2], [[6, 1, 1], [8, 2, 1]]),
        (3, [0, 9, 9, 3, 9, 4, 1, 9, 2], [[5, 4, 1], [6, 1, 1], [8, 2, 1]]),
    ],
)
def test_a_budget_ends_the_plan(budget, ids, moves):
    """The hole of two takes cells 6 and 8, two blocks; the walk ends with the block that spends the budget."""
    full = plan("a..a.aa.a")
    cut = plan("a..a.aa.a", budget)
    assert cut.truncated == (budget < full.n_moves)


def test_a_budget_of_zero_is_no_limit():
    assert plan("a.a.a.a", 0).ids.tolist() == plan("a.a.a.a").ids.tolist()
    assert plan("a.a.a.a", 0).max_moves == 0


def test_moving_makes_the_used_cells_one_block():
    made = plan("a..a.aa.a")
    cells = np.array(list("a..b.cd.e"))
    cells[made.dst] = cells[made.src]
    cells[made.src] = "."
    assert "".join(cells) == "adebc...."


@pytest.mark.parametrize(
    ("n_max_nodes", "n_layer", "moves"),
    [(65_536, 32, 341), (8192, 32, 42), (8, 1, 1), (7, 1, 0), (2, 1, 0), (16, 8, 0), (0, 1, 715_827_882)],
)
def test_six_nodes_a_move_and_layer(n_max_nodes, n_layer, moves):
    """(nodes - 2 x layers) / (6 x layers); with too few nodes the unsigned difference is huge."""
    assert move_budget(n_max_nodes, n_layer) == moves


def test_a_cache_without_layers_cannot_be_defragmented():
    with pytest.raises(CacheAbort, match="holds no layers"):
        move_budget(65_536, 0)


@given(st.lists(st.booleans(), max_size=60), st.one_of(st.integers(0, 12), st.just(NO_LIMIT)))
def test_plans_against_the_walk(filled, max_moves):
    filled = [*filled, True]
    cells = RefCells(len(filled))
    for i, used in enumerate(filled):
        if used:
            cells.pos_set(i, i)
    ids, n_moves = move_plan(cells, max_moves)
    made = plan_defrag(np.array(filled), max_moves)
    assert (made.ids.tolist(), made.n_moves) == (ids, n_moves)
    assert sum(length for _, _, length in made.moves.tolist()) == len(made.src) == len(set(made.dst.tolist()))
    assert not np.array(filled)[made.dst].any()
    assert np.array(filled)[made.src].all()
