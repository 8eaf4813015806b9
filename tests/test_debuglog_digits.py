"""Maps of a debug log whose owners or positions take more room than one character."""

import numpy as np
import pytest

from kvmodel.formats.debuglog import EMPTY, SEVERAL, UNCLEAR, LoggedSearch, read_log
from tests.debug_logs import HAND, assert_hand, codes, positions
from tests.printed_log import Printed


def wide(cells: list[tuple[int, set[int]]], **more) -> LoggedSearch:
    log = read_log(Printed(cells, **more).text())
    assert log.faults == ()
    return log.searches[0]


def test_two_digits_are_told_by_the_ranges() -> None:
    """`1112` for three cells: sequence 1 ends at position 4, sequence 12 begins at 30."""
    search = wide([(3, {1}), (4, {1}), (30, {12})])
    assert codes(search) == [1, 1, 12]


def test_two_digits_are_told_by_what_goes_on() -> None:
    """`1` 100 times and `11` 50 times: both begin at position 0, and the fewest breaks keep sequence 1 in one piece."""
    search = wide([(pos, {1}) for pos in range(100)] + [(pos, {11}) for pos in range(50)])
    assert codes(search) == [1] * 100 + [11] * 50


def test_empty_and_shared_cells_cut_two_digits() -> None:
    cells = [(0, {10}), (1, {1, 2}), (-1, set()), (0, {3}), (1, {33}), (5, {63})]
    assert codes(wide(cells)) == [10, SEVERAL, EMPTY, 3, 33, 63]


def test_two_digits_that_cannot_be_told_apart_are_unclear() -> None:
    """`111` for two cells, and both sequences have both positions."""
    search = wide([(4, {1}), (6, {11})], ranges={1: (0, 9), 11: (0, 9)})
    assert codes(search) == [UNCLEAR, UNCLEAR]
    assert positions(search) == [4, 6]
    assert "?" in str(search)
    assert search.differing(np.array([4, 6], np.int32), np.array([2, 2048], np.uint64)).tolist() == []


def test_a_line_of_the_map_is_256_cells_however_wide() -> None:
    cells = [(i, {15}) for i in range(300)] + [(-1, set())] * 200 + [(i, {2}) for i in range(12)]
    search = wide(cells, head=500)
    assert codes(search) == [15] * 300 + [EMPTY] * 200 + [2] * 12
    assert positions(search)[254:257] == [254, 255, 256]


@pytest.mark.parametrize("first", [9_970, 99_970, 999_970])
def test_positions_without_spaces_between_them(first: int) -> None:
    cells = [(first + i, {0}) for i in range(60)] + [(-1, set()), (7, {1}), (first + 60, {0}), (9, {1})] * 10
    search = wide(cells)
    assert positions(search) == [pos for pos, _ in cells]
    assert codes(search) == [min(owners, default=EMPTY) for _, owners in cells]


def test_large_positions_without_trailing_spaces() -> None:
    """Fifteen characters for three cells, as positions of five digits take, but then one of them would begin with 0."""
    text = Printed([(100_001, {0}), (100_002, {0}), (123, {0})]).text()
    assert positions(read_log(text).searches[0]) == [100_001, 100_002, 123]
    assert positions(read_log(text.replace("123  ", "123")).searches[0]) == [100_001, 100_002, 123]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("100001100002", "900001900002", "a line of the map of positions has no 3 positions up to 100,002"),
        ("100001100002", "1000011000002", "a line of the map of positions has no 3 positions up to 100,002"),
        ("0 0 0", "9" * 20, "the map of positions has a number that no position can be"),
    ],
)
def test_large_positions_that_cannot_be(old: str, new: str, message: str) -> None:
    text = Printed([(100_001, {0}), (100_002, {0}), (7, {0})]).text()
    if old not in text:
        text = Printed([(1, {0}), (2, {0})]).text(1).split("find_slot: min")[0] + f"\n00\n\n{new}\n"
    log = read_log(text.replace(old, new))
    assert [fault.message for fault in log.faults] == [message]


@pytest.mark.parametrize(
    ("owners", "message"),
    [
        ("1012.", "the two maps do not agree on which cells are empty"),
        ("1.123", "2 cells in a row have 1 characters in the map of owners"),
        ("10129", "3 cells in a row cannot belong to the sequences 10129"),
    ],
)
def test_two_digits_that_cannot_be(owners: str, message: str) -> None:
    text = Printed([(0, {10}), (1, {10}), (2, {12})]).text()
    if "." in owners:
        text = Printed([(0, {10}), (1, {1}), (-1, set()), (2, {1})]).text()
    log = read_log(text.replace("101012", owners).replace("101.1", owners))
    assert [fault.message for fault in log.faults] == [message]


def test_a_prefix_of_too_many_words_is_taken_for_none() -> None:
    assert_hand(read_log(HAND.replace("find_slot: n", "a " * 40 + "find_slot: n")))
