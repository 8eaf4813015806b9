"""The cells of a cache as text: neighbours with the same owners and counting positions are one run.

Each state of a recurrent cache stands alone.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import EMPTY
from kvmodel.snapshot import PartSnapshot
from kvmodel.words import cell_run, count, joined

MOST_LINES = 200
"""Runs that are told before the rest is only counted: some screens, and a few KiB."""


def cell_lines(part: PartSnapshot, most: int = MOST_LINES) -> list[str]:
    """One line a run: cells 0-9: sequence 0, positions 0 to 9.

    Args:
        part: the cells at one moment.
        most: runs to tell; one more line counts the others.
    """
    begins = _begins(part)
    ends = np.append(begins[1:], part.n_cells)
    lines = list(_told(part, begins[:most], ends[:most]))
    rest = len(begins) - len(lines)
    return [*lines, f"and {count(rest, 'more run')}"] if rest else lines


def _begins(part: PartSnapshot) -> NDArray[np.intp]:
    """First cell of every run, intp [k]."""
    pos, seqs, shift = part.pos.astype(np.int64), part.seqs, part.shift
    empty = _empty(part)
    goes_on = (pos[1:] == pos[:-1] + 1) & (seqs[1:] == seqs[:-1]) & (shift[1:] == shift[:-1])
    goes_on &= not part.is_recurrent
    goes_on = np.where(empty[1:] | empty[:-1], empty[1:] & empty[:-1], goes_on)
    return np.flatnonzero(np.concatenate([[True], ~goes_on]))


def _empty(part: PartSnapshot) -> NDArray[np.bool_]:
    """Cells without position and owner; a state can have an owner before it has a position."""
    empty: NDArray[np.bool_] = (part.pos == EMPTY) & (part.seqs == 0)
    return empty


def _told(part: PartSnapshot, begins: NDArray[np.intp], ends: NDArray[np.intp]) -> Iterator[str]:
    empty = _empty(part)
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        yield f"{cell_run(begin, end)}: {'empty' if empty[begin] else _content(part, begin, end)}"


def _content(part: PartSnapshot, begin: int, end: int) -> str:
    owners, first, last = part.owners(begin), int(part.pos[begin]), int(part.pos[end - 1])
    several = "sequences" if len(owners) > 1 else "sequence"
    told = f"{several} {joined(map(str, owners))}" if owners else "no sequence"
    told += f", positions {first} to {last}" if last > first else f", position {first}"
    if part.is_recurrent:
        src = int(part.src[begin])
        goes_on = "" if src == begin else f", goes on from {f'cell {src}' if src >= 0 else 'zero'}"
        return told + goes_on
    shift = int(part.shift[begin])
    return f"{told}, shift {shift:+}" if shift else told
