"""Cutting a completed batch into ubatches; the three splits of llama-batch.cpp."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import Batch, UBatch

Split = Callable[[Batch, int], list[UBatch]]


def split_simple(batch: Batch, n_ubatch: int) -> list[UBatch]:
    """Token order, at most `n_ubatch` tokens each (`llama_batch_allocr::split_simple`)."""
    idx = np.arange(len(batch), dtype=np.int32)
    parts = np.split(idx, range(n_ubatch, len(batch), n_ubatch))
    return [UBatch.of(batch, part, len(part), False) for part in parts if len(part)]


def split_equal(batch: Batch, n_ubatch: int) -> list[UBatch]:
    """Non-overlapping sequence sets with equally many tokens each (`split_equal`).

    The number of sets is checked only after one too many was taken, so a ubatch can hold one token more than
    `n_ubatch` (quirk equal-split-overflow).
    """
    sets = batch.seq_set
    left = np.ones(len(batch), np.bool_)
    ubatches = []
    while left.any():
        rows = [np.flatnonzero(left & (sets == chosen)) for chosen in _disjoint_sets(sets[left], n_ubatch)]
        length = min(*map(len, rows), max(1, n_ubatch // len(rows)))
        idx = np.concatenate([row[:length] for row in rows]).astype(np.int32)
        left[idx] = False
        ubatches.append(UBatch.of(batch, idx, len(rows), True))
    return ubatches


def split_seq(batch: Batch, n_ubatch: int) -> list[UBatch]:
    """One sequence set at a time, narrowing to subsets on the way (`split_seq`)."""
    sets = batch.seq_set
    left = np.ones(len(batch), np.bool_)
    ubatches = []
    while left.any():
        idx = _narrowing(sets, left, n_ubatch)
        left[idx] = False
        ubatches.append(UBatch.of(batch, idx, 1, True))
    return ubatches


def _disjoint_sets(sets: NDArray[np.uint64], n_ubatch: int) -> list[np.uint64]:
    """Sets in order of first appearance that overlap none taken before; stops at `n_ubatch` + 1."""
    distinct, first = np.unique(sets, return_index=True)
    taken: list[np.uint64] = []
    union = np.uint64(0)
    for candidate in distinct[np.argsort(first)]:
        if candidate & union:
            continue
        taken.append(candidate)
        union |= candidate
        if len(taken) > n_ubatch:
            break
    return taken


def _narrowing(sets: NDArray[np.uint64], left: NDArray[np.bool_], n_ubatch: int) -> NDArray[np.int32]:
    """Tokens whose set lies within that of the token taken before; each round ends where the set gets smaller."""
    at = int(left.argmax())
    taken = [np.array([at])]
    room = n_ubatch - 1
    while room > 0:
        later = at + 1 + np.flatnonzero(left[at + 1 :] & ((sets[at + 1 :] & ~sets[at]) == 0))
        smaller = np.flatnonzero(sets[later] != sets[at])
        fits = later[: min(room, int(smaller[0]) + 1 if len(smaller) else len(later))]
        if not len(fits):
            break
        taken.append(fits)
        at = int(fits[-1])
        room -= len(fits)
    return np.concatenate(taken).astype(np.int32)
