"""What the colours of a map of cells mean, in words."""

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import EMPTY as NO_POS
from kvmodel.figures.codes import CHANGED, FREED, IN_USE, PLAIN, SEVERAL, STILL, TALL, Coded, Colour, left_behind
from kvmodel.figures.entries import PATTERN_SQUARES, Entry, outline, swatch
from kvmodel.figures.palette import Theme, seq_colour, seq_symbol
from kvmodel.figures.texts import owners_of, shift_of
from kvmodel.snapshot import PartSnapshot

MAX_SEQUENCES = 16
"""Sequences named in a legend; the others are named on hover and in the table."""


def cell_legend(
    part: PartSnapshot, coded: Coded, colour: Colour, page: Theme, *, changed: bool, selected: bool
) -> list[Entry]:
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
        entries.append(Entry(f"empty, {shift_of(part)[0]} left", tone, PATTERN_SQUARES["-"]))
    if changed and colour != "changed":
        entries.append(outline("changed", page.ink))
    if selected:
        entries.append(outline("selected", page.accent))
    return entries


def sequence_entries(cells: NDArray[np.uint64], page: Theme) -> list[Entry]:
    """Every sequence by its colour and pattern, up to a number that still can be read."""
    seqs = owners_of(int(np.bitwise_or.reduce(cells, initial=np.uint64(0))))
    entries = [
        swatch(f"sequence {seq}", seq_colour(seq), page, pattern=seq_symbol(seq)) for seq in seqs[:MAX_SEQUENCES]
    ]
    if len(seqs) > MAX_SEQUENCES:
        entries.append(Entry(f"{len(seqs) - MAX_SEQUENCES} more", page.muted, "…"))
    return entries


def other_entries(part: PartSnapshot, coded: Coded, codes: set[int], page: Theme) -> list[Entry]:
    """What the colours that stand for no single sequence mean."""
    entries = []
    if SEVERAL in codes:
        entries.append(swatch("several sequences", page.several, page))
    elif PLAIN in codes and coded.codes.shape[1] == TALL:
        entries.append(swatch("shared", page.filled, page))
    if ((part.pos != NO_POS) & (part.seqs == 0)).any():
        entries.append(swatch("no owner", page.filled, page))
    return entries


def change_entries(codes: set[int], page: Theme) -> list[Entry]:
    """The kinds of change that occur."""
    named = ((CHANGED, "changed", page.accent), (FREED, "emptied", page.freed), (IN_USE, "in use", page.filled))
    return [swatch(word, fill, page) for code, word, fill in named if code in codes and code != STILL]
