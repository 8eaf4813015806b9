"""The K-shift vector as runs of neighbouring cells with one shift, and as a table of them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kvmodel.errors import ParamError
from kvmodel.figures.texts import owner_texts, shift_of
from kvmodel.snapshot import PartSnapshot

Vector = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Runs:
    """Neighbouring columns with one shift.

    Attributes:
        begin, end: intp [k], first cell, and the one after the last.
        shift: int32 [k].
    """

    begin: NDArray[np.intp]
    end: NDArray[np.intp]
    shift: Vector

    @classmethod
    def of(cls, shift: Vector, pool: int = 1, n: int | None = None) -> "Runs":
        """The runs of a vector whose entries stand for `pool` cells each, `n` in all."""
        begins = np.flatnonzero(np.diff(shift, prepend=shift[:1] + 1) != 0)
        ends = np.append(begins[1:], len(shift)) * pool
        return cls(begins * pool, ends if n is None else np.minimum(ends, n), shift[begins])


def shift_vector(part: PartSnapshot, k_shift: Vector | None) -> Vector:
    """The vector to show, int32 [n]: the given one, or what is pending in the cells.

    Raises:
        ParamError: the vector does not have one entry a cell.
    """
    if k_shift is None:
        return shift_of(part)[1]
    if np.shape(k_shift) != (part.n_cells,):
        raise ParamError("k_shift", f"of shape {np.shape(k_shift)}", f"one shift for each of {part.n_cells:,} cells")
    return np.asarray(k_shift, np.int32)


def shift_table(part: PartSnapshot, k_shift: Vector | None = None) -> pd.DataFrame:
    """One row a run of neighbouring cells with one shift: first cell, last cell, cells, shift, sequences.

    Args:
        part: the cells at one moment.
        k_shift: the vector that an update applied, int32 [n]; left out, what is pending in the cells.

    Raises:
        ParamError: the vector does not have one entry a cell.
    """
    runs = Runs.of(shift_vector(part, k_shift))
    owners = owner_texts(np.bitwise_or.reduceat(part.seqs, runs.begin))
    table = pd.DataFrame(
        {
            "first cell": runs.begin,
            "last cell": runs.end - 1,
            "cells": runs.end - runs.begin,
            "shift": runs.shift,
            "sequences": owners,
        }
    )
    return table[table["shift"] != 0].reset_index(drop=True)
