"""Sequence edits by hand, on two sequences that share a prefix."""

import pytest

from kvmodel.batch import Batch
from kvmodel.errors import CacheAbort, ParamError
from kvmodel.events import Cleared, NothingToDo, QuirkSeen, SeqAdded, SeqCopied, SeqDivided, SeqKept, SeqRemoved
from kvmodel.limits import INT32_MAX
from tests.watched import Watched, shared_prefix


@pytest.fixture
def shared() -> Watched:
    return shared_prefix()


@pytest.mark.parametrize(
    ("seq", "p0", "p1", "row", "freed", "head"),
    [
        (0, 0, -1, "bb..bb....", [2, 3], 2),
        (0, 3, 4, "MMa.bb....", [3], 3),
        (1, 0, 2, "aaaabb....", [], 6),
        (-1, 2, 3, "MM.a.b....", [2, 4], 2),
        (-7, -1, -1, "..........", [0, 1, 2, 3, 4, 5], 0),
        (2, 0, -1, "MMaabb....", [], 6),
        (0, 3, 3, "MMaabb....", [], 6),
    ],
)
def test_seq_rm(shared, seq, p0, p1, row, freed, head):
    assert shared.seq_rm(seq, p0, p1) is True
    assert (shared.row(), shared.head) == (row, head)
    [event] = shared.told()
    assert isinstance(event, SeqRemoved)
    assert event.freed.tolist() == freed
    assert event.seq == max(seq, -1)


def test_head_never_moves_forward_on_removal(shared):
    shared.head = 1
    shared.ledger.head = 1
    shared.seq_rm(0, 2, -1)
    assert (shared.row(), shared.head) == ("MM..bb....", 1)
    shared.told()


def test_seq_cp_shares_cells_and_copies_nothing(shared):
    shared.seq_cp(0, 2, 1, 3)
    assert shared.cells.seqs.tolist()[:6] == [0b11, 0b111, 0b101, 0b1, 0b10, 0b10]
    [event] = shared.told()
    assert isinstance(event, SeqCopied)
    assert (event.cells.tolist(), event.had.tolist()) == ([1, 2], [])
    assert (shared.seq_pos_min(2), shared.seq_pos_max(2)) == (1, 2)


def test_seq_cp_onto_shared_cells_counts_twice(shared):
    shared.seq_cp(0, 1, -1, -1)
    copied, quirk = shared.told()
    assert copied.had.tolist() == [0, 1]
    assert isinstance(quirk, QuirkSeen)
    assert quirk.quirk == "cp-double-count"
    shared.seq_rm(1, -1, -1)
    assert (shared.seq_pos_min(1), shared.seq_pos_max(1)) == (0, 1)
    shared.clear()
    assert (shared.seq_pos_min(1), shared.seq_pos_max(1)) == (-1, -1)


def test_seq_keep(shared):
    shared.seq_keep(1)
    assert (shared.row(), shared.head) == ("bb..bb....", 2)
    [event] = shared.told()
    assert isinstance(event, SeqKept)
    assert (event.freed.tolist(), event.narrowed.tolist()) == ([2, 3], [0, 1])


@pytest.mark.parametrize(
    ("p0", "p1", "shift", "pos", "freed", "head"),
    [
        (2, -1, 5, [0, 1, 7, 8, 2, 3], [], 0),
        (0, -1, -3, [-1, -1, -1, 0, 2, 3], [0, 1, 2], 0),
        (2, -1, -3, [0, 1, -1, 0, 2, 3], [2], 2),
        (0, -1, -(2**31), [-1, -1, -1, -1, 2, 3], [0, 1, 2, 3], 0),
        (9, -1, 5, [0, 1, 2, 3, 2, 3], [], 0),
    ],
)
def test_seq_add(shared, p0, p1, shift, pos, freed, head):
    """Head goes to the first freed cell and to 0 if there is none, even if nothing was hit."""
    shared.seq_add(0, p0, p1, shift)
    assert (shared.cells.pos.tolist()[:6], shared.head) == (pos, head)
    [event] = shared.told()
    assert isinstance(event, SeqAdded)
    assert event.freed.tolist() == freed


def test_a_shared_cell_moves_for_all_its_owners(shared):
    shared.seq_add(0, 0, 2, 10)
    assert [(shared.seq_pos_min(s), shared.seq_pos_max(s)) for s in (0, 1)] == [(2, 11), (2, 11)]


def test_seq_div_leaves_head_and_records_the_wrong_sign(shared):
    shared.seq_div(1, 2, -1, 2)
    assert (shared.cells.pos.tolist()[4:6], shared.k_shift.tolist()[4:6], shared.head) == ([1, 1], [1, 2], 6)
    divided, quirk = shared.told()
    assert isinstance(divided, SeqDivided)
    assert divided.cells.tolist() == [4, 5]
    assert quirk.quirk == "div-shift-sign"


@pytest.mark.parametrize("d", [0, -1, -(2**31)])
def test_seq_div_below_one(shared, d):
    with pytest.raises(CacheAbort, match=f"d is {d}; allowed: 1 or more"):
        shared.seq_div(0, 0, -1, d)
    shared.seq_div(3, 0, -1, d)
    assert shared.row() == "MMaabb...."


@pytest.mark.parametrize(
    ("call", "args"),
    [
        ("seq_cp", (1, 1, 0, -1)),
        ("seq_add", (0, 0, -1, 0)),
        ("seq_add", (0, 3, 3, 4)),
        ("seq_add", (0, INT32_MAX, -1, 4)),
        ("seq_div", (0, 0, -1, 1)),
        ("seq_div", (0, -4, 0, 2)),
    ],
)
def test_calls_that_return_at_once_say_so(shared, call, args):
    getattr(shared, call)(*args)
    [event] = shared.told()
    assert isinstance(event, NothingToDo)
    assert (event.call, shared.head) == (call, 6)


@pytest.mark.parametrize(
    ("call", "args", "told"),
    [
        ("seq_rm", (64, 0, -1), "seq is 64; allowed"),
        ("seq_cp", (0, -1, 0, -1), "dst is -1; allowed: a whole number from 0 to 63"),
        ("seq_cp", (99, 0, 0, -1), "src is 99; allowed: a whole number from 0 to 63"),
        ("seq_keep", (-1,), "seq is -1; allowed: a whole number from 0 to 63"),
        ("seq_add", (0, 0, 2**31, 1), "p1 is 2147483648; allowed: a whole number from -2147483648 to 2147483647"),
        ("seq_add", (0, 0, -1, 0.5), "shift is 0.5; allowed: a whole number"),
        ("seq_div", (0, "0", -1, 2), "p0 is '0'; allowed: a whole number"),
        ("seq_pos_min", (64,), "seq is 64; allowed: a whole number from 0 to 63"),
        ("find_slot", (-1,), "n_tokens is -1; allowed: a whole number from 0"),
        ("init_batch", (Batch.from_runs([(0, 1, (0,))]), 0), "n_ubatch is 0; allowed: a whole number from 1"),
    ],
)
def test_a_wrong_argument_changes_nothing(shared, call, args, told):
    with pytest.raises(ParamError) as caught:
        getattr(shared, call)(*args)
    assert told in str(caught.value)
    assert shared.row() == "MMaabb...."


def test_clear(shared):
    shared.clear(False)
    [event] = shared.told()
    assert isinstance(event, Cleared)
    assert (event.n_cells, event.data, shared.row(), shared.head, shared.n_kv) == (10, False, "." * 10, 0, 1)
