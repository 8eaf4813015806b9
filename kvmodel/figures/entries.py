"""Legends: a mark in a colour, and words. All are one text, since a trace for each is slow to draw."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvmodel.figures.palette import PATTERNS, Theme

LINE_HEIGHT = 20
"""Pixels of a line of the legend."""

CHAR_WIDTH, MARK_WIDTH = 6.4, 31
"""Pixels of a character, and of a mark with the space around an entry."""

SIZES = {"■": 19, "□": 19}
MARK_SIZE = 14
"""Pixels of the type that marks are set in, so that each is as large as a capital letter."""

SQUARE, OPEN, LINE, DOTS = "■", "□", "━━", "┅┅"
PATTERN_SQUARES = dict(zip(PATTERNS, (SQUARE, "▤", "▥", "▨", "▧", "▦", "▩", "▣"), strict=True))
"""The character that looks like a square with that pattern."""

LIFT = 10
"""Pixels of space over a mark, which is set larger than the words."""

BETWEEN = "\u2003\u2002"
"""Space between two entries that no browser folds."""


@dataclass(frozen=True)
class Entry:
    """One entry: `mark` in `colour`, then `name`."""

    name: str
    colour: str
    mark: str = SQUARE

    @property
    def width(self) -> float:
        """Pixels that it takes, about."""
        return MARK_WIDTH + CHAR_WIDTH * len(self.name)

    @property
    def text(self) -> str:
        """The entry in the markup of Plotly's texts."""
        size = SIZES.get(self.mark, MARK_SIZE)
        return f'<span style="color:{self.colour};font-size:{size}px">{self.mark}</span> {self.name}'


def swatch(name: str, colour: str, page: Theme, *, pattern: str = "") -> Entry:
    """An entry for a fill; the fill of an empty cell is hardly seen on the page and gets an edge instead."""
    return Entry(name, page.muted, OPEN) if colour == page.empty else Entry(name, colour, PATTERN_SQUARES[pattern])


def outline(name: str, colour: str) -> Entry:
    """An entry for cells with a line around them."""
    return Entry(name, colour, OPEN)


def lines(entries: Sequence[Entry], width: float) -> list[list[Entry]]:
    """Entries in lines that are no wider than `width` pixels."""
    rows: list[list[Entry]] = []
    room = 0.0
    for entry in entries:
        if entry.width > room:
            rows.append([])
            room = width
        rows[-1].append(entry)
        room -= entry.width
    return rows


def annotation(rows: Sequence[Sequence[Entry]], page: Theme, below: float) -> dict[str, Any]:
    """The legend as one text, its top `below` pixels under the plot; `name` is `legend`."""
    return {
        "name": "legend",
        "text": "<br>".join(BETWEEN.join(entry.text for entry in row) for row in rows),
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
