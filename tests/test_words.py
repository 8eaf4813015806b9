"""Counts, runs and ranges as sentences name them."""

import pytest

from kvmodel.words import cells, count, joined, positions, ranges


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([], "none"),
        ([3], "3"),
        ([0, 1, 2, 5, 7, 8], "0-2, 5, 7-8"),
        (range(0, 20, 2), "0, 2, 4, 6, 8, 10 and 4 more runs"),
        (range(0, 14, 2), "0, 2, 4, 6, 8, 10 and 1 more run"),
    ],
)
def test_numbers_are_told_as_runs(numbers: list[int], expected: str) -> None:
    assert ranges(numbers) == expected


def test_words() -> None:
    assert [count(1, "cell"), count(0, "cell"), count(4096, "cell"), count(2, "ubatch")] == [
        "1 cell",
        "0 cells",
        "4,096 cells",
        "2 ubatches",
    ]
    assert [cells([]), cells([4]), cells([4, 5])] == ["no cell", "cell 4", "2 cells (4-5)"]
    assert [joined(["a"]), joined(["a", "b"]), joined(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
    assert [positions(3, 4), positions(0, 4), positions(0, 2**31 - 1), positions(2, 2**31 - 1)] == [
        "position 3",
        "positions 0 to 3",
        "all positions",
        "positions from 2 on",
    ]
