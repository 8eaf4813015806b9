"""The older transformer cache on small caches worked by hand: search, store, head, and the view of the mask."""

import pytest

from kvmodel.batch import Batch, UBatch
from kvmodel.errors import ParamError
from kvmodel.events import (
    SlotSearched,
    UBatchStored,
)
from kvmodel.slots import Blocked, Start
from tests.bench_legacy import Bench


@pytest.fixture
def holes() -> Bench:
    """Eight cells: `a..aaa..`, head at the first hole."""
    bench = Bench(8)
    bench.place((0, 6, (0,)))
    bench.cache.seq_rm(0, 1, 3)
    bench.told()
    return bench


def test_storing_fills_cells_and_moves_head():
    bench = Bench(8)
    assert bench.place((5, 2, (0,)), (3, 1, (1, 2)))
    searched, stored = bench.told()
    assert isinstance(searched, SlotSearched)
    assert isinstance(stored, UBatchStored)
    assert (stored.begin, stored.end, stored.head_before, stored.head) == (0, 3, 0, 3)
    assert (bench.row(), bench.pos(4), bench.cache.used) == ("aaM.....", [5, 6, 3, -1], 3)
    assert bench.cache.counters == {
        "head": 3,
        "used": 3,
        "used_max_p1": 3,
        "n_kv": 0,
        "has_shift": False,
        "do_defrag": False,
        "fragmentation": 0.0,
    }


def test_the_parts_are_the_cache_itself():
    bench = Bench(4)
    assert bench.cache.parts == (bench.cache,)
    assert list(bench.cache.arrays) == ["pos", "delta", "seqs", "token"]
    assert bench.cache.arrays["pos"] is bench.cache.cells.pos


def test_head_returns_to_0_behind_the_last_cell():
    bench = Bench(4)
    assert bench.place((0, 4, (0,)))
    assert bench.cache.head == 0


def test_a_search_walks_round_once_and_leaves_head_behind_the_last_cell_tried(holes):
    assert not holes.place((6, 3, (0,)))
    [event] = holes.told()
    search = event.search
    assert (search.start, search.start_reason, search.cell) == (1, Start.HEAD, -1)
    assert list(zip(search.probe_start.tolist(), search.probe_end.tolist(), strict=True)) == [
        (1, 3),
        (4, 4),
        (5, 5),
        (6, 8),
        (0, 0),
    ]
    assert search.probe_reason.tolist() == [Blocked.OCCUPIED] * 3 + [Blocked.END, Blocked.OCCUPIED]
    assert search.n_tested == 8
    assert (search.free, search.reusable, search.longest, search.longest_start) == (4, 0, 2, 1)
    assert (holes.cache.head, holes.cache.used, holes.row()) == (1, 4, "a..aaa..")


def test_a_slot_may_lie_behind_the_wrap(holes):
    holes.cache.head = 7
    assert holes.place((6, 2, (1,)))
    assert holes.row() == "abbaaa.."


@pytest.mark.parametrize(("head", "head_after"), [(1, 1), (22, 22), (23, 0)])
def test_more_tokens_than_cells_try_nothing_but_may_start_early(holes, head, head_after):
    holes.cache.head = head
    ubatch = UBatch.plain(Batch.from_runs([(6, 9, (0,))]))
    search = holes.cache.find_slot(ubatch, in_decode=True)
    assert (search.too_many, len(search.probe_start), holes.cache.head) == (True, 0, head_after)


@pytest.mark.parametrize(("head", "start", "reason"), [(12, 12, Start.HEAD), (13, 0, Start.EARLY)])
def test_only_a_decode_starts_early(head, start, reason):
    bench = Bench(20)
    bench.place((0, 8, (0,)))
    bench.cache.head = head
    ubatch = UBatch.plain(Batch.from_runs([(8, 2, (0,))]))
    bench.told()
    search = bench.cache.find_slot(ubatch, in_decode=True)
    assert (search.start, search.start_reason) == (start, reason)
    assert bench.cache.find_slot(UBatch.plain(Batch.from_runs([(9, 1, (0,))]))).start_reason is Start.HEAD


@pytest.mark.parametrize(
    ("v_trans", "size", "stored", "n"),
    [(True, 64, 1, 32), (True, 64, 33, 64), (True, 8, 1, 8), (False, 512, 1, 256), (False, 512, 257, 512)],
)
def test_the_view_is_padded_to_32_or_with_flash_attention_to_256(v_trans, size, stored, n):
    bench = Bench(size, v_trans=v_trans)
    assert bench.cache.padding == (32 if v_trans else 256)
    bench.cache.find_slot(UBatch.plain(Batch.from_runs([(0, stored, (0,))])), in_decode=True)
    assert (bench.cache.n, bench.cache.n_needed) == (n, n)


def test_an_id_that_no_set_can_hold_is_refused():
    with pytest.raises(ParamError, match="seq is 64; allowed: sequence ids from 0 to 63"):
        Bench(4).place((0, 1, (3, 64)))


def test_a_token_without_owner_fills_a_cell_that_only_everyone_frees():
    bench = Bench(4)
    bench.place((0, 2, ()))
    bench.cache.seq_rm(0, -1, -1)
    assert (bench.row(), bench.cache.used, bench.cache.cell_max, bench.cache.max_pos) == ("??..", 2, 0, 1)
    bench.cache.seq_rm(-7, 1, -1)
    assert (bench.row(), bench.cache.used) == ("?...", 1)
    bench.cache.seq_keep(0)
    assert (bench.row(), bench.cache.used) == ("....", 0)
