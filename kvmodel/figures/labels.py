"""Text inside cells where there is room for it."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.cells import EMPTY
from kvmodel.figures.codes import TALL, Coded, Colour
from kvmodel.figures.grid import Grid
from kvmodel.figures.palette import ink_on
from kvmodel.figures.words import Strings, listed, owners_of, safe, shift_of
from kvmodel.snapshot import PartSnapshot

LINE_HEIGHT = 13
CHAR_WIDTH = 5.6
"""Pixels of a character at the smaller size."""

DROP = 2
"""Pixels that text above a foot is set lower, since lines reach higher than they hang."""


@dataclass(frozen=True)
class Room:
    """What a cell has room for: lines of text, characters in one, and the height of a foot of 8 for its owners."""

    lines: int
    chars: int
    foot: int


def room_in(grid: Grid, part: PartSnapshot, colour: Colour, *, tokens: bool) -> Room:
    """The room for text (with `tokens` a line for them), and below it for stripes if cells are shared."""
    width, height = grid.square
    wanted = 3 if tokens else 2
    lines = 0 if grid.pool > 1 else min(int(height // LINE_HEIGHT), wanted)
    shared = colour == "sequence" and lines > 1 and bool((np.bitwise_count(part.seqs) > 1).any())
    if shared:
        lines = min(lines, int(height * (TALL - 1) / TALL // LINE_HEIGHT))
    foot = int(TALL * (1 - lines * LINE_HEIGHT / height)) if shared else 0
    return Room(lines, int(width // CHAR_WIDTH), foot)


def cell_text(
    part: PartSnapshot, coded: Coded, grid: Grid, texts: Strings, colour: Colour, room: Room
) -> list[go.Scatter]:
    """One text trace over the cells in use, or none if their squares are too small.

    The first line is the position (or the pending shift), the second the owners, the third the token's text.
    """
    cells = np.flatnonzero(part.pos != EMPTY)
    if not room.lines or not len(cells):
        return []
    value = _signed(shift_of(part)[1][cells]) if colour == "shift" else part.pos[cells].astype(np.str_)
    if int(np.strings.str_len(value).max()) > room.chars:
        return []
    text = np.strings.add(np.strings.add("<b>", value), "</b>") if room.lines > 1 else value
    if room.lines > 1:
        text = _with_line(text, _short_owners(part.seqs[cells], room.chars))
    if room.lines > 2:
        text = _with_line(text, _short_tokens(texts[cells], room.chars))
    (row, column), height = grid.place(cells), grid.square[1]
    inks = np.array([ink_on(fill) for fill in coded.colours])[coded.fill[cells]].tolist()
    return [
        go.Scatter(
            x=column,
            y=row - room.foot / TALL / 2 + (DROP / height if room.foot else 0),
            text=text.tolist(),
            mode="text",
            textfont={"size": 10 if height < 40 else 11 if room.lines > 2 else 12, "color": inks},
            cliponaxis=False,
            hoverinfo="skip",
            showlegend=False,
            name="text in cells",
        )
    ]


def _with_line(text: Strings, line: Strings) -> Strings:
    """Add a smaller line below, where there is one."""
    small = np.strings.add(np.strings.add("<br><span style='font-size:10px'>", line), "</span>")
    return np.where(line == "", text, np.strings.add(text, small))


def _signed(shift: NDArray[np.int32]) -> Strings:
    return np.where(shift > 0, np.strings.add("+", shift.astype(np.str_)), shift.astype(np.str_))


def _short_owners(seqs: NDArray[np.uint64], room: int) -> Strings:
    """Owners as numbers, or how many they are where the numbers do not fit."""
    sets, which = np.unique(seqs, return_inverse=True)
    owners = [owners_of(int(bits)) for bits in sets]
    texts = [text if len(text := listed(group, " ")) <= room else f"{len(group)} seqs" for group in owners]
    return np.array(texts, np.str_)[which]


def _short_tokens(texts: Strings, room: int) -> Strings:
    """Token texts cut to the width of a cell."""
    words, which = np.unique(texts, return_inverse=True)
    short = [safe(word if len(word) <= room else word[: room - 1] + "…") for word in map(str.strip, words.tolist())]
    return np.array(short, np.str_)[which]
