"""From cells to colour codes: one small number for every pixel of a cell, and what the numbers mean.

A cell is drawn as a block of pixels, so that several owners alternate as stripes and a pattern tells sequences of one
colour apart. Everything here is arrays; the drawing is done in `cells.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import EMPTY as NO_POS
from kvmodel.figures.palette import (
    PATTERNS,
    SCALE_STEPS,
    SEQUENCES,
    Theme,
    position_scale,
    seq_colour,
    seq_tone,
    shift_scale,
)
from kvmodel.figures.words import owners_of, shift_of
from kvmodel.snapshot import PartSnapshot

Codes = NDArray[np.uint8]
Colour = Literal["sequence", "position", "shift", "changed"]

EMPTY, NO_OWNER, SEVERAL, FIRST = 0, 1, 2, 3
"""Codes of a sequence map: empty, in use without an owner, several owners, then fill and tone of every colour."""

N_COLOURS = len(SEQUENCES)
MAX_STRIPES = 12
PATTERN_SIZE = 4
STILL, IN_USE, CHANGED, FREED = 0, 1, 2, 3
"""Codes of a map of changes: empty as before, in use as before, changed, emptied."""

_PIXELS = {
    "": "0000 0000 0000 0000",
    "-": "0000 1111 0000 1111",
    "|": "0101 0101 0101 0101",
    "/": "0001 0010 0100 1000",
    "\\": "1000 0100 0010 0001",
    "+": "0100 1111 0100 0100",
    "x": "1001 0110 0110 1001",
    ".": "0000 0110 0110 0000",
}
PATTERN_PIXELS = np.array([[list(map(int, row)) for row in _PIXELS[shape].split()] for shape in PATTERNS], np.uint8)


@dataclass(frozen=True, eq=False)
class Coded:
    """Cells as colour codes.

    Attributes:
        codes: uint8 [n, r, s], r x s pixels for each of n cells.
        colours: what each code looks like.
        fill: uint8 [n], the code of each cell as a whole, for the ink of its text.
        scale: for a continuous scale the codes, labels and title of its bar.
    """

    codes: Codes
    colours: Sequence[str]
    fill: Codes
    scale: dict[str, Any] | None = None


def by_sequence(part: PartSnapshot, page: Theme, max_stripes: int) -> Coded:
    """Owners as colours; several alternate as stripes, as many as `max_stripes` allows."""
    codes = owner_codes(part.pos, part.seqs, max_stripes)
    return Coded(codes, sequence_colours(page), codes[:, 0, 0])


def sequence_colours(page: Theme) -> list[str]:
    """The colours of a sequence map by code."""
    fills = [seq_colour(seq) for seq in range(N_COLOURS)]
    tones = [seq_tone(seq) for seq in range(N_COLOURS)]
    return [page.empty, page.filled, page.several, *fills, *tones]


def owner_codes(pos: NDArray[np.int32], seqs: NDArray[np.uint64], max_stripes: int) -> Codes:
    """Codes of a sequence map, uint8 [n, r, s].

    A cell of m owners shows them in s stripes, in ascending order over and over; when m exceeds s, the first s of
    them. With `max_stripes` of 1 several owners are one code of their own.
    """
    sets, which = np.unique(seqs, return_inverse=True)
    owners = [owners_of(int(bits)) for bits in sets]
    size = PATTERN_SIZE if max_stripes > 1 and any(max(seqs, default=0) >= N_COLOURS for seqs in owners) else 1
    stripes = stripes_for([len(seqs) for seqs in owners if seqs], max_stripes)
    width = lcm(stripes, size)
    blocks = np.array([_block(seqs, size, width, stripes) for seqs in owners], np.uint8).reshape(-1, size, width)
    codes: Codes = blocks[which]
    codes[pos == NO_POS] = EMPTY
    return codes


def stripes_for(counts: Sequence[int], most: int) -> int:
    """Stripes that divide a cell evenly among each of `counts` owners, if `most` suffices."""
    return min(lcm(*counts), most) if counts else 1


def _block(owners: tuple[int, ...], size: int, width: int, stripes: int) -> Codes:
    """The pixels of one cell, uint8 [size, width]."""
    if not owners or (len(owners) > 1 and stripes == 1):
        return np.full((size, width), SEVERAL if owners else NO_OWNER, np.uint8)
    seq = np.array(owners)[np.arange(width) * stripes // width % len(owners)]
    rows, columns = np.indices((size, width)) % PATTERN_SIZE
    lines = PATTERN_PIXELS[seq // N_COLOURS, rows, columns] if size > 1 else 0
    return (FIRST + seq % N_COLOURS + N_COLOURS * lines).astype(np.uint8).reshape(size, width)


def by_position(part: PartSnapshot, page: Theme) -> Coded:
    """Positions on a scale from the smallest to the largest in the cache."""
    filled = part.pos != NO_POS
    low, high = (int(part.pos[filled].min()), int(part.pos[filled].max())) if filled.any() else (0, 0)
    share = (part.pos.astype(np.float64) - low) / max(high - low, 1)
    codes = np.where(filled, 1 + np.rint(share * (SCALE_STEPS - 1)), EMPTY).astype(np.uint8)
    ticks = sorted({low, (low + high) // 2, high})
    at = [1 + (tick - low) / max(high - low, 1) * (SCALE_STEPS - 1) for tick in ticks]
    scale = {"title": "position", "tickvals": at, "ticktext": [f"{tick:,}" for tick in ticks]}
    return Coded(codes[:, None, None], [page.empty, *position_scale()], codes, scale)


def by_shift(part: PartSnapshot, page: Theme) -> Coded:
    """Pending shifts on a scale that is symmetric around none."""
    word, shift = shift_of(part)
    most = max(int(np.abs(shift.astype(np.int64)).max(initial=0)), 1)
    middle = (SCALE_STEPS - 1) // 2
    shade = 1 + middle + np.rint(shift / most * middle)
    codes = np.where(part.pos != NO_POS, shade, EMPTY).astype(np.uint8)
    scale = {
        "title": f"pending {word}",
        "tickvals": [1, 1 + middle, 1 + 2 * middle],
        "ticktext": [f"{-most:,}", "0", f"+{most:,}"],
    }
    return Coded(codes[:, None, None], [page.empty, *shift_scale(page.name)], codes, scale)


def by_change(part: PartSnapshot, page: Theme, changed: NDArray[np.intp]) -> Coded:
    """What changed in this step, what is in use and what is empty."""
    filled = part.pos != NO_POS
    codes = np.where(filled, IN_USE, STILL).astype(np.uint8)
    codes[changed] = np.where(filled[changed], CHANGED, FREED)
    return Coded(codes[:, None, None], [page.empty, page.filled, page.accent, page.freed], codes)
