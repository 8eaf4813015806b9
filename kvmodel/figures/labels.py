"""Text inside cells where there is room for it."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.cells import EMPTY
from kvmodel.figures.codes import TALL, Coded, Colour, left_behind
from kvmodel.figures.grid import Grid
from kvmodel.figures.palette import ink_on
from kvmodel.figures.texts import Strings, owner_texts, safe, shift_of
from kvmodel.snapshot import PartSnapshot

CHAR_WIDTH, SIDES = 5, 4
"""Pixels of a character at the smaller size, and of the space left and right of a line."""

PITCH = 1.3
"""Distance of two lines in font sizes, as Plotly sets them."""

FULL_HEIGHT = 40
"""Pixels of height from which on a cell's text has its full size."""

FULL_WIDTH = 26
"""Pixels of width from which on it has."""

DROP = 2
"""Pixels that text above a foot is set lower, since lines reach higher than they hang."""


@dataclass(frozen=True)
class Room:
    """What a cell has room for.

    Attributes:
        lines: lines of text. chars: characters in a line. font: size of the first line, pixels.
        foot: pixels of 8 at the lower end of a shared cell that show its owners, 0 for the whole cell.
    """

    lines: int
    chars: int
    font: int
    foot: int


def room_in(grid: Grid, part: PartSnapshot, colour: Colour, *, tokens: bool) -> Room:
    """The room for text (with `tokens` a line for them), and below it for stripes if cells are shared."""
    width, height = grid.square
    shared = colour == "sequence" and bool((np.bitwise_count(part.seqs) > 1).any())
    for lines in range(3 if tokens else 2, 0, -1):
        font = 10 if height < FULL_HEIGHT or width < FULL_WIDTH else 11 if lines > 2 else 12
        left = TALL * (1 - (font * (PITCH * (lines - 1) + 1) + 1) / height)
        feet = shared and lines > 1
        if left >= (1 if feet else 0):
            return Room(lines, int((width - SIDES) // CHAR_WIDTH), font, int(left) if feet else 0)
    return Room(0, 0, 0, 0)


def cell_text(
    part: PartSnapshot, coded: Coded, grid: Grid, texts: Strings, colour: Colour, room: Room
) -> list[go.Scatter]:
    """One text trace over the cells in use (and those with a shift left), or none if their squares are too small.

    The first line is the position (or the pending shift), the second the owners, the third the token's text.
    """
    cells = np.flatnonzero((part.pos != EMPTY) | (left_behind(part) if colour == "shift" else False))
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
    (row, column), height = grid.place(cells + grid.first), grid.square[1]
    inks = np.array([ink_on(fill) for fill in coded.colours])[coded.fill[cells]].tolist()
    return [
        go.Scatter(
            x=column,
            y=row - room.foot / TALL / 2 + (DROP / height if room.foot else 0),
            text=text.tolist(),
            mode="text",
            textfont={"size": room.font, "color": inks},
            cliponaxis=False,
            hoverinfo="skip",
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
    texts = np.strings.replace(owner_texts(seqs), ", ", " ")
    number = np.strings.add(np.bitwise_count(seqs).astype(np.str_), " seqs")
    return np.where(np.strings.str_len(texts) <= room, texts, number)


def _short_tokens(texts: Strings, room: int) -> Strings:
    """Token texts cut to the width of a cell."""
    words, which = np.unique(texts, return_inverse=True)
    short = [safe(word if len(word) <= room else word[: room - 1] + "…") for word in map(str.strip, words.tolist())]
    return np.array(short, np.str_)[which]
