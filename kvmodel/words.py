"""Figures in words: counts, runs of cells, ranges of positions. Shared by whoever writes sentences."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from kvmodel.limits import INT32_MAX

MOST_RUNS = 6
"""Runs of cells that a sentence names before it only counts the rest."""


def count(n: int, noun: str) -> str:
    """A number with its noun, in the plural unless it is 1."""
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def joined(parts: Iterable[str]) -> str:
    """Parts as a list in a sentence: a, b and c."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def run(first: int, last: int) -> str:
    """Whole numbers from `first` to `last`: 4-9, or 4 alone."""
    return f"{first}-{last}" if last > first else f"{first}"


def ranges(numbers: ArrayLike, most: int = MOST_RUNS) -> str:
    """Ascending whole numbers as runs, such as 0-5, 9; beyond `most` runs the rest is counted."""
    array = np.asarray(numbers, np.int64)
    if not len(array):
        return "none"
    begins = np.flatnonzero(np.diff(array, prepend=array[0] - 2) != 1)
    ends = np.append(begins[1:], len(array)) - 1
    shown = [run(int(array[b]), int(array[e])) for b, e in zip(begins[:most], ends[:most], strict=True)]
    rest = len(begins) - len(shown)
    return ", ".join(shown) + (f" and {count(rest, 'more run')}" if rest else "")


def cells(numbers: ArrayLike) -> str:
    """How many cells, and which: 7 cells (0-5, 9), cell 4, no cell."""
    array = np.asarray(numbers)
    if len(array) == 1:
        return f"cell {int(array[0])}"
    return f"{count(len(array), 'cell')} ({ranges(array)})" if len(array) else "no cell"


def positions(p0: int, p1: int) -> str:
    """The range p0 <= position < p1, not an empty one; INT32_MAX is an open end."""
    if p1 == INT32_MAX:
        return f"positions from {p0} on" if p0 else "all positions"
    return f"position {p0}" if p1 == p0 + 1 else f"positions {p0} to {p1 - 1}"


def cell_run(begin: int, end: int) -> str:
    """The cells begin <= cell < end: cells 4-9, or cell 4."""
    return f"{'cells' if end - begin > 1 else 'cell'} {run(begin, end - 1)}"


def upper_first(words: str) -> str:
    """Words as they begin a sentence."""
    return f"{words[:1].upper()}{words[1:]}"


def lower_first(words: str) -> str:
    """Words as they go on in a sentence."""
    return f"{words[:1].lower()}{words[1:]}"
