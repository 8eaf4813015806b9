"""Shifts that wait for the next update: which cells have one, and where their keys were made."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline


@dataclass(frozen=True)
class PendingShift:
    """One cell that was moved since its key was last right.

    Attributes:
        cell: its index.
        pos_before: the position that its key stands for.
        pos: its position now.
        k_shift: what the next update hands to the rotation.
    """

    cell: int
    pos_before: int
    pos: int
    k_shift: int

    @property
    def shift(self) -> int:
        """By how much the position changed; not what `k_shift` says after `seq_div` (quirk div-shift-sign)."""
        return self.pos - self.pos_before


def _word(part: PartSnapshot) -> str:
    """What the cache calls its shifts: delta in the older one."""
    return "shift" if "shift" in part.arrays else "delta"


def pending_cells(part: PartSnapshot) -> NDArray[np.intp]:
    """Used cells whose shift is not applied yet, ascending."""
    return np.flatnonzero((part.arrays[_word(part)] != 0) & (part.pos >= 0))


def pending_shift(timeline: Timeline, frame: int, part: PartSnapshot, cell: int) -> PendingShift | None:
    """The pending shift of a cell after a frame, None if it has none.

    Args:
        timeline: what was played.
        frame: the moment that `part` shows.
        part: the cells then.
        cell: index of the cell.
    """
    word = _word(part)
    k_shift = int(part.arrays[word][cell])
    if not k_shift or part.pos[cell] < 0:
        return None
    for i in reversed([i for i in timeline.history(cell, part.name) if i <= frame]):
        delta = timeline.frames[i].parts[part.name].delta
        at = int(np.searchsorted(delta.cells, cell))
        if delta.before[word][at] == 0 or delta.before["pos"][at] < 0:
            return PendingShift(cell, int(delta.before["pos"][at]), int(part.pos[cell]), k_shift)
    return None
