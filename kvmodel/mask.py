"""Which query sees which cell, and why not; ALiBi distances; relative position buckets.

Counterpart of `set_input_kq_mask`, `is_masked_swa` and `set_input_pos_bucket` in llama-kv-cache-unified.cpp. The
functions take plain arrays, so a stored snapshot serves as well as a live cache.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import EMPTY, Index
from kvmodel.errors import ParamError
from kvmodel.limits import INT32_MAX, MAX_BUCKETS, MAX_MASK_BYTES
from kvmodel.spans import owns
from kvmodel.types import SWAType, pad

Int32 = NDArray[np.int32]
Seqs = NDArray[np.uint64]

KQ_MASK_PAD = 64
"""Mask rows are padded to a multiple of this (GGML_KQ_MASK_PAD)."""

MAX_DISTANCE = 128
"""Distance from which on all positions share the last bucket (llama_relative_position_bucket)."""

COPY_ROWS = 32
"""Rows of a mask that are copied at once: a few large copies are much faster than many small ones."""

HIDDEN = np.float32(-np.inf)


class MaskReason(IntEnum):
    """Why a query does not see a cell; the first rule that hides it, in upstream's order."""

    VISIBLE = 0
    EMPTY = 1
    OTHER_SEQ = 2
    FUTURE = 3
    OUTSIDE = 4
    PADDING = 5


