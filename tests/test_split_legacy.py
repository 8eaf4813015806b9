"""The splits of the older generation, worked by hand; what the recordings hold is replayed elsewhere."""

import pytest

from kvmodel.batch import Batch
from kvmodel.split_legacy import SPLITS, split_equal, split_seq

Runs = list[tuple[int, int, tuple[int, ...]]]


def runs_of(split, runs: Runs, n_ubatch: int) -> list[Runs]:
    return [ubatch.runs for ubatch in split(Batch.from_runs(runs), n_ubatch)]


def test_equal_takes_the_shortest_sequences_first_and_cuts_the_others_to_their_length():
    runs = [(0, 5, (0,)), (0, 2, (1,)), (0, 3, (2,))]
    ubatches = split_equal(Batch.from_runs(runs), 100)
    assert [ubatch.runs for ubatch in ubatches] == [
        [(0, 2, (1,)), (0, 2, (2,)), (0, 2, (0,))],
        [(2, 1, (2,)), (2, 1, (0,))],
        [(3, 2, (0,))],
    ]
    assert [(ubatch.n_seqs, ubatch.n_seq_tokens, ubatch.equal_seqs) for ubatch in ubatches] == [
        (3, 2, True),
        (2, 1, True),
        (1, 2, True),
    ]
    assert ubatches[0].idx.tolist() == [5, 6, 7, 8, 0, 1]


def test_equal_stops_before_one_more_sequence_would_be_too_many():
    runs = [(0, 2, (0,)), (0, 2, (1,)), (0, 2, (2,))]
    assert runs_of(split_equal, runs, 5) == [[(0, 2, (2,)), (0, 2, (1,))], [(0, 2, (0,))]]
    assert runs_of(split_equal, runs, 1) == [[(k, 1, (seq,))] for seq in (2, 1, 0) for k in (0, 1)]


def test_equal_leaves_a_shared_prompt_alone_and_takes_it_first():
    runs = [(4, 2, (0,)), (4, 2, (1,)), (0, 3, (0, 1))]
    assert runs_of(split_equal, runs, 8) == [[(0, 3, (0, 1))], [(4, 2, (1,)), (4, 2, (0,))]]
    assert runs_of(split_equal, runs, 2) == [
        [(0, 2, (0, 1))],
        [(2, 1, (0, 1))],
        [(4, 2, (1,))],
        [(4, 2, (0,))],
    ]


def test_the_order_of_ids_tells_groups_apart():
    runs = [(0, 1, (0, 1)), (1, 1, (1, 0)), (2, 1, (0, 1))]
    assert runs_of(split_seq, runs, 8) == [[(1, 1, (1, 0))], [(0, 1, (0, 1)), (2, 1, (0, 1))]]


@pytest.mark.parametrize("split", [split_equal, split_seq])
def test_tokens_of_one_sequence_are_sorted_by_position_and_ties_keep_their_order(split):
    [ubatch] = split(Batch.from_runs([(7, 1, (0,)), (3, 2, (0,)), (3, 1, (0,))]), 8)
    assert (ubatch.idx.tolist(), ubatch.pos.tolist()) == ([1, 3, 2, 0], [3, 3, 4, 7])


def test_by_sequence_takes_one_group_at_a_time_the_last_first():
    runs = [(0, 3, (0,)), (0, 5, (1,)), (0, 1, (0, 1))]
    assert runs_of(split_seq, runs, 2) == [
        [(0, 1, (0, 1))],
        [(0, 2, (0,))],
        [(2, 1, (0,))],
        [(0, 2, (1,))],
        [(2, 2, (1,))],
        [(4, 1, (1,))],
    ]


def test_splits_have_their_names():
    assert list(SPLITS) == ["simple", "equal", "seq"]
    assert runs_of(SPLITS["simple"], [(9, 2, (0,)), (0, 2, (1,))], 3) == [[(9, 2, (0,)), (0, 1, (1,))], [(1, 1, (1,))]]
