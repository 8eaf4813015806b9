"""The cache view: what a debugging tool of the older generation was shown.

Counterpart of `llama_kv_cache_view_init` and `llama_kv_cache_view_update` (January 2025).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvmodel.caches.legacy_cells import LegacyCells
from kvmodel.errors import check_int
from kvmodel.limits import MAX_MASK_BYTES, MAX_SEQ


@dataclass(frozen=True, eq=False)
class CacheView:
    """A picture of the cells.

    Attributes:
        n_cells: number of cells.
        n_seq_max: ids listed for a cell at most.
        token_count: sum of the set sizes.
        used_cells: cells with an owner that is listed.
        max_contiguous: length of the longest run of cells without an owner.
        max_contiguous_idx: its first cell, the first run of that length; -1 if there is none.
        pos: int32 [n], position plus delta.
        seqs: int32 [n, n_seq_max], the first ids of each cell ascending, filled up with -1.
    """

    n_cells: int
    n_seq_max: int
    token_count: int
    used_cells: int
    max_contiguous: int
    max_contiguous_idx: int
    pos: NDArray[np.int32]
    seqs: NDArray[np.int32]


def view_cells(cells: LegacyCells, n_seq_max: int) -> CacheView:
    """Look at the cells as they are. Changes nothing.

    Args:
        cells: read only.
        n_seq_max: ids listed for a cell at most.
    """
    check_int("n_seq_max", n_seq_max, 0, MAX_MASK_BYTES // (4 * len(cells)))
    begin, length = longest_run(cells.seqs == 0)
    return CacheView(
        n_cells=len(cells),
        n_seq_max=n_seq_max,
        token_count=int(np.bitwise_count(cells.seqs).sum()),
        used_cells=int(np.count_nonzero(cells.seqs)) if n_seq_max else 0,
        max_contiguous=length,
        max_contiguous_idx=begin,
        pos=cells.pos + cells.delta,
        seqs=_first_ids(cells.seqs, n_seq_max),
    )


def longest_run(wanted: NDArray[np.bool_]) -> tuple[int, int]:
    """First cell and length of the longest run of True, the first one of that length; (-1, 0) if there is none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], wanted.view(np.int8), [0]])))
    if not len(edges):
        return -1, 0
    begins, lengths = edges[::2], edges[1::2] - edges[::2]
    best = int(lengths.argmax())
    return int(begins[best]), int(lengths[best])


def _first_ids(seqs: NDArray[np.uint64], n_seq_max: int) -> NDArray[np.int32]:
    """The lowest `n_seq_max` ids of every bit set, ascending, filled up with -1: the lowest bit, time and again."""
    ids = np.full((len(seqs), n_seq_max), -1, np.int32)
    rest = seqs.copy()
    for column in range(min(n_seq_max, MAX_SEQ)):
        some = rest != 0
        if not some.any():
            break
        less = rest - np.uint64(1)
        ids[some, column] = np.bitwise_count(~rest & less)[some]
        rest &= less
    return ids
