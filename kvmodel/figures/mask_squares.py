"""The squares of a mask that are drawn: all of them, or as many as can be seen."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.mask import KQ_MASK_PAD, MaskReason, mask_reasons
from kvmodel.snapshot import PartSnapshot
from kvmodel.types import pad

MAX_SQUARES = 1 << 14
"""Squares drawn at most, each with its reason in words: more than that a panel's pixels do not show."""

MAX_ROWS = 32

PRIORITY = np.array(
    [
        MaskReason.EMPTY,
        MaskReason.PADDING,
        MaskReason.OTHER_SEQ,
        MaskReason.FUTURE,
        MaskReason.OUTSIDE,
        MaskReason.VISIBLE,
    ],
    np.uint8,
)
"""Which reason speaks for a block of cells: the last of these that occurs in it."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """The squares that are drawn.

    Attributes:
        codes: uint8 [rows, columns], MaskReason.
        rows: intp [rows], rows of the mask; all of them, or as many evenly spaced ones as are drawn.
        pool: cells a column stands for.
        counts: unsigned [rows, columns, reasons], cells of a square by reason, where a column stands for several.
    """

    codes: NDArray[np.uint8]
    rows: NDArray[np.intp]
    pool: int
    counts: NDArray[np.unsignedinteger] | None = None


def drawn_mask(part: PartSnapshot, ubatch: UBatch, *, causal: bool, padding: bool) -> Drawn:
    """The squares of a mask, or as many as can be seen; only rows that are drawn are worked out."""
    n = pad(len(ubatch), KQ_MASK_PAD) if padding else len(ubatch)
    size = n * part.n_kv
    rows = np.arange(n) if size <= MAX_SQUARES else np.linspace(0, n - 1, min(n, MAX_ROWS)).astype(np.intp)
    asking = rows[rows < len(ubatch)]
    shown = np.full((len(rows), part.n_kv), MaskReason.PADDING, np.uint8)
    shown[: len(asking)] = mask_reasons(
        part.pos[: part.n_kv],
        part.seqs[: part.n_kv],
        ubatch.pos[asking],
        ubatch.first_seq[asking],
        causal=causal,
        swa_type=part.params.swa_type,
        n_swa=part.params.n_swa,
    )
    pool = max(1, -(-shown.size // MAX_SQUARES))
    return Drawn(shown, rows, pool) if pool == 1 else _pooled(shown, rows, pool)


def _pooled(shown: NDArray[np.uint8], rows: NDArray[np.intp], pool: int) -> Drawn:
    """`pool` neighbouring cells a square."""
    begins = np.arange(0, shown.shape[1], pool)
    rank = np.argsort(PRIORITY).astype(np.uint8)
    codes = PRIORITY[np.maximum.reduceat(rank[shown], begins, axis=1)]
    unit = np.min_scalar_type(pool)
    counts = [np.add.reduceat(shown == reason, begins, axis=1, dtype=unit) for reason in MaskReason]
    return Drawn(codes, rows, pool, np.stack(counts, axis=-1))
