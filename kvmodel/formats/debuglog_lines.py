"""The lines of the two maps of a slot search: owners, one symbol a cell, and positions, five characters a cell.

Counterpart of the debug part of `find_slot` in llama-kv-cache-unified.cpp. Sequences of two digits and positions of
more than five make a line longer.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kvmodel.formats.debuglog_text import Prefix

EMPTY, SEVERAL, UNCLEAR = -1, -2, -3
"""Codes for the owner of a cell: none; more than one (or a used cell without any); not to be told apart."""

OWNERS_A_LINE, POSITIONS_A_LINE = 256, 64
STAR = " *"
WIDTH = 5
MOST_DIGITS = 10

Spans = Mapping[int, tuple[int, int]]

SYMBOLS = re.compile(r"[.M0-9]+")
NUMBERS = re.compile(r"[.0-9][.0-9 ]*")
FIELDS = re.compile(r"(?:\. {4}|[0-9] {4}|[0-9]{2} {3}|[0-9]{3} {2}|[0-9]{4} |[0-9]{5})+")


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
    usual = bare <= WIDTH * n and FIELDS.fullmatch(text[:bare].ljust(WIDTH * n))
    return text if usual or re.search(r"[0-9]{6}", text) else None


Fits = Callable[[str, int, bool], str | None]


@dataclass(frozen=True)
class MapLines:
    """The lines of both maps of one search, as far as they are there.

    Attributes:
        size: cells.
        symbols, numbers: the lines of the map of owners and of the map of positions.
        end: index of the first line behind them.
    """

    size: int
    symbols: list[str]
    numbers: list[str]
    end: int

    @classmethod
    def gather(cls, body: Sequence[str], size: int, prefix: Prefix) -> "MapLines":
        """Find the lines of both maps of `size` cells; whatever does not fit is passed over."""
        symbols, at = _gathered(body, 0, prefix, line_cells(size, OWNERS_A_LINE), owners_line)
        numbers, at = _gathered(body, at, prefix, line_cells(size, POSITIONS_A_LINE), positions_line)
        return cls(size, symbols, numbers, at)

    @property
    def owner_cells(self) -> list[int]:
        """Cells of every line of the map of owners."""
        return [n for n, _ in line_cells(self.size, OWNERS_A_LINE)]

    @property
    def position_cells(self) -> list[int]:
        """Cells of every line of the map of positions."""
        return [n for n, _ in line_cells(self.size, POSITIONS_A_LINE)]

    @property
    def complete(self) -> bool:
        """Whether both maps are there."""
        return len(self.numbers) == len(self.position_cells)

    def check(self) -> None:
        """Say which map ends too early.

        Raises:
            BadMap: one does.
        """
        maps = (("owners", self.symbols, self.owner_cells), ("positions", self.numbers, self.position_cells))
        for name, texts, cells in maps:
            if len(texts) < len(cells):
                done = sum(cells[: len(texts)])
                raise BadMap(f"the map of {name} ends after {done:,} of {self.size:,} cells")

    def begins(self, text: str, prefix: Prefix) -> bool:
        """Whether a map of as many cells begins in a line."""
        first = line_cells(self.size, OWNERS_A_LINE)[0]
        return any(owners_line(content, *first) for content in prefix.contents(text))


def _gathered(
    body: Sequence[str], at: int, prefix: Prefix, cells: list[tuple[int, bool]], fits: Fits
) -> tuple[list[str], int]:
    """The lines of one map, and the index of the first line behind it."""
    texts: list[str] = []
    while at < len(body) and len(texts) < len(cells):
        found = (fits(content, *cells[len(texts)]) for content in prefix.contents(body[at]))
        texts += [text for text in found if text is not None][:1]
        at += 1
    return texts, at
