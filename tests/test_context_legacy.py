"""Decode calls around the older caches: one ubatch at a time, return codes, roll-back, arguments."""

from typing import Any

import pytest

from kvmodel.errors import CacheAbort, ParamError
from kvmodel.events import (
    BatchRefused,
    BatchSplit,
    ComputeFailed,
    Decoded,
    DefragApplied,
    DefragPlanned,
    QuirkSeen,
    SeqRemoved,
    ShiftApplied,
    SlotSearched,
    UBatchStored,
)
from tests.bench_context_legacy import Bench

INT32_MAX = 2**31 - 1


def test_each_ubatch_is_stored_before_the_next_one_is_sought() -> None:
    bench = Bench(64, context={"n_ubatch": 8})
    result = bench.decode((0, 12, (0,)))
    assert (result.ret, [len(ubatch) for ubatch in result.ubatches]) == (0, [8, 4])
    assert [(placed["kv"].head, placed["kv"].n_kv) for placed in result.placed] == [(0, 32), (8, 32)]
    assert bench.kinds() == [BatchSplit, SlotSearched, UBatchStored, SlotSearched, UBatchStored, Decoded]
    assert (bench.cache.head, bench.cache.n) == (12, 32)


def test_the_view_grows_with_the_cells() -> None:
    bench = Bench(64, context={"n_ubatch": 32})
    result = bench.decode((0, 33, (0,)))
    assert [placed["kv"].n_kv for placed in result.placed] == [32, 64]


def test_no_position_is_checked() -> None:
    bench = Bench()
    assert bench.decode((7, 2, (0,))).ret == 0
    assert bench.decode((3, 2, (0,)), (90, 1, (0,))).ret == 0
    assert bench.pos(6) == [7, 8, 3, 4, 90, -1]


def test_missing_positions_go_on_after_the_largest_one_of_any_sequence() -> None:
    bench = Bench()
    bench.decode((0, 3, (0,)), (10, 1, (1,)))
    assert bench.decode((0, 2, (0,)), (0, 1, (1,)), auto_pos=True).ubatches[0].pos.tolist() == [11, 12, 13]


def test_missing_positions_must_fit() -> None:
    bench = Bench()
    bench.decode((INT32_MAX - 1, 1, (0,)))
    assert bench.decode((0, 1, (0,)), auto_pos=True).ubatches[0].pos.tolist() == [INT32_MAX]
    with pytest.raises(CacheAbort, match="the batch would continue to position 2147483648; allowed: up to 2147483647"):
        bench.decode((0, 1, (0,)), auto_pos=True)


def test_a_decode_may_start_early() -> None:
    """15 of 20 cells were filled; with 2 left in use, head 15 is more than 2 + 2 x 6."""
    bench = Bench(20)
    bench.decode((0, 15, (0,)))
    bench.cache.seq_rm(0, 2, -1)
    bench.cache.head = 15
    assert bench.decode((2, 6, (0,))).placed[0]["kv"].head == 2
    bench.cache.seq_rm(0, 2, -1)
    bench.cache.head = 14
    assert bench.decode((2, 6, (0,))).placed[0]["kv"].head == 14


def test_pending_work_comes_first() -> None:
    bench = Bench()
    bench.decode((0, 6, (0,)))
    bench.cache.seq_add(0, 2, -1, -2)
    bench.cache.seq_rm(0, 0, 1)
    bench.context.defrag()
    assert bench.pos(7) == [-1, 1, -1, 1, 2, 3, -1]
    assert bench.decode((4, 1, (0,))).ret == 0
    assert bench.kinds() == [
        BatchSplit,
        ShiftApplied,
        DefragPlanned,
        DefragApplied,
        SlotSearched,
        UBatchStored,
        Decoded,
    ]
    assert bench.pos(7) == [3, 1, 2, 1, 4, -1, -1]
    assert not bench.cache.has_shift
    assert not bench.cache.do_defrag


def test_pending_work_can_be_left_pending() -> None:
    bench = Bench()
    bench.decode((0, 4, (0,)))
    bench.cache.seq_add(0, 0, -1, 5)
    bench.cache.seq_rm(0, 7, -1)
    bench.decode((0, 1, (1,)), auto_update=False)
    assert (bench.cache.arrays["delta"][:5].tolist(), bench.cache.has_shift) == ([5, 5, 5, 5, 0], True)
    assert bench.quirks() == ["stale-delta"]


def test_a_later_ubatch_without_slot_leaves_the_earlier_ones() -> None:
    """Cells 0-5 fill; the next search wraps at cell 6 and at cell 3, and gives up at cell 0: head stays behind it."""
    bench = Bench(8, context={"n_ubatch": 6})
    result = bench.decode((0, 12, (0,)))
    assert (result.ret, len(result.ubatches), len(result.placed)) == (1, 1, 1)
    assert (bench.pos(8), bench.cache.used, bench.cache.head) == ([0, 1, 2, 3, 4, 5, -1, -1], 6, 1)
    assert bench.quirks() == ["partial-decode"]
    quirk = next(event for event in bench.events if isinstance(event, QuirkSeen))
    assert quirk.detail == "the ubatch without a slot leaves 1 ubatch before it in the cache"
    assert bench.events[-1].ret == 1


