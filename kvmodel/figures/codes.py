"""From cells to colour codes: one small number for every pixel of a cell, and what the numbers mean.

A cell is drawn as a block of pixels, so that each of several owners gets a stripe and a pattern tells sequences of one
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
from kvmodel.figures.texts import owners_of, shift_of
from kvmodel.snapshot import PartSnapshot

Codes = NDArray[np.uint8]
Colour = Literal["sequence", "position", "shift", "changed"]

EMPTY, PLAIN, SEVERAL, FIRST = 0, 1, 2, 3
"""Codes of a sequence map: empty, in use, several owners, then the fills of all colours and their tones."""

STILL, IN_USE, CHANGED, FREED = 0, 1, 2, 3
"""Codes of a map of changes: empty as before, in use as before, changed, emptied."""

N_COLOURS = len(SEQUENCES)
WIDTHS = (1, 2, 3, 4, 6, 12)
"""Pixels a cell may be wide: what one, two, three, four, six or twelve owners share evenly."""

PATTERN_SIZE = 4
TALL = 8
"""Pixels of height where cells are large enough for text: two patterns, or a body for the text and a foot."""

FOOT = 4
"""Pixels of height of a cell whose lowest one shows something apart."""

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
        scale: for a continuous scale the codes, labels and title of its bar.
    """

    codes: Codes
    colours: Sequence[str]
    scale: dict[str, Any] | None = None

    @property
    def fill(self) -> Codes:
        """The code at the upper left of each cell, on which its text stands, uint8 [n]."""
        return self.codes[:, 0, 0]


def by_sequence(
    pos: NDArray[np.int32], seqs: NDArray[np.uint64], page: Theme, max_width: int, *, foot: int = 0
) -> Coded:
    """Owners as colours; several share the cell as stripes, or only its foot so that text stays readable above.

    Args:
        pos: positions, int32 [n].
        seqs: owners as bit sets, uint64 [n].
        page: the colours.
        max_width: pixels a cell has; more owners than that are one code of their own, and with 1 there is no pattern.
        foot: pixels of 8 at the lower end of a cell that show its owners where they are several; 0 for all.
    """
    fills = [seq_colour(seq) for seq in range(N_COLOURS)]
    tones = [seq_tone(seq) for seq in range(N_COLOURS)]
    colours = [page.empty, page.filled, page.several, *fills, *tones]
    return Coded(owner_codes(pos, seqs, max_width, foot=foot), colours)


def owner_codes(pos: NDArray[np.int32], seqs: NDArray[np.uint64], max_width: int, *, foot: int = 0) -> Codes:
    """Codes of a sequence map, uint8 [n, r, s]; stripes in ascending order of the owners, from the left."""
    sets, which = np.unique(seqs, return_inverse=True)
    owners = [owners_of(int(bits)) for bits in sets]
    counts = {len(group) for group in owners if group}
    patterned = max_width > 1 and any(group[-1] >= N_COLOURS for group in owners if group)
    width = lcm(_width(counts, max_width), PATTERN_SIZE if patterned else 1)
    height = TALL if foot else PATTERN_SIZE if patterned else 1
    blocks = np.array([_block(group, height, width, foot) for group in owners], np.uint8)
    codes: Codes = blocks.reshape(-1, height, width)[which]
    codes[pos == NO_POS] = EMPTY
    return codes


def _width(counts: set[int], most: int) -> int:
    """Pixels that cells of so many owners need to share evenly, as far as there are."""
    allowed = [width for width in WIDTHS if width <= most]
    return next((width for width in allowed if width % lcm(*counts) == 0), allowed[-1])


