"""The older transformer cache on small caches worked by hand: search and store, edits, defrag, roll-back, sizes."""

import numpy as np
import pytest

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import Placed
from kvmodel.caches.legacy import LegacyCache
from kvmodel.errors import CacheAbort, ParamError
from kvmodel.events import (
    Cleared,
    DefragApplied,
    DefragPlanned,
    DefragRequested,
    Event,
    NothingToDo,
    QuirkSeen,
    SeqAdded,
    SeqKept,
    SeqRemoved,
    ShiftApplied,
    SlotSearched,
    UBatchStored,
)
from kvmodel.slots import Blocked, Start
from kvmodel.types import CacheParams

INT32_MAX = 2**31 - 1


class Bench:
    """A cache, what it tells, and its cells as text: `a` for sequence 0, `M` for several, `?` for no owner."""

    def __init__(self, n: int, **params: object) -> None:
        self.events: list[Event] = []
        self.cache = LegacyCache(CacheParams(n, **{"n_seq_max": 4, "n_pad": 1} | params), self.events.append)

    def place(self, *runs: tuple[int, int, tuple[int, ...]]) -> bool:
        """Seek and store tokens as one ubatch, then let head pass them."""
        before, ubatch = Placed(self.cache.head, self.cache.n), UBatch.plain(Batch.from_runs(runs))
        search = self.cache.find_slot(ubatch)
        if search.found:
            self.cache.finish(ubatch, 0, before)
        return search.found

    def told(self) -> list[Event]:
        """The events since the last call."""
        events, self.events[:] = list(self.events), []
        return events

    def quirks(self) -> list[str]:
        return [event.quirk for event in self.told() if isinstance(event, QuirkSeen)]

    def row(self) -> str:
        owners = zip(self.cache.cells.pos.tolist(), self.cache.cells.seqs.tolist(), strict=True)
        return "".join(symbol(pos, bits) for pos, bits in owners)

    def pos(self, n: int | None = None) -> list[int]:
        return self.cache.cells.pos[:n].tolist()

    def delta(self, n: int | None = None) -> list[int]:
        return self.cache.cells.delta[:n].tolist()


def symbol(pos: int, bits: int) -> str:
    if pos < 0:
        return "."
    if not bits:
        return "?"
    return "M" if bits & (bits - 1) else "abcdefgh"[bits.bit_length() - 1]


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


def test_removing_frees_what_has_no_owner_left(holes):
    holes.cache.seq_cp(0, 1, 4, 6)
    holes.cache.head = 7
    holes.told()
    assert holes.cache.seq_rm(0, 3, -1)
    [event] = holes.told()
    assert isinstance(event, SeqRemoved)
    assert (event.cells.tolist(), event.freed.tolist()) == ([3, 4, 5], [3])
    assert (event.head_before, event.head, holes.row(), holes.cache.used) == (7, 3, "a...bb..", 3)


def test_removing_never_moves_head_forward(holes):
    assert holes.cache.head == 1
    holes.cache.seq_rm(0, 5, 6)
    assert (holes.cache.head, holes.row()) == (1, "a..aa...")


def test_numbers_outside_the_sets_own_nothing(holes):
    for seq in (64, INT32_MAX):
        assert holes.cache.seq_rm(seq, -1, -1)
        holes.cache.seq_add(seq, 0, 9, 3)
        assert (holes.row(), holes.cache.seq_pos_max(seq), holes.cache.seq_pos_min(seq)) == ("a..aaa..", 0, -1)
    assert not holes.cache.has_shift
    holes.cache.seq_cp(-1, 99, -1, -1)
    with pytest.raises(ParamError, match="dst is 99; allowed: a whole number from 0 to 63"):
        holes.cache.seq_cp(0, 99, -1, -1)
    holes.cache.seq_keep(-1)
    assert (holes.row(), holes.cache.used) == ("........", 0)


def test_copying_always_moves_head_to_0():
    bench = Bench(8)
    bench.place((0, 3, (0,)))
    bench.cache.seq_cp(0, 0, 5, 9)
    assert (bench.cache.head, bench.row()) == (0, "aaa.....")
    bench.cache.head = 3
    bench.cache.seq_cp(0, 2, 1, -1)
    assert (bench.cache.head, bench.row(), bench.cache.used) == (0, "aMM.....", 3)


def test_keeping_moves_head_to_the_first_cell_of_another(holes):
    holes.cache.seq_cp(0, 1, 3, 5)
    holes.cache.head = 6
    holes.told()
    holes.cache.seq_keep(1)
    [event] = holes.told()
    assert isinstance(event, SeqKept)
    assert (event.freed.tolist(), event.narrowed.tolist()) == ([0, 5], [3, 4])
    assert (holes.row(), holes.cache.head, holes.cache.used) == ("...bb...", 0, 2)


