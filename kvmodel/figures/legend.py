"""What the colours of a map of cells mean, in words."""

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import EMPTY as NO_POS
from kvmodel.figures.codes import CHANGED, FREED, IN_USE, PLAIN, SEVERAL, STILL, TALL, Coded, Colour, left_behind
from kvmodel.figures.entries import CLOSE, PATTERN_SQUARES, Entry, Forms, Item, outline, swatch
from kvmodel.figures.palette import PATTERNS, SEQUENCES, Theme, seq_colour, seq_symbol
from kvmodel.figures.texts import owners_of, shift_of
from kvmodel.snapshot import PartSnapshot
from kvmodel.words import count


def cell_legend(
    part: PartSnapshot, coded: Coded, colour: Colour, page: Theme, *, changed: bool, selected: bool
) -> list[Item]:
    """The entries for what occurs in the map."""
    entries: list[Item] = []
    codes = set(np.unique(coded.codes).tolist())
    if colour == "sequence":
        entries = [*sequence_entries(part.seqs, page), *other_entries(part, coded, codes, page)]
    elif colour == "changed":
        entries.extend(change_entries(codes, page))
    elif coded.scale is None and colour == "shift":
        entries = [swatch(f"in use, no {shift_of(part)[0]} pending", page.filled, page)]
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


def sequence_entries(cells: NDArray[np.uint64], page: Theme) -> list[Item]:
    """Every sequence by its colour and pattern; where that takes too much room, how colour and pattern tell it."""
    seqs = owners_of(int(np.bitwise_or.reduce(cells, initial=np.uint64(0))))
    if not seqs:
        return []
    named = tuple(swatch(f"sequence {seq}", seq_colour(seq), page, pattern=seq_symbol(seq)) for seq in seqs)
    return [
        Forms(
            (
                named,
                _numbers(seqs, page),
                _key(seqs, page),
                _told(seqs, ": number on hover", page),
                _told(seqs, "", page),
            )
        )
    ]


def _numbers(seqs: tuple[int, ...], page: Theme) -> tuple[Entry, ...]:
    """The word once, and every sequence by its number alone."""
    numbers = [Entry(str(seq), seq_colour(seq), PATTERN_SQUARES[seq_symbol(seq)], gap=CLOSE) for seq in seqs]
    return (Entry("sequence", page.muted, "", gap=CLOSE), *_closed(numbers))


def _key(seqs: tuple[int, ...], page: Theme) -> tuple[Entry, ...]:
    """A sequence is the number of its colour plus that of its pattern."""
    n = len(SEQUENCES)
    colours = [Entry(str(rest), SEQUENCES[rest], gap=CLOSE) for rest in sorted({seq % n for seq in seqs})]
    rounds = sorted({seq // n for seq in seqs} - {0})
    patterns = [Entry(f"+{n * i}", page.muted, PATTERN_SQUARES[PATTERNS[i]], gap=CLOSE) for i in rounds]
    return (Entry("sequence", page.muted, "", gap=CLOSE), *_closed([*colours, *patterns]))


def _told(seqs: tuple[int, ...], how: str, page: Theme) -> tuple[Entry, ...]:
    """The colours in their order, how many sequences there are, and how to know which is which."""
    colours = [Entry("", SEQUENCES[rest], gap="") for rest in sorted({seq % len(SEQUENCES) for seq in seqs})]
    return (*colours, Entry(f" {count(len(seqs), 'sequence')}{how}", page.muted, ""))


def _closed(series: list[Entry]) -> list[Entry]:
    """A series whose last entry has the usual space behind it."""
    last = series[-1]
    return [*series[:-1], Entry(last.name, last.colour, last.mark)]


def other_entries(part: PartSnapshot, coded: Coded, codes: set[int], page: Theme) -> list[Item]:
    """What the colours that stand for no single sequence mean."""
    entries: list[Item] = []
    if SEVERAL in codes:
        long, short = (swatch(words, page.several, page) for words in ("several sequences", "several"))
        entries.append(Forms(((long,), (long,), (long,), (long,), (short,))))
    elif PLAIN in codes and coded.codes.shape[1] == TALL:
        entries.append(swatch("shared", page.filled, page))
    if ((part.pos != NO_POS) & (part.seqs == 0)).any():
        entries.append(swatch("no owner", page.filled, page))
    return entries


def change_entries(codes: set[int], page: Theme) -> list[Entry]:
    """The kinds of change that occur."""
    named = ((CHANGED, "changed", page.accent), (FREED, "emptied", page.freed), (IN_USE, "in use", page.filled))
    return [swatch(word, fill, page) for code, word, fill in named if code in codes and code != STILL]