def _block(owners: tuple[int, ...], height: int, width: int, foot: int) -> Codes:
    """The pixels of one cell, uint8 [height, width]."""
    if not owners or len(owners) > width:
        return np.full((height, width), SEVERAL if owners else PLAIN, np.uint8)
    seq = np.array(owners)[np.arange(width) * len(owners) // width]
    rows, columns = np.indices((height, width)) % PATTERN_SIZE
    lines = PATTERN_PIXELS[seq // N_COLOURS, rows, columns] if height > 1 and width % PATTERN_SIZE == 0 else 0
    block = np.broadcast_to(FIRST + seq % N_COLOURS + N_COLOURS * lines, (height, width)).astype(np.uint8)
    if foot and len(owners) > 1:
        block[:-foot] = PLAIN
    return block


def textured(coded: Coded, seqs: NDArray[np.uint64], columns: int) -> Coded:
    """Patterns across the squares of a map whose cells are too small for one each; a run of cells shows its own.

    Args:
        coded: one pixel a cell, as `by_sequence` gives it.
        seqs: owners as bit sets, uint64 [n].
        columns: squares in a row of the map.
    """
    rounds = np.bitwise_count(seqs - (seqs > 0)) // N_COLOURS
    cells = np.flatnonzero((np.bitwise_count(seqs) == 1) & (rounds > 0))
    row, column = np.divmod(cells, columns)
    lines = PATTERN_PIXELS[rounds[cells], row % PATTERN_SIZE, column % PATTERN_SIZE]
    codes = coded.codes.copy()
    codes[cells, 0, 0] += np.where(codes[cells, 0, 0] >= FIRST, N_COLOURS * lines, 0).astype(np.uint8)
    return Coded(codes, coded.colours, coded.scale)


def by_position(part: PartSnapshot, page: Theme) -> Coded:
    """Positions on a scale from the smallest to the largest in the cache."""
    filled = part.pos != NO_POS
    low, high = (int(part.pos[filled].min()), int(part.pos[filled].max())) if filled.any() else (0, 0)
    share = (part.pos.astype(np.float64) - low) / max(high - low, 1)
    codes = np.where(filled, 1 + np.rint(share * (SCALE_STEPS - 1)), EMPTY).astype(np.uint8)
    ticks = sorted({low, (low + high) // 2, high})
    at = [1 + (tick - low) / max(high - low, 1) * (SCALE_STEPS - 1) for tick in ticks]
    scale = {"title": "position", "tickvals": at, "ticktext": [f"{tick:,}" for tick in ticks]}
    return Coded(codes[:, None, None], [page.empty, *position_scale()], scale)


def by_shift(part: PartSnapshot, page: Theme) -> Coded:
    """Pending shifts on a scale that is symmetric around none; without a scale if nothing is pending.

    An empty cell in which a shift was left (quirk stale-delta) shows it at its foot.
    """
    word, shift = shift_of(part)
    filled, left = part.pos != NO_POS, left_behind(part)
    most = int(np.abs(shift[filled | left].astype(np.int64)).max(initial=0))
    if not most:
        return Coded(filled.astype(np.uint8)[:, None, None], [page.empty, page.filled])
    middle = (SCALE_STEPS - 1) // 2
    shades = (1 + middle + np.rint(shift / most * middle)).astype(np.uint8)
    codes = np.where(filled, shades, np.uint8(EMPTY))[:, None, None]
    if left.any():
        codes = np.repeat(codes, FOOT, axis=1)
        codes[left, -1] = shades[left, None]
    scale = {
        "title": f"pending {word}",
        "tickvals": [1, 1 + middle, 1 + 2 * middle],
        "ticktext": [f"-{most:,}", "0", f"+{most:,}"],
    }
    return Coded(codes, [page.empty, *shift_scale(page.name)], scale)


def left_behind(part: PartSnapshot) -> NDArray[np.bool_]:
    """Empty cells in which the shift of a former token was left, bool [n]."""
    left: NDArray[np.bool_] = (part.pos == NO_POS) & (shift_of(part)[1] != 0)
    return left


def by_change(part: PartSnapshot, page: Theme, changed: NDArray[np.intp]) -> Coded:
    """What changed in this step, what is in use and what is empty."""
    filled = part.pos != NO_POS
    codes = np.where(filled, IN_USE, STILL).astype(np.uint8)
    codes[changed] = np.where(filled[changed], CHANGED, FREED)
    return Coded(codes[:, None, None], [page.empty, page.filled, page.accent, page.freed])
