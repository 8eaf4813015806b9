"""What the colours of a map of cells mean, in words."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import EMPTY as NO_POS
from kvmodel.figures.base import outline_swatch, swatch
from kvmodel.figures.codes import CHANGED, FREED, IN_USE, PLAIN, SEVERAL, STILL, TALL, Coded, Colour, left_behind
from kvmodel.figures.palette import Theme, seq_colour, seq_symbol, seq_tone
from kvmodel.figures.texts import owners_of, shift_of
from kvmodel.snapshot import PartSnapshot

MAX_SEQUENCES = 16
"""Sequences named in a legend; the others are named on hover and in the table."""


def cell_legend(
    part: PartSnapshot, coded: Coded, colour: Colour, page: Theme, *, changed: bool, selected: bool
) -> list[Any]:
    """The entries for what occurs in the map."""
    codes = set(np.unique(coded.codes).tolist())
    if colour == "sequence":
        entries = [*sequence_entries(part.seqs, page), *other_entries(part, coded, codes, page)]
    elif colour == "changed":
        entries = change_entries(codes, page)
    elif coded.scale is None and colour == "shift":
        entries = [swatch(f"in use, no {shift_of(part)[0]} pending", page.filled, page)]
    else:
        entries = []
    if 0 in codes:
        entries.append(swatch("empty", page.empty, page))
    if colour == "shift" and left_behind(part).any():
        tone = page.falling if shift_of(part)[1][left_behind(part)].min() < 0 else page.rising
        entries.append(swatch(f"empty, {shift_of(part)[0]} left", page.empty, page, pattern="-", tone=tone))
    if changed and colour != "changed":
        entries.append(outline_swatch("changed", page.ink))
    if selected:
        entries.append(outline_swatch("selected", page.accent))
    return entries


def sequence_entries(cells: NDArray[np.uint64], page: Theme) -> list[Any]:
    """Every sequence by its colour and pattern, up to a number that still can be read."""
    seqs = owners_of(int(np.bitwise_or.reduce(cells, initial=np.uint64(0))))
    entries = [
        swatch(f"sequence {seq}", seq_colour(seq), page, pattern=seq_symbol(seq), tone=seq_tone(seq))
        for seq in seqs[:MAX_SEQUENCES]
    ]
    if len(seqs) > MAX_SEQUENCES:
        entries.append(swatch(f"{len(seqs) - MAX_SEQUENCES} more", page.paper, page))
    return entries


def other_entries(part: PartSnapshot, coded: Coded, codes: set[int], page: Theme) -> list[Any]:
    """What the colours that stand for no single sequence mean."""
    entries = []
    if SEVERAL in codes:
        entries.append(swatch("several sequences", page.several, page))
    elif PLAIN in codes and coded.codes.shape[1] == TALL:
        entries.append(swatch("shared", page.filled, page))
    if ((part.pos != NO_POS) & (part.seqs == 0)).any():
        entries.append(swatch("no owner", page.filled, page))
    return entries


def change_entries(codes: set[int], page: Theme) -> list[Any]:
    """The kinds of change that occur."""
    named = ((CHANGED, "changed", page.accent), (FREED, "emptied", page.freed), (IN_USE, "in use", page.filled))
    return [swatch(word, fill, page) for code, word, fill in named if code in codes and code != STILL]