def test_keeping_moves_head_to_a_cell_that_was_free_before():
    bench = Bench(8)
    bench.place((0, 4, (0,)))
    bench.cache.head = 6
    bench.cache.seq_keep(0)
    assert (bench.row(), bench.cache.head) == ("aaaa....", 4)


def test_what_falls_below_0_is_freed_with_its_delta():
    bench = Bench(6)
    bench.place((0, 4, (0,)))
    bench.told()
    bench.cache.seq_add(0, 0, -1, -2)
    [event] = bench.told()
    assert isinstance(event, SeqAdded)
    assert (event.cells.tolist(), event.freed.tolist()) == ([0, 1, 2, 3], [0, 1])
    assert (bench.pos(), bench.delta()) == ([-1, -1, 0, 1, -1, -1], [-2, -2, -2, -2, 0, 0])
    assert (bench.cache.head, bench.cache.used, bench.cache.has_shift) == (0, 2, True)


def test_adding_moves_head_to_the_first_freed_cell_or_to_0():
    bench = Bench(8)
    bench.place((5, 3, (0,)), (0, 2, (1,)))
    bench.cache.seq_add(1, 0, 1, -1)
    assert (bench.row(), bench.cache.head) == ("aaa.b...", 3)
    bench.cache.seq_add(0, 6, 7, 10)
    assert (bench.pos(5), bench.cache.head) == ([5, 16, 7, -1, 1], 0)


def test_a_shift_of_0_counts_as_pending_and_an_empty_range_does_not(holes):
    holes.cache.seq_add(0, 4, 4, 7)
    holes.cache.seq_div(0, 4, 4, 7)
    assert [type(event) for event in holes.told()] == [NothingToDo, NothingToDo]
    assert (holes.cache.has_shift, holes.cache.head) == (False, 1)
    holes.cache.seq_add(0, 0, -1, 0)
    assert (holes.cache.has_shift, holes.cache.head, holes.row()) == (True, 0, "a..aaa..")


def test_dividing_leaves_new_minus_old_as_delta():
    bench = Bench(8)
    bench.place((0, 6, (0,)))
    bench.cache.seq_div(0, 0, -1, 3)
    assert bench.pos(6) == [0, 0, 0, 1, 1, 1]
    assert bench.delta(6) == [0, -1, -2, -2, -3, -4]
    assert (bench.cache.has_shift, bench.cache.head) == (True, 6)


@pytest.mark.parametrize("d", [0, -2])
def test_a_divisor_below_1_ends_the_process_if_it_meets_a_cell(holes, d):
    holes.cache.seq_div(1, 0, -1, d)
    with pytest.raises(CacheAbort, match=f"d is {d}; allowed: 1 or more"):
        holes.cache.seq_div(0, 0, -1, d)


def test_the_largest_position_of_nothing_is_0(holes):
    assert (holes.cache.seq_pos_max(0), holes.cache.seq_pos_min(0)) == (5, 0)
    assert (holes.cache.seq_pos_max(3), holes.cache.seq_pos_min(3)) == (0, -1)


def test_the_last_cell_needs_position_and_owner():
    bench = Bench(8)
    bench.place((0, 2, (0,)), (9, 1, ()))
    assert (bench.cache.cell_max, bench.cache.max_pos) == (2, 9)
    bench.cache.seq_rm(0, -1, -1)
    assert (bench.cache.cell_max, bench.cache.max_pos) == (0, 9)


def test_a_token_inherits_the_delta_of_the_cell():
    bench = Bench(4)
    bench.place((0, 4, (0,)))
    bench.cache.seq_add(0, 0, -1, 5)
    bench.cache.seq_rm(0, 7, 9)
    bench.told()
    bench.place((0, 2, (1,)))
    [searched, quirk, stored] = bench.told()
    assert isinstance(searched, SlotSearched)
    assert isinstance(stored, UBatchStored)
    assert quirk.detail == "2 new cells inherited the delta that a former token had left behind"
    assert (bench.pos(), bench.delta()) == ([5, 6, 0, 1], [5, 5, 5, 5])
    bench.cache.clear()
    assert (bench.pos(), bench.delta(), bench.cache.has_shift) == ([-1] * 4, [5] * 4, True)
    assert bench.cache.apply_shift().tolist() == [5, 5, 5, 5]
    assert (bench.delta(), bench.cache.has_shift) == ([0] * 4, False)
    [cleared, shifted] = bench.told()
    assert isinstance(cleared, Cleared)
    assert isinstance(shifted, ShiftApplied)
    assert bench.place((0, 1, (0,)))
    assert bench.quirks() == []


def test_clearing_always_clears_the_data(holes):
    holes.cache.clear(data=False)
    [event] = holes.told()
    assert (event.data, event.n_cells, holes.row()) == (True, 8, "........")
    assert (holes.cache.head, holes.cache.used) == (0, 0)


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
