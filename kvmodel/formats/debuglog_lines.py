"""The lines of the two maps of a slot search: owners, one symbol a cell, and positions, five characters a cell.

Counterpart of the debug part of `find_slot` in llama-kv-cache-unified.cpp. Sequences of two digits and positions of
more than five make a line longer.
"""

import re
from collections.abc import Mapping
from itertools import pairwise

EMPTY, SEVERAL, UNCLEAR = -1, -2, -3
"""Codes for the owner of a cell: none; more than one (or a used cell without any); not to be told apart."""

OWNERS_A_LINE, POSITIONS_A_LINE = 256, 64
STAR = " *"
WIDTH = 5
MOST_DIGITS = 10

Spans = Mapping[int, tuple[int, int]]

SYMBOLS = re.compile(r"[.M0-9]+")
NUMBERS = re.compile(r"[.0-9][.0-9 ]*")


class BadMap(ValueError):
    """A map that cannot be read; the message says why."""


def line_cells(size: int, each: int) -> list[tuple[int, bool]]:
    """For every line of a map: its cells, and whether a star follows."""
    ends = [*range(0, size, each), size]
    return [(end - begin, end % OWNERS_A_LINE == 0) for begin, end in pairwise(ends)]


def owners_line(content: str, n: int, star: bool) -> str | None:
    """The symbols of `n` cells, or None if the line holds something else."""
    text = content.rstrip()
    if star:
        if not text.endswith(STAR):
            return None
        text = text[: -len(STAR)]
    return text if n <= len(text) <= 2 * n and SYMBOLS.fullmatch(text) else None


def positions_line(content: str, n: int, star: bool) -> str | None:
    """The positions of `n` cells as they are written, or None if the line holds something else."""
    text = content
    if star:
        if not text.rstrip().endswith(STAR):
            return None
        text = text.rstrip()[: -len(STAR)]
    bare = len(text.rstrip())
    if not WIDTH * (n - 1) < bare <= MOST_DIGITS * n or not NUMBERS.fullmatch(text):
        return None
    return text if bare <= WIDTH * n or re.search(r"\d{6}", text) else None
