"""Text inside cells where there is room for it."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.cells import EMPTY
from kvmodel.figures.codes import FOOT, FOOT_ROWS, Coded, Colour
from kvmodel.figures.grid import Grid
from kvmodel.figures.palette import ink_on
from kvmodel.figures.words import Strings, listed, owners_of, safe, shift_of, token_texts
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Token

LINE_HEIGHT = 12.7
CHAR_WIDTH = 5.6
"""Pixels of a character at the smaller size."""

BODY = 1 - FOOT / FOOT_ROWS
"""Share of a cell's height that is left to its text above the foot."""


def lines_in(grid: Grid) -> int:
    """Lines of text that a cell has room for."""
    return 0 if grid.pool > 1 else int(grid.square[1] * BODY // LINE_HEIGHT)


def cell_text(
    part: PartSnapshot, coded: Coded, grid: Grid, tokens: Sequence[Token], colour: Colour
) -> list[go.Scatter]:
    """One text trace over the cells in use, or none if their squares are too small.

    The first line is the position (or the pending shift), the second the owners, the third the token.
    """
    lines, room = lines_in(grid), int(grid.square[0] // CHAR_WIDTH)
    cells = np.flatnonzero(part.pos != EMPTY)
    if not lines or not len(cells):
        return []
    value = _signed(shift_of(part)[1][cells]) if colour == "shift" else part.pos[cells].astype(np.str_)
    if int(np.strings.str_len(value).max()) > room:
        return []
    text = np.strings.add(np.strings.add("<b>", value), "</b>") if lines > 1 else value
    if lines > 1:
        text = _with_line(text, _short_owners(part.seqs[cells], room))
    if lines > 2:
        text = _with_line(text, _short_tokens(token_texts(part.token[cells], tokens), room))
    row, column = grid.place(cells)
    inks = np.array([ink_on(fill) for fill in coded.colours])[coded.fill[cells]].tolist()
    return [
        go.Scatter(
            x=column,
            y=row - (1 - BODY) / 2 if lines > 1 else row,
            text=text.tolist(),
            mode="text",
            textfont={"size": 10 + min(lines, 3) // 2 + lines // 3, "color": inks},
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
