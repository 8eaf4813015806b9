"""Batches and ubatches as arrays, and token runs for those who read them (`llama_batch`, `llama_ubatch`)."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvmodel.errors import ParamError, check_int
from kvmodel.limits import INT32_MAX, MAX_BATCH, MAX_IDS

Int32 = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Batch:
    """What a caller hands to `llama_decode`.

    Attributes:
        pos: int32 [n], positions; None leaves them to `complete`.
        seq_id: int32 [n, m], owners of every token in the order given, filled up with -1.
        n_seq_id: int32 [n], how many of them count.
        token: int32 [n], serial numbers that the cells will carry, -1 where there is none.
        embd: the input is embeddings, for which the position rule is laxer.
    """

    pos: Int32 | None
    seq_id: Int32
    n_seq_id: Int32
    token: Int32
    embd: bool = False

    @classmethod
    def from_runs(
        cls,
        runs: Iterable[tuple[int, int, Sequence[int]]],
        *,
        token: Sequence[int] | Int32 | None = None,
        embd: bool = False,
        auto_pos: bool = False,
    ) -> "Batch":
        """Build a batch from runs (first position, number of tokens, sequence ids).

        Args:
            runs: tokens in order; positions inside a run count up.
            token: serial numbers of all tokens, default -1.
            embd: the tokens are embeddings.
            auto_pos: leave the positions to `complete`.

        Raises:
            ParamError: a count or a position is out of range, or there are too many tokens.
        """
        parts = [_run(run) for run in runs]
        total = check_int("n_tokens", sum(n for _, n, _ in parts), 0, MAX_BATCH)
        width = max([1, *(len(seqs) for _, _, seqs in parts)])
        pos = np.empty(total, np.int32)
        seq_id = np.full((total, width), -1, np.int32)
        n_seq_id = np.empty(total, np.int32)
        at = 0
        for first, n, seqs in parts:
            if not auto_pos and not 0 <= first <= INT32_MAX - n:
                raise ParamError("pos", first, f"0 to {INT32_MAX - n}")
            pos[at : at + n] = np.arange(n) if auto_pos else np.arange(first, first + n)
            seq_id[at : at + n, : len(seqs)] = _as_int32(seqs)
            n_seq_id[at : at + n] = len(seqs)
            at += n
        serials = np.full(total, -1, np.int32) if token is None else np.asarray(token, np.int32)
        if len(serials) != total:
            raise ParamError("token", f"{len(serials)} entries", f"one for each of the {total} tokens")
        return cls(None if auto_pos else pos, seq_id, n_seq_id, serials, embd)

    def __len__(self) -> int:
        return len(self.seq_id)

    @property
    def positions(self) -> Int32:
        """Positions of a completed batch, int32 [n].

        Raises:
            ParamError: the caller left them out and `complete` was not called.
        """
        if self.pos is None:
            raise ParamError("pos", None, "positions; call complete(batch, ...) first")
        return self.pos

    @property
    def seq_set(self) -> NDArray[np.uint64]:
        """Owners of every token as bit sets, uint64 [n]; ids must lie in 0..63."""
        return seq_sets(self.seq_id, self.n_seq_id)

    @property
    def runs(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """The batch as maximal runs (first position, number of tokens, sequence ids)."""
        return token_runs(self.pos if self.pos is not None else np.arange(len(self), dtype=np.int32), self)


@dataclass(frozen=True, eq=False)
class UBatch:
    """A part of a batch that is stored and computed in one go (`llama_ubatch`).

    Attributes:
        idx: int32 [n], which tokens of the batch, in ubatch order.
        pos, seq_id, n_seq_id, token: as in Batch, [n] and [n, m].
        equal_seqs: whether it came from an equal-length split.
        n_seqs, n_seq_tokens: sequence sets and tokens per set; for a plain split n and 1.
    """

    idx: Int32
    pos: Int32
    seq_id: Int32
    n_seq_id: Int32
    token: Int32
    equal_seqs: bool
    n_seqs: int
    n_seq_tokens: int

    @classmethod
    def of(cls, batch: Batch, idx: Int32, n_seqs: int, equal_seqs: bool) -> "UBatch":
        """Take the tokens `idx` out of a completed batch (`llama_batch_allocr::ubatch_add`)."""
        per = len(idx) // n_seqs if n_seqs else 0
        return cls(
            idx, batch.positions[idx], batch.seq_id[idx], batch.n_seq_id[idx], batch.token[idx], equal_seqs, n_seqs, per
        )

    @classmethod
    def plain(cls, batch: Batch) -> "UBatch":
        """The whole batch as one plain ubatch, unchecked."""
        return cls.of(batch, np.arange(len(batch), dtype=np.int32), len(batch), False)

    def __len__(self) -> int:
        return len(self.pos)

    @cached_property
    def seq_set(self) -> NDArray[np.uint64]:
        """Owners of every token as bit sets, uint64 [n]."""
        return seq_sets(self.seq_id, self.n_seq_id)

    @property
    def first_seq(self) -> Int32:
        """The first sequence id of every token, int32 [n]: the one the mask asks for."""
        return self.seq_id[:, 0]

    @property
    def n_seqs_unq(self) -> int:
        """Number of different sequence ids in the ubatch."""
        return int(np.bitwise_or.reduce(self.seq_set, initial=np.uint64(0))).bit_count()

    @property
    def runs(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """The ubatch as maximal runs (first position, number of tokens, sequence ids)."""
        return token_runs(self.pos, self)


def seq_sets(seq_id: Int32, n_seq_id: Int32) -> NDArray[np.uint64]:
    """Bit sets uint64 [n] of padded id lists int32 [n, m]."""
    counted = np.arange(seq_id.shape[1]) < n_seq_id[:, None]
    bits = np.uint64(1) << np.where(counted, seq_id, 0).astype(np.uint64)
    sets: NDArray[np.uint64] = np.bitwise_or.reduce(np.where(counted, bits, np.uint64(0)), axis=1)
    return sets


def token_runs(pos: Int32, owners: Any) -> list[tuple[int, int, tuple[int, ...]]]:
    """Maximal runs of counting positions and one id list."""
    runs = []
    for at, n, seqs in owner_runs(owners):
        part = pos[at : at + n]
        cuts = np.flatnonzero(np.diff(part) != 1) + 1
        runs += [(int(piece[0]), len(piece), seqs) for piece in np.split(part, cuts)]
    return runs


def owner_runs(owners: Any) -> list[tuple[int, int, tuple[int, ...]]]:
    """Runs (first token, number of tokens, ids) of equal id lists."""
    n = len(owners.seq_id)
    if not n:
        return []
    same = (owners.seq_id[1:] == owners.seq_id[:-1]).all(axis=1) & (owners.n_seq_id[1:] == owners.n_seq_id[:-1])
    begins = [0, *(np.flatnonzero(~same) + 1).tolist()]
    ends = [*begins[1:], n]
    return [
        (b, e - b, tuple(owners.seq_id[b, : owners.n_seq_id[b]].tolist())) for b, e in zip(begins, ends, strict=True)
    ]


def _run(run: tuple[int, int, Sequence[int]]) -> tuple[int, int, tuple[int, ...]]:
    """One run, checked: a position, a count, and at most 128 ids, each of any size."""
    try:
        first, n, seqs = run
        ids = tuple(map(operator.index, seqs))
        pos = operator.index(first)
    except (TypeError, ValueError):
        raise ParamError("run", run, "(first position, number of tokens, sequence ids), all whole numbers") from None
    check_int("ids of a token", len(ids), 0, MAX_IDS)
    return pos, check_int("n", n, 0, MAX_BATCH), ids


def _as_int32(ids: Sequence[int]) -> list[int]:
    """Ids clamped into int32, so that an absurd one is refused by the check and not by the array."""
    return [max(-INT32_MAX - 1, min(INT32_MAX, i)) for i in ids]
