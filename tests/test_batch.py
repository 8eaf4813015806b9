"""Batches: how they are built, completed and refused."""

import numpy as np
import pytest

from kvmodel.batch import Batch, UBatch
from kvmodel.checks import check, complete
from kvmodel.errors import BatchError, CacheAbort, ParamError
from kvmodel.limits import INT32_MAX, MAX_BATCH

SPANS = {0: (0, 9), 1: (4, 9), 2: (0, 9)}
"""What the cache holds: first and last position of three sequences."""


def pos_min(seq: int) -> int:
    return SPANS.get(seq, (-1, -1))[0]


def pos_max(seq: int) -> int:
    return SPANS.get(seq, (-1, -1))[1]


def refused(runs, **how) -> BatchError:
    with pytest.raises(BatchError) as caught:
        check(complete(Batch.from_runs(runs, **how), pos_max), pos_min, pos_max)
    return caught.value


def test_runs_become_arrays_and_runs_again():
    runs = [(3, 2, (1,)), (9, 1, (1, 0))]
    batch = Batch.from_runs(runs, token=[7, 8, 9])
    assert batch.positions.tolist() == [3, 4, 9]
    assert batch.seq_id.tolist() == [[1, -1], [1, -1], [1, 0]]
    assert batch.n_seq_id.tolist() == [1, 1, 2]
    assert batch.token.tolist() == [7, 8, 9]
    assert batch.seq_set.tolist() == [0b10, 0b10, 0b11]
    assert batch.runs == runs


def test_runs_are_maximal_and_keep_the_order_of_ids():
    assert Batch.from_runs([(0, 2, (0,)), (2, 1, (0,)), (3, 1, (1,)), (4, 1, (0, 1)), (5, 1, (1, 0))]).runs == [
        (0, 3, (0,)),
        (3, 1, (1,)),
        (4, 1, (0, 1)),
        (5, 1, (1, 0)),
    ]


def test_an_id_named_twice_stays_named_twice():
    batch = Batch.from_runs([(0, 1, (5, 5))])
    assert (batch.runs, batch.seq_set.tolist()) == ([(0, 1, (5, 5))], [1 << 5])


@pytest.mark.parametrize(
    ("runs", "told"),
    [
        ([(-1, 1, (0,))], "pos is -1; allowed: 0 to"),
        ([(INT32_MAX, 1, (0,))], f"pos is {INT32_MAX}; allowed: 0 to {INT32_MAX - 1}"),
        ([(0, -2, (0,))], "n is -2; allowed: a whole number from 0"),
        ([(0, MAX_BATCH + 1, (0,))], f"allowed: a whole number from 0 to {MAX_BATCH}"),
        ([(0, MAX_BATCH, (0,)), (0, 1, (1,))], f"n_tokens is {MAX_BATCH + 1}"),
    ],
)
def test_a_wrong_run_is_told(runs, told):
    with pytest.raises(ParamError) as caught:
        Batch.from_runs(runs)
    assert told in str(caught.value)


def test_a_serial_number_for_every_token():
    with pytest.raises(ParamError, match="token is '1 entries'; allowed: one for each of the 2 tokens"):
        Batch.from_runs([(0, 2, (0,))], token=[1])


def test_missing_positions_continue_each_sequence():
    batch = Batch.from_runs([(0, 2, (0,)), (0, 1, (7,)), (0, 2, (0, 3)), (0, 1, (3,))], auto_pos=True)
    assert complete(batch, pos_max).positions.tolist() == [10, 11, 0, 12, 13, 14]


def test_without_memory_missing_positions_start_at_zero():
    batch = Batch.from_runs([(0, 2, (0,)), (0, 1, (1,))], auto_pos=True)
    assert complete(batch, None).positions.tolist() == [0, 1, 0]


def test_a_generated_position_that_does_not_fit_is_told():
    batch = Batch.from_runs([(0, 2, (0,))], auto_pos=True)
    with pytest.raises(CacheAbort, match=f"position {INT32_MAX + 1}; allowed: up to {INT32_MAX}"):
        complete(batch, lambda _: INT32_MAX - 1)


def test_positions_must_be_completed_before_use():
    batch = Batch.from_runs([(0, 1, (0,))], auto_pos=True)
    with pytest.raises(ParamError, match=r"pos is None; .*complete"):
        UBatch.plain(batch)


