"""Decode calls: checks, pending updates, the retry after a defrag, return codes, roll-back.

Return codes and their order are those of `llama_context::decode`; figures that come from a recorded run name it.
"""

from typing import Any

import pytest

from kvmodel.batch import Batch
from kvmodel.caches.unified import UnifiedCache
from kvmodel.context import Context, ContextParams, DecodeResult
from kvmodel.errors import CacheAbort, ParamError
from kvmodel.events import (
    BatchChecked,
    BatchRefused,
    BatchSplit,
    ComputeFailed,
    Decoded,
    DefragApplied,
    DefragDecided,
    DefragPlanned,
    Event,
    NoUpdate,
    PrepareFailed,
    Retried,
    SeqRemoved,
    ShiftApplied,
    SlotSearched,
    UBatchStored,
)
from kvmodel.types import CacheParams, SWAType


class Bench:
    """A cache in its context, and what both tell."""

    def __init__(self, kv_size: int = 32, *, context: dict[str, Any] | None = None, **cache: Any) -> None:
        self.events: list[Event] = []
        self.cache = UnifiedCache(CacheParams(kv_size=kv_size, **{"n_seq_max": 4} | cache), self.events.append)
        self.context = Context(self.cache, ContextParams(**(context or {})), self.events.append)

    def decode(self, *runs: tuple[int, int, tuple[int, ...]], **more: Any) -> DecodeResult:
        self.events.clear()
        return self.context.decode(Batch.from_runs(runs), **more)

    def kinds(self) -> list[type]:
        return [type(event) for event in self.events]

    def pos(self, n: int) -> list[int]:
        return self.cache.arrays["pos"][:n].tolist()


def test_a_decode_goes_through_its_stages_in_order() -> None:
    bench = Bench(context={"n_ubatch": 8})
    result = bench.decode((0, 12, (0,)))
    assert (result.ret, [len(ubatch) for ubatch in result.ubatches]) == (0, [8, 4])
    assert [placed["kv"].head for placed in result.placed] == [0, 8]
    assert bench.kinds() == [
        BatchChecked,
        BatchSplit,
        SlotSearched,
        SlotSearched,
        UBatchStored,
        UBatchStored,
        Decoded,
    ]


def test_missing_positions_continue_every_sequence() -> None:
    bench = Bench()
    bench.decode((0, 3, (0,)), (0, 1, (1,)))
    result = bench.context.decode(Batch.from_runs([(0, 2, (1,)), (0, 1, (0,))], auto_pos=True))
    assert result.ubatches[0].pos.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        ((12, 2, (0,)), "not_consecutive"),
        ((9, 3, (0,)), "not_consecutive"),
        ((10, 1, (0, 1)), "coupled_diverged"),
        ((10, 1, (64,)), "bad_seq_id"),
    ],
)
def test_a_refused_batch_returns_minus_1_and_changes_nothing(run: tuple[int, int, tuple[int, ...]], kind: str) -> None:
    bench = Bench(kv_size=128)
    bench.decode((0, 10, (0,)), (10, 1, (2,)))
    bench.cache.seq_add(2, 0, -1, 1)
    before = {name: values.tolist() for name, values in bench.cache.arrays.items()}
    result = bench.decode(run)
    assert result.ret == -1
    assert bench.kinds() == [BatchRefused, Decoded]
    refused = bench.events[0]
    assert isinstance(refused, BatchRefused)
    assert (refused.kind, refused.message) == (kind, result.message)
    assert {name: values.tolist() for name, values in bench.cache.arrays.items()} == before
    assert bench.cache.has_shift


def test_a_refusal_gives_x_and_y() -> None:
    """The recorded run y-equals-x-plus-1."""
    bench = Bench(kv_size=128)
    bench.decode((0, 10, (0,)))
    message = bench.decode((12, 2, (0,))).message
    assert "sequence 0" in message
    assert "Y = 12" in message
    assert "X = 9" in message


def test_an_empty_batch_is_refused() -> None:
    assert Bench().decode().ret == -1


def test_embeddings_may_repeat_the_newest_position() -> None:
    bench = Bench()
    bench.decode((0, 4, (0,)))
    assert bench.context.decode(Batch.from_runs([(3, 2, (0,))], embd=True)).ret == 0
    assert bench.context.decode(Batch.from_runs([(3, 2, (0,))])).ret == -1


