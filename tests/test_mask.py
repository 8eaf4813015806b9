"""Masks by hand, and large ones against the rule asked cell by cell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.errors import ParamError
from kvmodel.limits import INT32_MAX
from kvmodel.mask import MaskReason, kq_mask, mask_reasons, masked_swa, pos_buckets
from kvmodel.types import SWAType
from tests.reference import RefCells, Window, bucket, why_hidden

LETTERS = {
    MaskReason.VISIBLE: "x",
    MaskReason.EMPTY: ".",
    MaskReason.OTHER_SEQ: "s",
    MaskReason.FUTURE: ">",
    MaskReason.OUTSIDE: "<",
    MaskReason.PADDING: "p",
}


def int32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def drawn(pos, owners, queries, **rules) -> list[str]:
    """Reasons as letters, one string a query; owners are bit sets, queries (position, sequence)."""
    query_pos, query_seq = (int32(*column) for column in zip(*queries, strict=True))
    codes = mask_reasons(int32(*pos), np.array(owners, np.uint64), query_pos, query_seq, **rules)
    return ["".join(LETTERS[MaskReason(code)] for code in row) for row in codes.tolist()]


def visible(pos, owners, queries, **rules) -> list[str]:
    """The mask as letters: x for 0, - for minus infinity."""
    query_pos, query_seq = (int32(*column) for column in zip(*queries, strict=True))
    mask = kq_mask(int32(*pos), np.array(owners, np.uint64), query_pos, query_seq, **rules)
    assert set(np.unique(mask).tolist()) <= {0.0, -np.inf}
    return ["".join("-x"[value == 0] for value in row) for row in mask[: len(queries)].tolist()]


FIVE_OF_TEN = ([0, 1, 2, 3, 4, -1, -1, -1, -1, -1], [1] * 5 + [0] * 5, [(2, 0), (3, 0), (4, 0)])
"""Two tokens in a cache of ten cells and a ubatch of three, as the comment in set_input_kq_mask draws it."""


def test_causal_shows_what_came_before():
    assert visible(*FIVE_OF_TEN) == ["xxx-------", "xxxx------", "xxxxx-----"]
    assert drawn(*FIVE_OF_TEN) == ["xxx>>.....", "xxxx>.....", "xxxxx....."]


def test_without_causality_the_whole_sequence_is_visible():
    assert visible(*FIVE_OF_TEN, causal=False) == ["xxxxx-----"] * 3
    assert drawn(*FIVE_OF_TEN, causal=False) == ["xxxxx....."] * 3


def test_a_query_sees_its_first_sequence_only():
    pos, owners = [0, 1, 0, 1, -1], [0b01, 0b11, 0b10, 0b10, 0]
    assert drawn(pos, owners, [(1, 0), (1, 1), (1, 63)]) == ["xxss.", "sxxx.", "ssss."]
    assert visible(pos, owners, [(1, 0), (1, 1), (1, 63)]) == ["xx---", "-xxx-", "-----"]


def test_a_query_without_a_sequence_sees_nothing():
    assert visible([0, 1], [1, 0], [(1, -1)]) == ["--"]
    assert drawn([0, 1, -1], [1, 0, 0], [(1, -1)]) == ["ss."]


@pytest.mark.parametrize(
    ("rules", "rows"),
    [
        ({"swa_type": SWAType.STANDARD, "n_swa": 3}, ["xxx>>>>>", "<<<xxx>>", "<<<<<xxx"]),
        ({"swa_type": SWAType.STANDARD, "n_swa": 1}, ["<<x>>>>>", "<<<<<x>>", "<<<<<<<x"]),
        ({"swa_type": SWAType.STANDARD, "n_swa": 8}, ["xxx>>>>>", "xxxxxx>>", "xxxxxxxx"]),
        ({"swa_type": SWAType.CHUNKED, "n_swa": 3}, ["xxx>>>>>", "<<<xxx>>", "<<<<<<xx"]),
        ({"swa_type": SWAType.CHUNKED, "n_swa": 4}, ["xxx>>>>>", "<<<<xx>>", "<<<<xxxx"]),
        ({"swa_type": SWAType.STANDARD, "n_swa": 3, "causal": False}, ["xxxxxxxx", "<<<xxxxx", "<<<<<xxx"]),
    ],
)
def test_windows_and_chunks(rules, rows):
    pos, owners, queries = list(range(8)), [1] * 8, [(2, 0), (5, 0), (7, 0)]
    assert drawn(pos, owners, queries, **rules) == rows
    assert visible(pos, owners, queries, **rules) == [row.translate(str.maketrans("<>.s", "----")) for row in rows]


def test_the_first_rule_that_hides_a_cell_is_told():
    """Empty, other sequence, future, window: in this order."""
    rules = {"swa_type": SWAType.STANDARD, "n_swa": 2}
    assert drawn([-1, 9, 0, 9, 0, 5], [0, 2, 2, 1, 1, 1], [(5, 0)], **rules) == [".ss><x"]


def test_masked_swa_by_distance_and_by_chunk():
    assert masked_swa(int32(0, 1, 2, 3), 4, SWAType.STANDARD, 3).tolist() == [True, True, False, False]
    assert masked_swa(int32(0, 3, 4, 7), 7, SWAType.CHUNKED, 4).tolist() == [True, True, False, False]
    assert masked_swa(int32(0, 1), 9, SWAType.NONE, 0).tolist() == [False, False]


@pytest.mark.parametrize(("n", "rows"), [(1, 64), (64, 64), (65, 128)])
def test_rows_are_padded_to_64(n, rows):
    queries = int32(*range(n)), np.zeros(n, np.int32)
    cells = int32(0), np.array([1], np.uint64)
    mask = kq_mask(*cells, *queries)
    assert mask.shape == (rows, 1)
    assert (mask[:n] == 0).all()
    assert np.isneginf(mask[n:]).all()
    codes = mask_reasons(*cells, *queries, padding=True)
    assert codes.shape == (rows, 1)
    assert (codes[n:] == MaskReason.PADDING).all()
    assert mask_reasons(*cells, *queries).shape == (n, 1)


def test_alibi_carries_minus_the_distance():
    cells = int32(0, 3, 9, -1, 4), np.array([1, 1, 1, 0, 2], np.uint64)
    row = kq_mask(*cells, int32(4), int32(0), use_alibi=True)[0].tolist()
    assert row == [-4.0, -1.0, -np.inf, -np.inf, -np.inf]
    row = kq_mask(*cells, int32(4), int32(0), use_alibi=True, causal=False)[0].tolist()
    assert row == [-4.0, -1.0, -5.0, -np.inf, -np.inf]


@pytest.mark.parametrize("make", [kq_mask, mask_reasons])
def test_a_mask_that_takes_too_much_memory_is_refused(make):
    n = 1 << 17
    pos, seqs, query = np.zeros(n, np.int32), np.ones(n, np.uint64), np.zeros(n, np.int32)
    with pytest.raises(ParamError, match=f"mask is '{n} x {n}'; allowed: at most 1073741824 bytes"):
        make(pos, seqs, query, query)


@given(st.data())
def test_many_queries_against_the_rule(data):
    """Up to 140 queries, of one sequence in a row or of several in turn, ascending or anyhow."""
    n, n_seq = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 3))
    cells = RefCells(n)
    for i in data.draw(st.sets(st.integers(0, n - 1))):
        cells.pos_set(i, data.draw(st.integers(0, 60)))
        for seq in data.draw(st.sets(st.integers(0, n_seq - 1))):
            cells.seq_add(i, seq)
    first, step = data.draw(st.integers(0, 60)), data.draw(st.sampled_from([1, 1, 7, -1]))
    count = data.draw(st.sampled_from([1, 5, 33, 64, 140]))
    query_pos = [(first + k * step) % 90 for k in range(count)]
    query_seq = [k % n_seq if data.draw(st.just(n_seq > 1)) else 0 for k in range(count)]
    window = data.draw(st.sampled_from([Window(), Window("standard", 5), Window("chunked", 7), Window("standard", 40)]))
    causal = data.draw(st.booleans())
    rules = {"causal": causal, "swa_type": SWAType(window.kind), "n_swa": window.n}
    owners = [sum(1 << seq for seq in seqs) for seqs in cells.seqs]
    queries = list(zip(query_pos, query_seq, strict=True))
    expected = [
        "".join("-x"[why_hidden(cells, i, pos, seq, window, causal) == "visible"] for i in range(n))
        for pos, seq in queries
    ]
    assert visible(cells.pos, owners, queries, **rules) == expected


BUCKET_STARTS = {1: 1, 8: 8, 15: 15, 16: 16, 17: 19, 18: 21, 20: 27, 24: 46, 28: 77, 31: 113}
"""With 32 buckets: 16 of one distance each, then bucket b begins at 16 x 8 ** ((b - 16) / 16), rounded up."""


@pytest.mark.parametrize("b", BUCKET_STARTS)
def test_buckets_begin_where_the_formula_says(b):
    start = BUCKET_STARTS[b]
    assert pos_buckets(int32(1000 - start, 1001 - start), int32(1000), 32).tolist() == [[b, b - 1]]


def test_buckets_look_back_only_and_end_at_the_last():
    assert pos_buckets(int32(5, 6, 900, -1), int32(5), 32).tolist() == [[0, 0, 0, 6]]
    assert pos_buckets(int32(0), int32(128, 129, 100_000), 32).tolist() == [[31], [31], [31]]


@given(st.integers(-1, INT32_MAX - 1), st.integers(0, INT32_MAX - 1), st.sampled_from([2, 3, 8, 32, 33, 255]))
def test_buckets_against_the_formula(cell, query, n_buckets):
    assert pos_buckets(int32(cell), int32(query), n_buckets).tolist() == [[bucket(cell, query, n_buckets)]]


@pytest.mark.parametrize("n_buckets", [-1, 0, 1, 256, 257])
def test_bucket_counts_that_upstream_divides_by_zero_for(n_buckets):
    with pytest.raises(ParamError, match=f"n_rel_attn_bkts is {n_buckets}; allowed: 2 to 255"):
        pos_buckets(int32(0), int32(200), n_buckets)