def test_a_first_ubatch_without_slot_leaves_nothing_but_head() -> None:
    """The search stops at cells 1, 2, 3 and 4, wraps at cell 5 and stops at cell 1 again."""
    bench = Bench(8)
    bench.decode((0, 5, (0,)))
    bench.cache.seq_rm(0, 0, 1)
    assert (bench.decode((5, 4, (0,))).ret, bench.cache.head) == (1, 2)
    assert bench.quirks() == []


def test_a_failed_computation_takes_cells_for_positions() -> None:
    """Sequence 1 sits at positions 4-7 in cells 0-3; the two ubatches of sequence 0 fill cells 4-7 and fail there."""
    bench = Bench(8, context={"n_ubatch": 2})
    bench.decode((4, 4, (1,)), n_ubatch=4)
    result = bench.decode((0, 4, (0,)), fail_at=1)
    assert (result.ret, len(result.ubatches)) == (-3, 2)
    assert bench.kinds()[-6:] == [UBatchStored, ComputeFailed, SeqRemoved, SeqRemoved, QuirkSeen, Decoded]
    assert (bench.pos(8), bench.cache.used) == ([-1] * 4 + [0, 1, 2, 3], 4)
    assert (bench.cache.head, bench.cache.n) == (0, 8)
    assert bench.quirks() == ["restore-by-index"]


def test_a_failed_computation_rolls_head_and_view_back() -> None:
    bench = Bench(64)
    bench.decode((0, 30, (0,)))
    assert bench.decode((30, 4, (0,)), fail_at=0).ret == -3
    assert (bench.cache.head, bench.cache.n, bench.cache.used, bench.quirks()) == (30, 32, 30, [])
    [stored] = [event for event in bench.events if isinstance(event, UBatchStored)]
    assert (stored.begin, stored.head, stored.n_kv) == (30, 30, 64)


@pytest.mark.parametrize(("fail_with", "ret"), [("aborted", 2), ("alloc_failed", -2), ("failed", -3)])
def test_a_failure_has_the_return_code_of_its_kind(fail_with: str, ret: int) -> None:
    bench = Bench()
    assert bench.decode((0, 2, (0,)), fail_at=0, fail_with=fail_with).ret == ret
    assert bench.events[-1].ret == ret


def test_a_failure_at_a_ubatch_that_is_not_reached_does_not_happen() -> None:
    assert Bench().decode((0, 2, (0,)), fail_at=1).ret == 0


def test_an_empty_batch_is_refused() -> None:
    bench = Bench()
    result = bench.decode()
    assert (result.ret, result.message) == (-1, "the batch has no tokens; at least 1 is needed")
    assert bench.kinds() == [BatchRefused, Decoded]


@pytest.mark.parametrize(
    ("context", "n", "message"),
    [
        ({"n_batch": 4}, 5, "the batch has 5 tokens; allowed: n_batch = 4 at most"),
        ({"n_ubatch": 4, "causal_attn": False}, 5, "allowed without causal attention: n_ubatch = 4 at most"),
    ],
)
def test_a_batch_that_is_too_large_ends_the_process(context: dict[str, Any], n: int, message: str) -> None:
    bench = Bench(context=context)
    assert bench.decode((0, 4, (0,))).ret == 0
    with pytest.raises(CacheAbort, match=message):
        bench.decode((4, n, (0,)))
    assert bench.cache.used == 4


def test_a_split_by_sequences_needs_sequences() -> None:
    bench = Bench()
    assert bench.decode((0, 1, ())).ret == 0
    for split in ("equal", "seq"):
        with pytest.raises(CacheAbort, match="token 2 has no sequence id"):
            bench.decode((0, 2, (0,)), (0, 1, ()), split=split)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "best"}, "split is 'best'; allowed: simple, equal, seq"),
        ({"fail_with": "x"}, "fail_with is 'x'; allowed: aborted, alloc_failed, failed"),
        ({"n_ubatch": 0}, "n_ubatch is 0; allowed: a whole number from 1 to 65536"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParamError, match=message):
        Bench().decode((0, 1, (0,)), **arguments)


def test_a_split_can_be_chosen() -> None:
    bench = Bench()
    result = bench.decode((0, 3, (0,)), (0, 2, (1,)), split="equal")
    assert [ubatch.runs for ubatch in result.ubatches] == [[(0, 2, (1,)), (0, 2, (0,))], [(2, 1, (0,))]]
    assert bench.events[0].how == "equal"