def test_a_batch_larger_than_n_batch_aborts() -> None:
    bench = Bench(context={"n_batch": 8})
    with pytest.raises(CacheAbort, match="the batch has 9 tokens; allowed: n_batch = 8 at most"):
        bench.decode((0, 9, (0,)))
    assert bench.pos(2) == [-1, -1]


def test_checks_come_before_the_size() -> None:
    bench = Bench(context={"n_batch": 8})
    bench.decode((0, 2, (0,)))
    assert bench.decode((5, 9, (0,))).ret == -1


def test_attention_that_sees_the_future_needs_one_ubatch() -> None:
    bench = Bench(context={"n_ubatch": 4, "causal_attn": False})
    assert bench.decode((0, 4, (0,))).ret == 0
    with pytest.raises(CacheAbort, match="the batch has 5 tokens; allowed without causal attention: n_ubatch = 4"):
        bench.decode((4, 5, (0,)))


def test_a_pending_shift_is_applied_before_slots_are_sought() -> None:
    """The recorded run chat-context-shift: 128 cells, ubatches of 16."""
    bench = Bench(kv_size=128, context={"n_ubatch": 16})
    bench.decode((0, 60, (0,)))
    bench.decode((60, 60, (0,)))
    bench.cache.seq_rm(0, 8, 64)
    bench.cache.seq_add(0, 64, 120, -56)
    assert bench.decode((64, 8, (0,))).placed[0]["kv"].head == 8
    kinds = bench.kinds()
    assert kinds.index(ShiftApplied) < kinds.index(SlotSearched)
    shift = next(event.k_shift for event in bench.events if isinstance(event, ShiftApplied))
    assert shift.tolist() == [0] * 64 + [-56] * 56 + [0] * 8
    assert (bench.cache.seq_pos_min(0), bench.cache.seq_pos_max(0)) == (0, 71)


def test_a_full_cache_returns_1_and_stores_nothing() -> None:
    """The recorded run cache-full: 32 cells, ubatches of 8."""
    bench = Bench(context={"n_ubatch": 8})
    bench.decode((0, 16, (0,)))
    result = bench.decode((0, 20, (1,)))
    assert (result.ret, result.ubatches, bench.cache.head, bench.cache.seq_pos_max(1)) == (1, (), 16, -1)
    searches = [event.search.cell for event in bench.events if isinstance(event, SlotSearched)]
    assert searches == [16, 24, -1]
    assert bench.kinds()[-5:] == [PrepareFailed, DefragDecided, DefragPlanned, Retried, Decoded]
    assert bench.decode((0, 8, (1,))).ret == 0


def test_a_defrag_that_moves_cells_is_followed_by_a_second_try() -> None:
    """The end of the recorded run fragment-then-defrag: 96 cells, holes of 6, 40 tokens."""
    bench = Bench(kv_size=96, context={"n_ubatch": 40})
    for turn in range(4):
        for seq in range(4):
            bench.decode((6 * turn, 6, (seq,)))
    bench.cache.seq_rm(1, -1, -1)
    bench.cache.seq_rm(3, -1, -1)
    result = bench.decode((0, 40, (1,)))
    assert (result.ret, result.placed[0]["kv"].head, bench.cache.head) == (0, 48, 88)
    assert [event.again for event in bench.events if isinstance(event, Retried)] == [True]
    assert DefragApplied in bench.kinds()
    assert bench.decode((0, 40, (3,))).ret == 1
    assert [event.again for event in bench.events if isinstance(event, Retried)] == [False]


def test_there_is_one_retry_only() -> None:
    bench = Bench()
    for seq in range(4):
        bench.decode((0, 4, (seq,)))
    bench.cache.seq_rm(1, -1, -1)
    assert bench.decode((0, 24, (1,))).ret == 1
    assert bench.kinds().count(PrepareFailed) == 2
    assert bench.kinds().count(Retried) == 1
    assert bench.pos(13) == [0, 1, 2, 3] * 3 + [-1]


