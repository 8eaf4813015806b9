"""Storing tokens: slots, views, purges, roll-backs, and what the events say; sizes in bytes."""

import pytest

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import MemoryStatus, Placed
from kvmodel.caches.unified import UnifiedCache
from kvmodel.errors import ParamError
from kvmodel.events import CellsOverwritten, PositionsPurged, PrepareFailed, QuirkSeen, SlotSearched, UBatchStored
from kvmodel.types import CacheParams
from tests.watched import Watched, shared_prefix

MIB = 1 << 20


@pytest.fixture
def shared() -> Watched:
    return shared_prefix()


def test_storing_moves_head_and_widens_the_view(shared):
    assert (shared.row(), shared.head, shared.n_kv, shared.cells.used) == ("MMaabb....", 6, 6, 6)
    shared.place((4, 1, (0,)))
    assert shared.row() == "MMaabba..."


def test_storing_tells_the_search_then_the_store():
    cache = Watched(8, n_pad=4)
    ubatch = UBatch.plain(Batch.from_runs([(0, 3, (0,))], token=[10, 11, 12]))
    [begin] = cache.prepare([ubatch])
    cache.apply_ubatch(begin, ubatch, number=2)
    searched, stored = cache.told()
    assert isinstance(searched, SlotSearched)
    assert isinstance(stored, UBatchStored)
    assert (stored.ubatch, stored.begin, stored.end, stored.stored.runs) == (2, 0, 3, [(0, 3, (0,))])
    assert (stored.head_before, stored.head, stored.n_kv_before, stored.n_kv) == (0, 3, 4, 4)
    assert cache.cells.token.tolist()[:3] == [10, 11, 12]


@pytest.mark.parametrize(("used", "n_pad", "n_kv"), [(0, 8, 8), (1, 8, 8), (8, 8, 8), (9, 8, 16), (24, 8, 24)])
def test_the_view_is_padded_within_the_cache(used, n_pad, n_kv):
    cache = Watched(24, n_pad=n_pad)
    if used:
        cache.place((0, used, (0,)))
    assert cache.n_kv == n_kv
    assert cache.init_full() == Placed(0, 24)


def window_cache() -> Watched:
    """Full: window 2, sequence a at 0-3, b at 0 and 1. Usable: a's 0, 1, 2 (its next is at 4) and b's 0 (next at 2)."""
    cache = Watched(6, swa_type="standard", n_swa=2)
    cache.place((0, 4, (0,)), (0, 2, (1,)))
    cache.told()
    return cache


def test_overwriting_purges_what_is_older():
    cache = window_cache()
    cache.head = cache.ledger.head = 2
    ubatch = UBatch.plain(Batch.from_runs([(4, 1, (0,))]))
    cache.apply_ubatch(2, ubatch)
    overwritten, purged, stored = cache.told()
    assert isinstance(overwritten, CellsOverwritten)
    assert (overwritten.cells.tolist(), overwritten.seqs.tolist(), overwritten.pos.tolist()) == ([2], [0], [2])
    assert isinstance(purged, PositionsPurged)
    assert (purged.seq, purged.p0, purged.p1, purged.cells.tolist(), purged.trial) == (0, 0, 3, [0, 1], False)
    assert isinstance(stored, UBatchStored)
    assert (cache.row(), cache.seq_pos_min(0), cache.seq_pos_max(0)) == ("..aabb", 3, 4)


def test_a_failed_prepare_does_not_bring_purged_cells_back():
    cache = window_cache()
    cache.head = cache.ledger.head = 2
    ubatches = [UBatch.plain(Batch.from_runs(runs)) for runs in ([(0, 1, (2,))], [(1, 4, (2,))])]
    assert cache.prepare(ubatches) is None
    assert (cache.row(), cache.head, cache.cells.pos.tolist()) == ("..aabb", 2, [-1, -1, 2, 3, 0, 1])
    first, purged, second, failed, quirk = cache.told()
    assert (first.search.cell, second.search.cell, second.search.longest) == (2, -1, 2)
    assert isinstance(purged, PositionsPurged)
    assert (purged.seq, purged.p0, purged.p1, purged.cells.tolist(), purged.trial) == (0, 0, 3, [0, 1], True)
    assert isinstance(failed, PrepareFailed)
    assert (failed.ubatch, failed.n_placed, failed.n_ubatches) == (1, 1, 2)
    assert quirk.quirk == "purge-leak"


