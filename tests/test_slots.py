"""The slot search: hand-made states, and what must hold of every search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.cells import Cells
from kvmodel.slots import Blocked, SlotSearch, Start, block_reasons, find_slot
from kvmodel.types import SWAType
from tests.compare import probes_of

A, B, AB = 0b01, 0b10, 0b11
FREE = -1


def cells_of(*cells: tuple[int, int] | int) -> Cells:
    """Cells given as (position, owners), or FREE."""
    made = Cells(len(cells))
    for i, cell in enumerate(cells):
        if cell != FREE:
            pos, seqs = cell
            made.put(i, np.array([pos], np.int32), np.array([seqs], np.uint64), np.array([i], np.int32))
    return made


def row(pattern: str) -> Cells:
    """One cell a letter: `.` free, `a` and `b` one owner, `m` both, `n` none; positions count up."""
    owners = {"a": A, "b": B, "m": AB, "n": 0}
    return cells_of(*(FREE if letter == "." else (i, owners[letter]) for i, letter in enumerate(pattern)))


def search(pattern: str, head: int, n: int) -> SlotSearch:
    return find_slot(row(pattern), head, n, SWAType.NONE, 0)


@pytest.mark.parametrize(
    ("pattern", "head", "n", "cell", "probes"),
    [
        ("........", 0, 3, 0, []),
        ("aa......", 2, 6, 2, []),
        ("a.m..b..", 1, 2, 3, [(1, 2, "shared")]),
        ("a.n..b..", 1, 2, 3, [(1, 2, "no_owner")]),
        ("...aaa..", 6, 3, 0, [(6, 8, "end")]),
        ("a...aaa.", 7, 3, 1, [(7, 8, "end"), (0, 0, "visible")]),
        ("aaaa", 4, 1, -1, [(4, 4, "end"), *[(i, i, "visible") for i in range(4)]]),
        ("aaaa", 0, 2, -1, [(0, 0, "visible"), (1, 1, "visible"), (2, 2, "visible"), (3, 4, "end"), (0, 0, "visible")]),
        ("..a.a...", 6, 4, -1, [(6, 8, "end"), (0, 2, "visible"), (3, 4, "visible"), (5, 8, "end"), (0, 2, "visible")]),
    ],
)
def test_every_refused_run_is_told(pattern, head, n, cell, probes):
    """The last two walk around the end twice: the check for having seen every cell follows a blocked cell only."""
    found = search(pattern, head, n)
    assert (found.cell, probes_of(found)) == (cell, probes)
    assert found.n_tested == sum(end - start + (why != "end") for start, end, why in probes)


@pytest.mark.parametrize(
    ("pattern", "head", "n", "start", "reason"),
    [
        ("aa......", 4, 1, 4, Start.HEAD),
        ("aa......", 5, 1, 0, Start.EARLY),
        ("........", 7, 3, 0, Start.EARLY),
        ("........", 6, 3, 6, Start.HEAD),
    ],
)
def test_a_head_beyond_used_plus_twice_the_tokens_goes_back(pattern, head, n, start, reason):
    found = search(pattern, head, n)
    assert (found.start, found.start_reason) == (start, reason)


def test_more_tokens_than_cells():
    found = search("....", 0, 5)
    assert (found.found, found.too_many, probes_of(found), found.n_tested) == (False, True, [], 0)
    assert (found.free, found.reusable, found.longest, found.longest_start) == (-1, -1, -1, -1)


def test_no_tokens_fit_anywhere():
    assert search("aaaa", 4, 0).cell == 4


WINDOW = cells_of((0, A), (1, A), (2, A), (3, A), (0, AB), (4, A), (0, B), (1, 0))
"""Sequence 0 goes to position 4, so its next token is at 5; sequence 1 has position 0 only, its next is at 1."""


@pytest.mark.parametrize(
    ("swa", "n_swa", "usable"),
    [
        (SWAType.STANDARD, 3, [0, 1, 2]),
        (SWAType.STANDARD, 1, [0, 1, 2, 3, 5, 6]),
        (SWAType.STANDARD, 5, [0]),
        (SWAType.STANDARD, 6, []),
        (SWAType.CHUNKED, 4, [0, 1, 2, 3]),
        (SWAType.CHUNKED, 5, [0, 1, 2, 3, 5]),
        (SWAType.CHUNKED, 6, []),
        (SWAType.NONE, 0, []),
    ],
)
def test_cells_that_the_next_position_cannot_see_are_usable(swa, n_swa, usable):
    """Standard hides distances of n_swa and more, chunked what lies before the chunk of the next position."""
    reasons = block_reasons(WINDOW, swa, n_swa)
    assert np.flatnonzero(reasons == 0).tolist() == usable
    assert (reasons[4], reasons[7]) == (Blocked.SHARED, Blocked.NO_OWNER)


def test_an_expired_cell_is_a_slot():
    found = find_slot(WINDOW, 0, 3, SWAType.STANDARD, 3)
    assert (found.cell, probes_of(found)) == (0, [])
    failed = find_slot(WINDOW, 0, 4, SWAType.STANDARD, 3)
    assert (failed.found, failed.free, failed.reusable, failed.longest, failed.longest_start) == (False, 0, 3, 3, 0)


def test_failure_figures_count_free_and_expired_cells():
    failed = search(".aa...a..a", 0, 4)
    assert (failed.free, failed.reusable, failed.longest, failed.longest_start) == (6, 0, 3, 3)


def test_a_full_cache_has_no_run_at_all():
    failed = search("abab", 0, 1)
    assert (failed.free, failed.reusable, failed.longest, failed.longest_start) == (0, 0, 0, -1)


cell = st.one_of(st.just(FREE), st.just(FREE), st.tuples(st.integers(0, 12), st.sampled_from([A, A, B, B, AB, 0])))
windows = st.one_of(
    st.just((SWAType.NONE, 0)), st.tuples(st.sampled_from([SWAType.STANDARD, SWAType.CHUNKED]), st.integers(1, 9))
)


@given(st.lists(cell, min_size=1, max_size=24), windows, st.integers(0, 26), st.data())
def test_what_holds_of_every_search(states, window, n, data):
    """Refused runs are usable up to a cell blocked for the reason told, or too close to the end; the slot is usable."""
    cells = cells_of(*states)
    found = find_slot(cells, data.draw(st.integers(0, len(cells))), n, *window)
    why = [Blocked(code).name.lower() if code else "" for code in block_reasons(cells, *window).tolist()]
    for start, end, reason in probes_of(found):
        if reason == "end":
            assert end == len(cells) < start + n
        else:
            assert why[start : end + 1] == [""] * (end - start) + [reason]
            assert end < start + n <= len(cells)
    if found.found:
        assert found.cell + n <= len(cells)
        assert not any(why[found.cell : found.cell + n])
    if n:
        fits = [i for i in range(len(cells) - n + 1) if not any(why[i : i + n])]
        assert found.found == bool(fits)


@given(st.lists(cell, min_size=1, max_size=24), windows, st.integers(1, 24))
def test_a_search_changes_nothing(states, window, n):
    cells = cells_of(*states)
    before = cells.save(0, len(cells))
    find_slot(cells, 0, n, *window)
    assert np.array_equal(cells.pos, before.pos)
    assert np.array_equal(cells.seqs, before.seqs)
    assert cells.check_integrity() == []
