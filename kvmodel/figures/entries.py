"""Legends: a mark in a colour, and words. All are one text, since a trace for each is slow to draw."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvmodel.figures.palette import PATTERNS, Theme

LINE_HEIGHT, MOST_LINES = 20, 2
"""Pixels of a line of the legend, and lines from which on shorter forms are taken where there are any."""

CHAR_WIDTH, MARK_WIDTH, WIDE_MARK_WIDTH = 6.4, 11.5, 16
"""Pixels of a character, and of a square and any other mark with the space before its words."""

SIZES = {"■": 19, "□": 19}
MARK_SIZE = 14
"""Pixels of the type that marks are set in, so that each is as large as a capital letter."""

SQUARE, OPEN, LINE, DOTS = "■", "□", "━━", "┅┅"
PATTERN_SQUARES = dict(zip(PATTERNS, (SQUARE, "▤", "▥", "▨", "▧", "▦", "▩", "▣"), strict=True))
"""The character that looks like a square with that pattern."""

LIFT = 10
"""Pixels of space over a mark, which is set larger than the words."""

BETWEEN, CLOSE = "\u2003\u2002", "\u2002"
"""Space between two entries, and between those of one series, that no browser folds."""

GAPS = {BETWEEN: 19.5, CLOSE: 8.5, "": 0.0}
"""Pixels of each space."""


@dataclass(frozen=True)
class Entry:
    """One entry: `mark` in `colour`, then `name`, then the space `gap`. Without a mark, words alone."""

    name: str
    colour: str
    mark: str = SQUARE
    gap: str = BETWEEN

    @property
    def width(self) -> float:
        """Pixels that it takes, about."""
        mark = MARK_WIDTH if self.mark in SIZES else WIDE_MARK_WIDTH if self.mark else 0
        return mark + CHAR_WIDTH * len(self.name) + GAPS[self.gap]

    @property
    def text(self) -> str:
        """The entry in the markup of Plotly's texts."""
        if not self.mark:
            return self.name
        size = SIZES.get(self.mark, MARK_SIZE)
        mark = f'<span style="color:{self.colour};font-size:{size}px">{self.mark}</span>'
        return f"{mark} {self.name}" if self.name else mark


@dataclass(frozen=True)
class Forms:
    """Entries that can be told at several lengths, the longest form first."""

    forms: tuple[tuple[Entry, ...], ...]

    def at(self, level: int) -> tuple[Entry, ...]:
        """A form, the shortest one if there are not as many."""
        return self.forms[min(level, len(self.forms) - 1)]


Item = Entry | Forms


def swatch(name: str, colour: str, page: Theme, *, pattern: str = "") -> Entry:
    """An entry for a fill; the fill of an empty cell is hardly seen on the page and gets an edge instead."""
    return Entry(name, page.muted, OPEN) if colour == page.empty else Entry(name, colour, PATTERN_SQUARES[pattern])


def outline(name: str, colour: str) -> Entry:
    """An entry for cells with a line around them."""
    return Entry(name, colour, OPEN)


def lines(items: Sequence[Item], width: float) -> list[list[Entry]]:
    """Entries in lines no wider than `width` pixels, in the longest forms that fit two lines, else the shortest."""
    levels = max((len(item.forms) for item in items if isinstance(item, Forms)), default=1)
    rows: list[list[Entry]] = []
    for level in range(levels):
        rows = _filled([entry for item in items for entry in _at(item, level)], width)
        if len(rows) <= MOST_LINES:
            break
    return rows


def _at(item: Item, level: int) -> tuple[Entry, ...]:
    return (item,) if isinstance(item, Entry) else item.at(level)


def _filled(entries: Sequence[Entry], width: float) -> list[list[Entry]]:
    """Line after line, each as full as it gets."""
    rows: list[list[Entry]] = []
    room = 0.0
    for entry in entries:
        if not rows or entry.width - GAPS[entry.gap] > room:
            rows.append([])
            room = width
        rows[-1].append(entry)
        room -= entry.width
    return rows


def annotation(rows: Sequence[Sequence[Entry]], page: Theme, below: float) -> dict[str, Any]:
    """The legend as one text, its top `below` pixels under the plot; `name` is `legend`."""
    return {
        "name": "legend",
        "text": "<br>".join(_line(row) for row in rows),
        "align": "left",
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": 0,
        "yref": "paper",
        "yanchor": "top",
        "yshift": LIFT - below,
        "showarrow": False,
        "font": {"color": page.muted},
    }


def _line(row: Sequence[Entry]) -> str:
    """A line of the legend; nothing comes after its last entry."""
    return "".join(entry.text + (entry.gap if i < len(row) else "") for i, entry in enumerate(row, 1))