def masked_swa(p0: Int32, p1: int | Int32, swa_type: SWAType, n_swa: int) -> NDArray[np.bool_]:
    """Whether the window hides positions `p0` from a query at `p1` (broadcasting; `is_masked_swa`)."""
    if swa_type is SWAType.STANDARD:
        return np.asarray(p1 - p0.astype(np.int64) >= n_swa)
    if swa_type is SWAType.CHUNKED:
        return np.asarray(p0 < p1 // n_swa * n_swa)
    return np.zeros(np.broadcast_shapes(np.shape(p0), np.shape(p1)), np.bool_)


def _first_visible(p1: Int32, swa_type: SWAType, n_swa: int) -> NDArray[np.int64]:
    """Smallest position that the window shows to each query, int64 [n]."""
    if swa_type is SWAType.STANDARD:
        return np.maximum(p1.astype(np.int64) - n_swa + 1, 0)
    if swa_type is SWAType.CHUNKED:
        return p1.astype(np.int64) // n_swa * n_swa
    return np.zeros(len(p1), np.int64)


def _check_size(n_rows: int, n_kv: int, itemsize: int) -> None:
    if n_rows * n_kv * itemsize > MAX_MASK_BYTES:
        raise ParamError("mask", f"{n_rows} x {n_kv}", f"at most {MAX_MASK_BYTES} bytes")


def kq_mask(
    pos: Int32,
    seqs: Seqs,
    query_pos: Int32,
    query_seq: Int32,
    *,
    causal: bool = True,
    swa_type: SWAType = SWAType.NONE,
    n_swa: int = 0,
    use_alibi: bool = False,
) -> NDArray[np.float32]:
    """The additive attention mask of one ubatch.

    Args:
        pos: int32 [n_kv], positions of the leading cells.
        seqs: uint64 [n_kv], their owners.
        query_pos: int32 [n], position of every token.
        query_seq: int32 [n], first sequence of every token.
        causal: hide later positions.
        swa_type: window type.
        n_swa: window or chunk length in positions.
        use_alibi: visible entries are minus the distance of the positions instead of 0.

    Returns:
        float32 [n rounded up to 64, n_kv]: 0 (or the distance) where visible, -inf elsewhere and in padding rows.
    """
    n, n_kv = len(query_pos), len(pos)
    rows = pad(n, KQ_MASK_PAD)
    _check_size(rows, n_kv, 4)
    mask = np.empty((rows, n_kv), np.float32)
    low = _first_visible(query_pos, swa_type, n_swa)
    high = query_pos.astype(np.int64) if causal else np.full(n, INT32_MAX, np.int64)
    for seq in np.unique(query_seq).tolist():
        cells = _cells_by_pos(pos, seqs, seq)
        queries = np.flatnonzero(query_seq == seq)
        begin = np.searchsorted(pos[cells], low[queries])
        end = np.searchsorted(pos[cells], high[queries], side="right")
        if use_alibi:
            _show_distances(mask, queries, cells, begin, end, pos, query_pos)
        else:
            _show(mask, queries, cells, begin, end)
    mask[n:] = HIDDEN
    return mask


def _cells_by_pos(pos: Int32, seqs: Seqs, seq: int) -> Index:
    """The cells that `seq` owns, by ascending position; -1, for a token without sequence, owns none."""
    cells = np.flatnonzero(owns(seqs, seq))
    ordered: Index = cells[np.argsort(pos[cells], kind="stable")]
    return ordered


def _show(mask: NDArray[np.float32], queries: Index, cells: Index, begin: Index, end: Index) -> None:
    """Write rows in which `cells[begin:end]` are visible.

    Neighbouring queries differ in a few cells only, so a row starts as a copy of an earlier one: the one before, or
    once there are COPY_ROWS of them and the rows lie together, of those in one go.
    """
    rows, spans = queries.tolist(), list(zip(begin.tolist(), end.tolist(), strict=True))
    stop = rows[-1] + 1
    block = COPY_ROWS if stop - rows[0] == len(rows) else len(rows)
    for k, i in enumerate(rows):
        source = k - block if k >= block else k - 1
        if k < block:
            mask[i] = mask[rows[source]] if k else HIDDEN
        elif k % block == 0:
            mask[i : min(i + block, stop)] = mask[i - block : min(i, stop - block)]
        _change(mask[i], cells, spans[source] if k else (0, 0), spans[k])


def _change(row: NDArray[np.float32], cells: Index, before: tuple[int, int], now: tuple[int, int]) -> None:
    """Turn a row that shows `cells[before]` into one that shows `cells[now]`."""
    (b0, e0), (b, e) = before, now
    for start, stop, value in (
        (b0, min(b, e0), HIDDEN),
        (max(b0, e), e0, HIDDEN),
        (b, min(b0, e), 0),
        (max(b, e0), e, 0),
    ):
        if start < stop:
            row[cells[start:stop]] = value


def _show_distances(
    mask: NDArray[np.float32], queries: Index, cells: Index, begin: Index, end: Index, pos: Int32, query_pos: Int32
) -> None:
    """Write rows in which `cells[begin:end]` hold minus their distance from the query."""
    for i, b, e in zip(queries.tolist(), begin.tolist(), end.tolist(), strict=True):
        shown = cells[b:e]
        mask[i] = HIDDEN
        mask[i, shown] = -np.abs(pos[shown] - query_pos[i])


def mask_reasons(
    pos: Int32,
    seqs: Seqs,
    query_pos: Int32,
    query_seq: Int32,
    *,
    causal: bool = True,
    swa_type: SWAType = SWAType.NONE,
    n_swa: int = 0,
    padding: bool = False,
) -> NDArray[np.uint8]:
    """For every query and cell the MaskReason code.

    Args:
        pos: as in `kq_mask`.
        seqs: as in `kq_mask`.
        query_pos: as in `kq_mask`.
        query_seq: as in `kq_mask`.
        causal: as in `kq_mask`.
        swa_type: as in `kq_mask`.
        n_swa: as in `kq_mask`.
        padding: append the padding rows up to a multiple of 64.

    Returns:
        uint8 [n, n_kv], or [n rounded up to 64, n_kv] with `padding`.
    """
    n, n_kv = len(query_pos), len(pos)
    rows = pad(n, KQ_MASK_PAD) if padding else n
    _check_size(rows, n_kv, 1)
    reasons = np.full((rows, n_kv), MaskReason.PADDING, np.uint8)
    low = _first_visible(query_pos, swa_type, n_swa)
    for i, seq in enumerate(query_seq.tolist()):
        row = reasons[i]
        row[:] = MaskReason.VISIBLE
        row[pos < low[i]] = MaskReason.OUTSIDE
        if causal:
            row[pos > query_pos[i]] = MaskReason.FUTURE
        row[~owns(seqs, seq)] = MaskReason.OTHER_SEQ
        row[pos == EMPTY] = MaskReason.EMPTY
    return reasons


def pos_buckets(pos: Int32, query_pos: Int32, n_buckets: int) -> Int32:
    """Relative position buckets, one-directional, int32 [n, n_kv]; an empty cell counts as position -1.

    Near distances have a bucket each, far ones share buckets on a logarithmic scale up to MAX_DISTANCE.

    Raises:
        ParamError: fewer than 2 buckets, or more than 255.
    """
    if not 2 <= n_buckets <= MAX_BUCKETS:
        raise ParamError("n_rel_attn_bkts", n_buckets, f"2 to {MAX_BUCKETS}")
    _check_size(len(query_pos), len(pos), 8)
    exact = n_buckets // 2
    distance = -np.minimum(pos[None, :] - query_pos[:, None], 0)
    ratio = (np.maximum(distance, 1) / exact).astype(np.float32).astype(np.float64)
    scaled = np.log(ratio).astype(np.float32) * np.float32(n_buckets - exact)
    far = np.floor((exact + scaled / np.log(MAX_DISTANCE / exact)).astype(np.float32))
    buckets: Int32 = np.where(distance < exact, distance, np.minimum(far, n_buckets - 1)).astype(np.int32)
    return buckets
