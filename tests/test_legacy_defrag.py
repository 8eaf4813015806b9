"""The older transformer cache: defrag, cells without owner, the roll back of a failed decode, and its bounds."""

import numpy as np
import pytest

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import Placed
from kvmodel.errors import CacheAbort
from kvmodel.events import (
    DefragApplied,
    DefragPlanned,
    DefragRequested,
    Event,
    SeqRemoved,
)
from tests.bench_legacy import Bench


@pytest.fixture
def holes() -> Bench:
    """Eight cells: `a..aaa..`, head at the first hole."""
    bench = Bench(8)
    bench.place((0, 6, (0,)))
    bench.cache.seq_rm(0, 1, 3)
    bench.told()
    return bench


def test_a_defrag_moves_cells_with_their_deltas_and_head_behind_them(holes):
    holes.cache.seq_add(0, 4, -1, 10)
    holes.cache.defrag()
    assert holes.cache.do_defrag
    holes.told()
    plan = holes.cache.apply_defrag(8192)
    assert plan.ids.tolist() == [0, 6, 6, 3, 1, 2]
    assert (plan.moves.tolist(), plan.n_moves, plan.max_moves) == ([[4, 1, 2]], 1, 1365)
    assert (holes.pos(), holes.delta()) == ([0, 14, 15, 3, -1, -1, -1, -1], [0, 10, 10, 0, 0, 0, 0, 0])
    planned, applied = holes.told()
    assert isinstance(planned, DefragPlanned)
    assert isinstance(applied, DefragApplied)
    assert (applied.head_before, applied.head, holes.cache.head, holes.cache.do_defrag) == (0, 4, 4, False)


def test_a_defrag_without_holes_moves_nothing():
    bench = Bench(8)
    bench.place((0, 3, (0,)))
    bench.cache.defrag()
    assert [type(event) for event in bench.told()][-1] is DefragRequested
    assert bench.cache.apply_defrag(8192).empty
    assert (bench.cache.head, bench.cache.do_defrag) == (3, False)


@pytest.mark.parametrize(("n_max_nodes", "quirks"), [(8192, []), (7, ["defrag-zero-budget"])])
def test_a_budget_of_0_moves_is_no_limit(holes, n_max_nodes, quirks):
    holes.cache.apply_defrag(n_max_nodes)
    assert (holes.row(), holes.quirks()) == ("aaaa....", quirks)


def test_a_defrag_ends_where_the_budget_of_its_layers_ends():
    bench = Bench(8, n_layer=500)
    bench.place((0, 8, (0,)))
    for pos in (0, 2, 4):
        bench.cache.seq_rm(0, pos, pos + 1)
    plan = bench.cache.apply_defrag(8192)
    assert (plan.max_moves, plan.n_moves, plan.truncated) == (2, 2, True)
    assert (bench.pos(), bench.cache.head) == ([7, 1, 6, 3, -1, 5, -1, -1], 5)


def owner_lost() -> Bench:
    """`?aaa....`: four cells are counted, three have an owner."""
    bench = Bench(8)
    bench.place((9, 1, ()), (0, 3, (0,)))
    bench.told()
    return bench


def test_a_cell_without_owner_is_overwritten_and_stays_counted():
    bench = owner_lost()
    plan = bench.cache.apply_defrag(8)
    assert (plan.max_moves, plan.ids.tolist()) == (1, [4, 4, 4, 0])
    assert (bench.pos(5), bench.cache.used, bench.cache.head) == ([2, 0, 1, -1, -1], 4, 4)
    bench.place((3, 1, (0,)))
    assert (bench.row(), bench.cache.used) == ("aaa.a...", 5)
    assert bench.cache.check_integrity() == []


def test_a_counter_that_is_too_large_ends_the_process():
    with pytest.raises(CacheAbort, match="4 cells are counted as used but 3 have an owner"):
        owner_lost().cache.apply_defrag(14)


def test_a_counter_above_0_without_any_owner_ends_the_process():
    bench = Bench(8)
    bench.place((0, 1, ()))
    with pytest.raises(CacheAbort, match="1 cells are counted as used but 0 have an owner"):
        bench.cache.apply_defrag(8)