@pytest.mark.parametrize("runs", [[(10, 3, (0,))], [(0, 3, (9,))], [(10, 2, (0, 2))], [(10, 1, (0,)), (10, 1, (0,))]])
def test_what_follows_the_cache_is_accepted(runs):
    batch = Batch.from_runs(runs)
    check(complete(batch, pos_max), pos_min, pos_max)
    assert complete(batch, pos_max) is batch


@pytest.mark.parametrize(("start", "embd", "kind"), [(10, False, ""), (9, True, ""), (10, True, "")])
def test_embeddings_may_repeat_the_newest_position(start, embd, kind):
    check(Batch.from_runs([(start, 1, (0,))], embd=embd), pos_min, pos_max)


@pytest.mark.parametrize(("start", "embd"), [(9, False), (11, False), (0, False), (8, True), (11, True)])
def test_a_start_that_does_not_follow(start, embd):
    error = refused([(start, 1, (0,))], embd=embd)
    assert (error.kind, error.seq, error.stored, error.start) == ("not_consecutive", 0, 9, start)
    assert f"Y = {start}" in str(error)
    assert "X = 9" in str(error)
    assert "sequence 0 " in str(error)


def test_a_gap():
    error = refused([(10, 2, (0,)), (13, 1, (0,))])
    assert (error.kind, error.seq, error.start) == ("gap", 0, 10)
    assert "from position 10 to 13 in the batch, but leaves out 12" in str(error)


def test_order_of_tokens_makes_no_gap():
    check(Batch.from_runs([(11, 1, (0,)), (10, 1, (0,))]), pos_min, pos_max)


def test_sequences_that_share_a_token_must_span_the_same_positions():
    error = refused([(10, 1, (0, 1))])
    assert (error.kind, error.seq) == ("coupled_diverged", 1)
    assert "positions 4 to 9 and positions 0 to 9" in str(error)
    assert "no positions" in str(refused([(10, 1, (0, 8))]))


@pytest.mark.parametrize(
    ("runs", "seq", "told"),
    [
        ([(10, 1, (0,)), (10, 1, (0, 64))], 64, "seq_id[1][1] is 64; sequence ids go from 0 to 63"),
        ([(10, 1, (-1,))], -1, "seq_id[0][0] is -1"),
        ([(10, 1, (-(2**31),))], -(2**31), "seq_id[0][0] is -2147483648"),
        ([(10, 1, (10**12,))], INT32_MAX, "sequence ids go from 0 to 63"),
        ([(10, 1, (0,)), (11, 1, ())], -1, "token 1 has no sequence id"),
    ],
)
def test_a_bad_id(runs, seq, told):
    error = refused(runs)
    assert (error.kind, error.seq) == ("bad_seq_id", seq)
    assert told in str(error)


def test_an_empty_batch():
    assert refused([]).kind == "empty"


@pytest.mark.parametrize(
    ("runs", "kind", "seq"),
    [
        ([(99, 1, (0,)), (0, 1, (77,))], "bad_seq_id", 77),
        ([(10, 1, (2,)), (12, 1, (2,)), (99, 1, (0,))], "not_consecutive", 0),
        ([(99, 1, (2,)), (10, 1, (0,)), (12, 1, (0,))], "gap", 0),
        ([(98, 1, (0,)), (99, 2, (0,)), (101, 9, (0,))], "not_consecutive", 0),
        ([(10, 1, (0, 1)), (12, 1, (1,))], "gap", 1),
        ([(10, 1, (0, 1)), (99, 1, (2,))], "not_consecutive", 2),
    ],
)
def test_the_first_broken_rule_is_told(runs, kind, seq):
    """Ids first; then sequence by sequence, its start before its gaps; shared tokens last."""
    error = refused(runs)
    assert (error.kind, error.seq) == (kind, seq)


def test_a_ubatch_counts_its_sequences():
    ubatch = UBatch.plain(Batch.from_runs([(0, 2, (3, 1)), (0, 1, (63,))]))
    assert (ubatch.n_seqs_unq, ubatch.first_seq.tolist()) == (3, [3, 3, 63])
    assert np.array_equal(ubatch.idx, [0, 1, 2])


@pytest.mark.parametrize(
    "run", [("x", 2, [0]), (float("nan"), 2, [0]), (1.5, 2, [0]), (0, 2, None), (0, 2, [1.5]), (0, 2), None]
)
def test_a_run_of_other_things_is_refused(run: object) -> None:
    with pytest.raises(ParamError, match="run is"):
        Batch.from_runs([run])


def test_the_ids_of_a_token_are_bounded() -> None:
    with pytest.raises(ParamError, match="ids of a token is 129"):
        Batch.from_runs([(0, 1, list(range(129)))])