def test_a_trial_drops_the_pending_shift_of_what_it_overwrites():
    cache = window_cache()
    cache.seq_add(0, 0, -1, 5)
    cache.told()
    ubatches = [UBatch.plain(Batch.from_runs(runs)) for runs in ([(0, 2, (2,))], [(2, 6, (2,))])]
    assert cache.prepare(ubatches) is None
    assert (cache.cells.pos.tolist()[:4], cache.cells.shift.tolist()[:4]) == ([5, 6, 7, 8], [0, 0, 5, 5])
    assert "swa-shift-lost" in [event.quirk for event in cache.told() if isinstance(event, QuirkSeen)]


def test_a_token_that_names_a_sequence_twice_counts_twice():
    cache = Watched(4)
    cache.place((3, 1, (1, 1)))
    cache.seq_rm(1, 0, -1)
    assert (cache.cells.used, cache.seq_pos_min(1), cache.seq_pos_max(1)) == (0, 3, 3)


def test_a_token_without_a_sequence_stays_until_everyone_goes():
    cache = Watched(4)
    cache.place((3, 1, ()))
    cache.seq_keep(0)
    assert (cache.cells.used, cache.find_slot(4).found) == (1, False)
    cache.seq_rm(-1, 3, 4)
    assert cache.cells.used == 0


def test_a_failed_prepare_puts_slots_and_head_back(shared):
    before = shared.arrays["pos"].tolist(), shared.row(), shared.head, shared.n_kv
    ubatches = [UBatch.plain(Batch.from_runs([(4, 3, (0,))])), UBatch.plain(Batch.from_runs([(7, 3, (0,))]))]
    assert shared.prepare(ubatches) is None
    assert (shared.arrays["pos"].tolist(), shared.row(), shared.head, shared.n_kv) == before
    first, second, failed = shared.told()
    assert (first.search.cell, second.search.cell, second.ubatch) == (6, -1, 1)
    assert (second.search.free, second.search.longest) == (1, 1)
    assert isinstance(failed, PrepareFailed)


def test_init_batch_finds_slots_for_all_or_none(shared):
    batch = Batch.from_runs([(4, 4, (0,))])
    prepared = shared.init_batch(batch, 3)
    assert (prepared.status, prepared.heads) == (MemoryStatus.SUCCESS, {"kv": (6, 9)})
    assert [shared.apply(prepared, i) for i in range(2)] == [{"kv": Placed(6, 9)}, {"kv": Placed(9, 10)}]
    assert shared.init_batch(Batch.from_runs([(8, 1, (0,))]), 3).status is MemoryStatus.FAILED_PREPARE


@pytest.mark.parametrize(
    ("params", "k", "v"),
    [
        ({"kv_size": 4096, "n_layer": 32, "n_head_kv": 8, "n_embd_head_k": 128, "n_embd_head_v": 128}, 256, 256),
        ({"kv_size": 4096, "n_layer": 32, "n_head_kv": 32, "n_embd_head_k": 128, "n_embd_head_v": 128}, 1024, 1024),
        (
            {"kv_size": 8192, "n_layer": 32, "n_head_kv": 8, "n_embd_head_k": 128, "n_embd_head_v": 128}
            | {"type_k": "q8_0", "type_v": "q4_0", "v_trans": False},
            272,
            144,
        ),
    ],
)
def test_sizes_in_mib(params, k, v):
    """As llama.cpp prints them for 8 and for 32 KV heads of 128 elements; q8_0 and q4_0 take 34 and 18 bytes for 32."""
    cache = UnifiedCache(CacheParams(**params))
    assert (cache.size_k_bytes / MIB, cache.size_v_bytes / MIB) == (k, v)
    assert cache.total_size == cache.size_k_bytes + cache.size_v_bytes


def test_every_tensor_of_the_buffer_is_aligned():
    cache = UnifiedCache(CacheParams(3, n_pad=1, n_layer=2, n_embd_head_k=4, n_embd_head_v=5))
    assert (cache.size_k_bytes, cache.size_v_bytes) == (2 * 3 * 8, 2 * 3 * 10)
    assert cache.total_size == 2 * 32 + 2 * 32


def test_quantised_rows_must_be_whole_blocks():
    cache = UnifiedCache(CacheParams(32, n_embd_head_k=48, type_k="q8_0"))
    with pytest.raises(ParamError, match="n_embd_k_gqa is 48; allowed: a multiple of 32"):
        _ = cache.size_k_bytes


def test_a_shift_is_always_said_to_be_possible(shared):
    assert shared.can_shift