@pytest.mark.parametrize(
    ("filled", "found", "probes"),
    [(0, False, [(6, 4), (0, 0)]), (1, True, [(6, 4), (0, 1)])],
)
def test_head_behind_the_cache_makes_the_count_of_tested_cells_wrap(filled, found, probes):
    """From cell 6 of 4 the count begins at -2: a stop at cell 0 makes it -1, as unsigned a huge one; at cell 1, 0."""
    bench = Bench(4)
    bench.cache.head = filled
    bench.place((0, 1, (0,)))
    bench.cache.head = 6
    bench.told()
    assert bench.place((1, 2, (1,))) == found
    search = bench.told()[0].search
    assert list(zip(search.probe_start.tolist(), search.probe_end.tolist(), strict=True)) == probes
    assert (bench.row(), bench.cache.head) == ((".abb", 0) if found else ("a...", 1))


def failed(bench: Bench, *runs: tuple[int, int, tuple[int, ...]]) -> list[Event]:
    """Store tokens, let their computation fail, roll back."""
    before, ubatch = Placed(bench.cache.head, bench.cache.n), UBatch.plain(Batch.from_runs(runs))
    search = bench.cache.find_slot(ubatch, in_decode=True)
    bench.cache.finish(ubatch, 0, before, advance=False)
    bench.told()
    bench.cache.restore(before, [(search.cell, search.cell + len(ubatch))])
    return bench.told()


def test_a_roll_back_removes_its_tokens_where_cells_and_positions_agree():
    bench = Bench(8)
    bench.place((0, 4, (0,)))
    [event] = failed(bench, (4, 2, (0,)))
    assert isinstance(event, SeqRemoved)
    assert (bench.row(), bench.cache.used, bench.cache.head, bench.cache.n) == ("aaaa....", 4, 4, 0)


def test_a_roll_back_takes_cells_for_positions():
    bench = Bench(12)
    bench.place((4, 4, (1,)))
    *_, quirk = failed(bench, (0, 3, (0,)))
    assert quirk.quirk == "restore-by-index"
    assert (bench.row(), bench.cache.used, bench.cache.head) == ("...baaa.....", 4, 0)


def test_a_roll_back_may_remove_nothing():
    bench = Bench(8)
    bench.place((0, 4, (1,)))
    failed(bench, (0, 2, (0,)))
    assert (bench.row(), bench.cache.used, bench.cache.head) == ("bbbbaa..", 6, 4)


def test_mla_cannot_be_shifted():
    assert Bench(4).cache.can_shift
    assert not Bench(4, arch="deepseek2").cache.can_shift


def test_sizes_are_those_of_the_tensors():
    bench = Bench(96, n_layer=2, n_head_kv=2, n_embd_head_k=64, n_embd_head_v=32, type_k="q8_0", type_v="f16")
    assert bench.cache.size_k_bytes == 2 * 96 * 2 * (64 // 32) * 34
    assert bench.cache.size_v_bytes == 2 * 96 * 2 * 32 * 2
    assert bench.cache.total_size == bench.cache.size_k_bytes + bench.cache.size_v_bytes


def test_integrity_names_what_is_broken():
    bench = Bench(4)
    assert bench.cache.check_integrity() == []
    cells = bench.cache.cells
    cells.pos[:] = [-2, -1, 0, -1]
    cells.seqs[1] = 1
    cells.token[3] = 7
    cells.delta[0] = 1
    bench.cache.head = -1
    assert bench.cache.check_integrity() == [
        "a position is below -1",
        "a free cell has an owner",
        "a free cell has a token",
        "head is negative",
        "more cells are filled than counted",
        "a delta waits, but no shift is pending",
    ]


def test_arrays_have_the_types_of_their_contract():
    kinds = {name: array.dtype for name, array in Bench(4).cache.arrays.items()}
    assert kinds == {"pos": np.int32, "delta": np.int32, "seqs": np.uint64, "token": np.int32}
