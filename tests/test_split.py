"""The three ways to cut a batch, on batches small enough to cut by hand."""

import pytest

from kvmodel.batch import Batch, UBatch
from kvmodel.split import split_equal, split_seq, split_simple

TWO_AND_ONE = [(0, 2, (0,)), (0, 2, (1,)), (2, 2, (0,)), (2, 1, (1,))]
"""Tokens 0, 1, 4, 5 of sequence 0 and tokens 2, 3, 6 of sequence 1."""

SHARED = [(0, 2, (0, 1)), (2, 2, (0,)), (2, 1, (1,)), (0, 1, (2,))]
"""Two shared tokens, then each sequence alone, then a third one."""


def cut(ubatches: list[UBatch]) -> list[list[int]]:
    return [ubatch.idx.tolist() for ubatch in ubatches]


def shape(ubatch: UBatch) -> tuple[bool, int, int]:
    return ubatch.equal_seqs, ubatch.n_seqs, ubatch.n_seq_tokens


@pytest.mark.parametrize(
    ("n_ubatch", "parts"),
    [(7, [[0, 1, 2, 3, 4, 5, 6]]), (3, [[0, 1, 2], [3, 4, 5], [6]]), (1, [[i] for i in range(7)])],
)
def test_simple_takes_tokens_in_order(n_ubatch, parts):
    ubatches = split_simple(Batch.from_runs(TWO_AND_ONE), n_ubatch)
    assert cut(ubatches) == parts
    assert [shape(ubatch) for ubatch in ubatches] == [(False, len(part), 1) for part in parts]


@pytest.mark.parametrize(
    ("runs", "n_ubatch", "parts", "n_seqs"),
    [
        (TWO_AND_ONE, 8, [[0, 1, 4, 2, 3, 6], [5]], [2, 1]),
        (TWO_AND_ONE, 4, [[0, 1, 2, 3], [4, 6], [5]], [2, 2, 1]),
        (TWO_AND_ONE, 5, [[0, 1, 2, 3], [4, 6], [5]], [2, 2, 1]),
        (SHARED, 8, [[0, 5], [1], [2, 4], [3]], [2, 1, 2, 1]),
        ([(0, 3, (5,))], 2, [[0, 1], [2]], [1, 1]),
    ],
)
def test_equal_takes_as_many_tokens_of_every_set(runs, n_ubatch, parts, n_seqs):
    ubatches = split_equal(Batch.from_runs(runs), n_ubatch)
    assert cut(ubatches) == parts
    assert [shape(ubatch) for ubatch in ubatches] == [
        (True, n, len(part) // n) for part, n in zip(parts, n_seqs, strict=True)
    ]


def test_equal_can_exceed_the_limit_by_one_sequence():
    batch = Batch.from_runs([(0, 1, (seq,)) for seq in range(6)])
    assert cut(split_equal(batch, 3)) == [[0, 1, 2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("runs", "n_ubatch", "parts"),
    [
        (TWO_AND_ONE, 8, [[0, 1, 4, 5], [2, 3, 6]]),
        (TWO_AND_ONE, 3, [[0, 1, 4], [2, 3, 6], [5]]),
        (SHARED, 8, [[0, 1, 2, 3], [4], [5]]),
        (SHARED, 1, [[0], [1], [2], [3], [4], [5]]),
        ([(0, 1, (0, 1, 2)), (1, 1, (1, 2)), (2, 1, (0,)), (2, 1, (2,)), (3, 1, (1, 2))], 9, [[0, 1, 3], [2], [4]]),
    ],
)
def test_by_sequence_narrows_to_subsets(runs, n_ubatch, parts):
    ubatches = split_seq(Batch.from_runs(runs), n_ubatch)
    assert cut(ubatches) == parts
    assert [shape(ubatch) for ubatch in ubatches] == [(True, 1, len(part)) for part in parts]


def test_a_ubatch_keeps_what_its_tokens_were():
    batch = Batch.from_runs(SHARED, token=list(range(50, 56)))
    second = split_equal(batch, 8)[2]
    assert second.pos.tolist() == [2, 2]
    assert second.seq_id.tolist() == [[0, -1], [1, -1]]
    assert second.token.tolist() == [52, 54]
