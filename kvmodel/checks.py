"""What happens to a batch before a decode: completion of what the caller left out, and the checks.

Counterpart of `llama_batch_allocr::init` in llama-batch.cpp.
"""

from collections.abc import Callable

import numpy as np

from kvmodel.batch import Batch, Int32, owner_runs
from kvmodel.errors import BatchError, CacheAbort
from kvmodel.limits import INT32_MAX, MAX_SEQ

PosOf = Callable[[int], int]
"""Smallest or largest position of a sequence in the cache, -1 for none."""


def complete(batch: Batch, seq_pos_max: PosOf | None) -> Batch:
    """Fill in what the caller left out: each sequence continues after its newest position.

    Args:
        batch: changes nothing in it.
        seq_pos_max: newest position of a sequence in the cache, None where there is no memory.

    Raises:
        BatchError: kind `empty` or `bad_seq_id`.
        CacheAbort: a generated position is larger than int32 holds.
    """
    if not len(batch):
        raise BatchError("empty", "the batch has no tokens; at least 1 is needed")
    _check_seq_ids(batch)
    if batch.pos is not None:
        return batch
    return Batch(_continued(batch, seq_pos_max), batch.seq_id, batch.n_seq_id, batch.token, batch.embd)


def check(batch: Batch, seq_pos_min: PosOf | None, seq_pos_max: PosOf | None) -> None:
    """Refuse a completed batch that does not continue the cache, in upstream's order.

    Per sequence, ascending: `not_consecutive`, then `gap`; after all of them `coupled_diverged`. Upstream's two
    further checks can never fire (quirk dead-batch-checks) and have no counterpart here.

    Raises:
        BatchError: the first refusal found.
    """
    for seq in np.unique(batch.seq_id[batch.seq_id >= 0]).tolist():
        pos = batch.positions[(batch.seq_id == seq).any(axis=1)]
        _check_sequence(seq, np.unique(pos), seq_pos_max(seq) if seq_pos_max else -1, batch.embd)
    if seq_pos_min and seq_pos_max:
        _check_coupled(batch, seq_pos_min, seq_pos_max)


def _check_seq_ids(batch: Batch) -> None:
    counted = np.arange(batch.seq_id.shape[1]) < batch.n_seq_id[:, None]
    bad = counted & ((batch.seq_id < 0) | (batch.seq_id >= MAX_SEQ))
    if bad.any():
        i, j = (int(x) for x in np.argwhere(bad)[0])
        seq = int(batch.seq_id[i, j])
        raise BatchError("bad_seq_id", f"seq_id[{i}][{j}] is {seq}; sequence ids go from 0 to {MAX_SEQ - 1}", seq=seq)
    if (batch.n_seq_id == 0).any():
        i = int(np.argmin(batch.n_seq_id))
        raise BatchError("bad_seq_id", f"token {i} has no sequence id; at least one from 0 to {MAX_SEQ - 1} is needed")


def _continued(batch: Batch, seq_pos_max: PosOf | None) -> Int32:
    """Positions token after token: a token takes its first sequence's next one and moves all its sequences on.

    Raises:
        CacheAbort: a position does not fit; upstream's signed integer overflows.
    """
    next_pos = [(seq_pos_max(seq) + 1) if seq_pos_max else 0 for seq in range(MAX_SEQ)]
    pos = np.empty(len(batch), np.int32)
    for at, n, seqs in owner_runs(batch):
        start = next_pos[seqs[0]]
        if start + n - 1 > INT32_MAX:
            raise CacheAbort(
                f"sequence {seqs[0]} would continue to position {start + n - 1}; allowed: up to {INT32_MAX}"
            )
        pos[at : at + n] = np.arange(start, start + n)
        for seq in seqs:
            next_pos[seq] = start + n
    return pos


def _check_sequence(seq: int, pos: Int32, stored: int, embd: bool) -> None:
    start, end = int(pos[0]), int(pos[-1])
    if stored >= 0 and start != stored + 1 and not (embd and start == stored):
        rule = "Y = X + 1" if not embd else "Y = X or Y = X + 1 for embeddings"
        raise BatchError(
            "not_consecutive",
            f"sequence {seq} starts at position Y = {start} in the batch, but the last position in the cache"
            f" is X = {stored}; needed: {rule}",
            seq=seq,
            stored=stored,
            start=start,
        )
    if end - start + 1 > len(pos):
        missing = int(np.setdiff1d(np.arange(start, min(end, start + len(pos)) + 1), pos)[0])
        raise BatchError(
            "gap",
            f"sequence {seq} goes from position {start} to {end} in the batch, but leaves out {missing};"
            " needed: every position in between",
            seq=seq,
            start=start,
        )


def _check_coupled(batch: Batch, seq_pos_min: PosOf, seq_pos_max: PosOf) -> None:
    """Sequences that share a token must span the same positions in the cache."""
    first = np.broadcast_to(batch.seq_id[:, :1], batch.seq_id.shape)
    joined = batch.seq_id[:, 1:] >= 0
    pairs = np.unique(np.stack([batch.seq_id[:, 1:][joined], first[:, 1:][joined]], axis=1), axis=0)
    for s0, s1 in pairs.tolist():
        span0, span1 = ((seq_pos_min(s), seq_pos_max(s)) for s in (s0, s1))
        if span0 != span1:
            raise BatchError(
                "coupled_diverged",
                f"sequence {s0} shares a token with sequence {s1}, but in the cache they span {_span(span0)}"
                f" and {_span(span1)}; needed: equal spans",
                seq=s0,
            )


def _span(span: tuple[int, int]) -> str:
    return "no positions" if span[0] < 0 else f"positions {span[0]} to {span[1]}"
