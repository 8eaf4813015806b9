"""Text inside cells where there is room for it, and the words that appear on hover."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.cells import EMPTY
from kvmodel.figures.codes import Coded, Colour
from kvmodel.figures.grid import Grid
from kvmodel.figures.palette import ink_on
from kvmodel.figures.words import Strings, listed, owners_of, safe, shift_of, token_texts
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Token

LINE_HEIGHT = 14
CHAR_WIDTH = 5.6
"""Pixels of a character at the smaller size."""


def cell_text(
    part: PartSnapshot, coded: Coded, grid: Grid, tokens: Sequence[Token], colour: Colour
) -> list[go.Scatter]:
    """One text trace over the cells in use, or none if their squares are too small.

    The first line is the position (or the pending shift), the second the owners, the third the token.
    """
    width, height = grid.square
    lines, room = int(height // LINE_HEIGHT), int(width // CHAR_WIDTH)
    cells = np.flatnonzero(part.pos != EMPTY)
    if grid.pool > 1 or lines < 1 or not len(cells):
        return []
    value = _signed(shift_of(part)[1][cells]) if colour == "shift" else part.pos[cells].astype(np.str_)
    if int(np.strings.str_len(value).max()) > room - 1:
        return []
    text = np.strings.add(np.strings.add("<b>", value), "</b>") if lines > 1 else value
    if lines > 1:
        text = _second(text, _short_owners(part.seqs[cells], room))
    if lines > 2:
        text = _second(text, _short_tokens(token_texts(part.token[cells], tokens), room))
    row, column = grid.place(cells)
    inks = np.array([ink_on(colour) for colour in coded.colours])[coded.fill[cells]]
    font = {"size": 12 if lines > 1 else 10, "color": inks.tolist() if len(set(inks.tolist())) > 1 else str(inks[0])}
    return [
        go.Scatter(
            x=column,
            y=row,
            text=text.tolist(),
            mode="text",
            textfont=font,
            hoverinfo="skip",
            showlegend=False,
            name="text in cells",
        )
    ]


def _second(text: Strings, line: Strings) -> Strings:
    """Add a smaller line below, where there is one."""
    small = np.strings.add(np.strings.add("<br><span style='font-size:10px'>", line), "</span>")
    return np.where(line == "", text, np.strings.add(text, small))


def _signed(shift: NDArray[np.int32]) -> Strings:
    return np.where(shift > 0, np.strings.add("+", shift.astype(np.str_)), shift.astype(np.str_))


def _short_owners(seqs: NDArray[np.uint64], room: int) -> Strings:
    """Owners as numbers, or how many they are where the numbers do not fit."""
    sets, which = np.unique(seqs, return_inverse=True)
    owners = [owners_of(int(bits)) for bits in sets]
    texts = [text if len(text := listed(seqs, " ")) <= room else f"{len(seqs)} seqs" for seqs in owners]
    return np.array(texts, np.str_)[which]


def _short_tokens(texts: Strings, room: int) -> Strings:
    """Token texts cut to the width of a cell."""
    words, which = np.unique(texts, return_inverse=True)
    short = [safe(word if len(word) <= room else word[: room - 1] + "…") for word in map(str.strip, words.tolist())]
    return np.array(short, np.str_)[which]
