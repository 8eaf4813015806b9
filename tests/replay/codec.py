"""The encodings of a recording: runs of cells, tokens, indices and values, and packed mask rows.

Writers give the longest runs from left to right. Readers spell runs out, so that two ways of cutting the same
content are equal, and refuse content that is covered twice.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
NO_LINK = -1


def cell_runs(pos: Array, shift: Array, seqs: Array) -> list[list[Any]]:
    """Runs [cell, n, first position, step, shift, mask in hex] of every cell that is not in the default condition."""
    where = np.flatnonzero((pos != -1) | (shift != 0) | (seqs != 0))
    if not len(where):
        return []
    p, s, q = pos[where], shift[where], seqs[where]
    step = p[1:] - p[:-1]
    linked = (where[1:] - where[:-1] == 1) & (s[1:] == s[:-1]) & (q[1:] == q[:-1]) & ((step == 0) | (step == 1))
    runs = _greedy(np.where(linked, step, NO_LINK))
    cells, first, shifts, owners = where.tolist(), p.tolist(), s.tolist(), q.tolist()
    return [[cells[i], n, first[i], step, shifts[i], f"{owners[i]:x}"] for i, n, step in runs]


def _greedy(links: Array) -> list[tuple[int, int, int]]:
    """Runs (first item, items, step) of items whose neighbours are joined by links of one value.

    A run takes every link equal to its first one; the link that ends it is not used again.
    """
    values = links.tolist()
    runs: list[tuple[int, int, int]] = []
    at = 0
    for begin, end in _pieces(links[1:] != links[:-1], len(links)):
        start = max(at, begin)
        if values[begin] == NO_LINK:
            runs += [(i, 1, 1) for i in range(start, end)]
            at = max(at, end)
        elif start < end:
            runs.append((start, end - start + 1, values[begin]))
            at = end + 1
    return [*runs, (len(links), 1, 1)] if at == len(links) else runs


def index_runs(index: Array) -> list[list[int]]:
    """Runs [first, n] of integers that count up."""
    pieces = _pieces(index[1:] - index[:-1] != 1, len(index))
    firsts = index[[begin for begin, _ in pieces]].tolist()
    return [[first, end - begin] for first, (begin, end) in zip(firsts, pieces, strict=True)]


def value_runs(values: Array) -> list[list[int]]:
    """Runs [first, n, value] of equal values that are not 0."""
    pieces = _pieces(values[1:] != values[:-1], len(values))
    firsts = values[[begin for begin, _ in pieces]].tolist()
    return [[begin, end - begin, value] for value, (begin, end) in zip(firsts, pieces, strict=True) if value]


def _pieces(cuts: NDArray[np.bool_], n: int) -> list[tuple[int, int]]:
    """Spans [begin, end) of `n` items, cut behind every item i with cuts[i]."""
    edges = [0, *(np.flatnonzero(cuts) + 1).tolist(), n] if n else [0]
    return list(pairwise(edges))


def token_runs(runs: Iterable[tuple[int, int, tuple[int, ...]]]) -> list[list[Any]]:
    """The model's runs as a recording holds them: [first position, n, [ids]]."""
    return [[pos, n, list(ids)] for pos, n, ids in runs]


def cell_bytes(pos: Array, shift: Array, seqs: Array) -> bytes:
    """What a state hash covers: position, shift and owners of every cell, 16 little-endian bytes each."""
    words = np.empty((len(pos), 4), "<i4")
    words[:, 0], words[:, 1] = pos, shift
    words[:, 2:] = seqs.astype("<u8", copy=False).view("<i4").reshape(-1, 2)
    return words.tobytes()


def packed_rows(visible: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Mask rows as bits, the lowest bit first, each row padded to whole bytes."""
    return np.packbits(visible, axis=1, bitorder="little")


def spell_cells(runs: Sequence[Any]) -> dict[int, list[Any]]:
    """Cell -> [position, shift, owners], of every cell that the runs cover."""
    cells = [(i + k, [p + step * k, s, int(q, 16)]) for i, n, p, step, s, q in runs for k in range(n)]
    return _once(cells)


def spell_values(runs: Sequence[Any]) -> dict[int, int]:
    """Index -> value of every entry that the runs cover."""
    return _once([(i + k, value) for i, n, value in runs for k in range(n)])


def spell_indices(runs: Sequence[Any]) -> list[int]:
    """The integers that the runs count through."""
    return list(chain.from_iterable(range(i, i + n) for i, n in runs))


def spell_tokens(runs: Sequence[Any]) -> list[list[Any]]:
    """[position, ids] of every token."""
    return [[pos + k, ids] for pos, n, ids in runs for k in range(n)]


def _once(pairs: list[tuple[int, Any]]) -> dict[int, Any]:
    spelled = dict(pairs)
    if len(spelled) != len(pairs):
        raise ValueError("runs overlap")
    return spelled


SPELL: dict[str, Callable[[Sequence[Any]], Any]] = {
    "cells": spell_cells,
    "idx": spell_indices,
    "k_shift": spell_values,
    "tokens": spell_tokens,
}
"""Readers by the name of the field that holds the runs."""