@pytest.mark.parametrize(("how", "ret"), [("aborted", 2), ("alloc_failed", -2), ("failed", -3)])
def test_a_failed_computation_takes_back_its_ubatch_only(how: str, ret: int) -> None:
    bench = Bench(context={"n_ubatch": 8})
    result = bench.decode((0, 20, (0,)), fail_at=1, fail_with=how)
    assert (result.ret, len(result.ubatches)) == (ret, 2)
    assert bench.pos(9) == [*range(8), -1]
    assert (bench.cache.cells.used, bench.cache.head) == (8, 8)
    failed = bench.events[-2]
    assert isinstance(failed, ComputeFailed)
    assert (failed.ubatch, failed.ret, failed.removed) == (1, ret, ((0, 8),))


def test_a_roll_back_takes_each_sequence_from_its_smallest_position_on() -> None:
    bench = Bench()
    bench.decode((0, 3, (0,)), (0, 2, (1,)))
    bench.decode((3, 2, (0,)), (2, 1, (1,)), (0, 1, (2,)), fail_at=0)
    removed = [(event.seq, event.p0) for event in bench.events if isinstance(event, SeqRemoved)]
    assert removed == [(0, 3), (1, 2), (2, 0)]
    assert [bench.cache.seq_pos_max(seq) for seq in range(3)] == [2, 1, -1]


def test_a_roll_back_looks_at_first_ids_only() -> None:
    """A token of sequences 0 and 1 is taken from sequence 0; sequence 1 keeps the cell."""
    bench = Bench()
    bench.decode((0, 2, (0, 1)), fail_at=0)
    assert (bench.cache.seq_pos_max(0), bench.cache.seq_pos_max(1)) == (-1, 1)


def test_a_failure_beyond_the_last_ubatch_never_happens() -> None:
    assert Bench().decode((0, 4, (0,)), fail_at=1).ret == 0


def test_a_roll_back_does_not_bring_back_what_the_window_overwrote() -> None:
    bench = Bench(swa_type=SWAType.STANDARD, n_swa=4)
    bench.decode((0, 32, (0,)))
    bench.decode((32, 8, (0,)), fail_at=0)
    assert bench.pos(10) == [-1] * 8 + [8, 9]
    assert bench.cache.seq_pos_min(0) == 8


def test_a_threshold_defragments_before_the_search() -> None:
    bench = Bench(kv_size=4096, context={"n_ubatch": 2048, "defrag_thold": 0.1})
    bench.decode((0, 1024, (0,)), (0, 1024, (1,)))
    bench.cache.seq_rm(0, 100, 900)
    result = bench.decode((1024, 1, (1,)))
    assert result.placed[0]["kv"].head == 1248
    kinds = bench.kinds()
    assert kinds.index(DefragApplied) < kinds.index(SlotSearched)


def test_an_update_says_whether_it_did_anything() -> None:
    bench = Bench()
    assert bench.context.update(optimize=True) is False
    assert bench.kinds() == [DefragDecided, DefragPlanned, NoUpdate]
    bench.decode((0, 4, (0,)), (0, 4, (1,)))
    bench.cache.seq_add(0, 0, -1, 1)
    assert bench.context.update() is True
    bench.cache.seq_rm(0, -1, -1)
    assert bench.context.update() is False
    assert bench.context.update(optimize=True) is True
    assert bench.pos(5) == [0, 1, 2, 3, -1]


def test_an_asked_for_defrag_is_done_once() -> None:
    bench = Bench()
    bench.decode((0, 4, (0,)), (0, 4, (1,)))
    bench.cache.seq_rm(0, -1, -1)
    bench.context.defrag()
    assert [bench.context.update(), bench.context.update()] == [True, False]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_batch": 0}, "n_batch is 0; allowed: a whole number from 1 to 65536"),
        ({"n_ubatch": 65_537}, "n_ubatch is 65537; allowed: a whole number from 1 to 65536"),
        ({"n_max_nodes": -1}, "n_max_nodes is -1; allowed: a whole number from 0 to 2147483647"),
        ({"defrag_thold": float("nan")}, "defrag_thold is nan; allowed: a finite number; 0 or less turns it off"),
    ],
)
def test_settings_have_limits(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ParamError) as told:
        ContextParams(**fields)
    assert str(told.value) == message


def test_an_unknown_failure_is_told() -> None:
    with pytest.raises(ParamError, match="fail_with is 'bored'; allowed: aborted, alloc_failed, failed"):
        Bench().decode((0, 1, (0,)), fail_with="bored")
