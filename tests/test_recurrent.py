"""Decodes of the recurrent cache, worked by hand from the rules of llama-kv-cache.cpp (January 2025)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.recurrent_cells import RecurrentCells
from kvmodel.errors import CacheAbort, ParamError
from kvmodel.events_recurrent import (
    CellsSwapped,
    SlotFilled,
    SlotRefused,
    SourcesTaken,
    StateBegun,
    StateCopied,
    StateLeft,
)
from kvmodel.explain import explain
from tests.bench_recurrent import Bench, equal

LIVE = Path(__file__).parent / "data" / "live" / "0.3.7" / "recurrent.json"
LEFT_OUT = "the bytes of a file"


def test_a_first_decode_begins_a_state() -> None:
    bench = Bench(3)
    assert bench.decode((0, 5, (1,))) == 0
    assert bench.rows == [(4, 0, 0, -1, (1,)), (-1, 0, -1, 0, ()), (-1, 0, -1, -1, ())]
    assert (bench.cache.head, bench.cache.used, bench.cache.n) == (0, 1, 1)
    [inputs] = bench.told(SourcesTaken)
    assert (inputs.s_mask.tolist(), inputs.s_copy.tolist()) == ([False], [0])
    [begun] = bench.told(StateBegun)
    assert (begun.seq, begun.cell) == (1, 0)


def test_a_longer_batch_goes_on_with_the_same_state() -> None:
    """Ubatches of 2, 2 and 1 tokens; head moves by the tokens and starts over at the end of the cache."""
    bench = Bench(4, n_ubatch=2)
    assert bench.decode((0, 5, (0,))) == 0
    assert [inputs.s_mask.tolist() for inputs in bench.told(SourcesTaken)] == [[False], [True], [True]]
    assert bench.rows[0] == (4, 0, 0, 0, (0,))
    assert bench.cache.head == 1


def test_states_stand_in_the_order_of_the_ubatch() -> None:
    """Equal split: of three sequences of one length the last comes first."""
    bench = Bench(3)
    assert bench.decode((0, 1, (0,)), (0, 1, (1,)), (0, 1, (2,))) == 0
    assert [row[4] for row in bench.rows] == [(2,), (1,), (0,)]
    assert [row[3] for row in bench.rows] == [2, 1, 0]


def test_a_shared_state_is_copied_when_one_goes_on() -> None:
    """Sequence 1 takes cell 3, the next empty one from head on, and copies cell 0; alone it need not move."""
    bench = Bench(4)
    bench.decode((0, 3, (0,)))
    bench.cache.seq_cp(0, 1, 5, 6)
    assert bench.rows[0] == (2, 0, 0, 0, (0, 1))
    assert bench.decode((3, 2, (1,))) == 0
    assert bench.rows == [(2, 0, 0, 0, (0,)), (-1, 0, -1, 3, ()), (-1, 0, -1, -1, ()), (4, 0, 3, -1, (1,))]
    [copied] = bench.told(StateCopied)
    assert (copied.seq, copied.cell, copied.shared, copied.src) == (1, 3, 0, 0)
    inputs = bench.told(SourcesTaken)[-1]
    assert (inputs.begin, inputs.s_mask.tolist(), inputs.s_copy.tolist()) == (3, [True], [0])


def test_states_apart_are_swapped_together() -> None:
    """Sequences 2 and 0 in cells 0 and 2: 0 comes to cell 1, sequence 1 gives way to cell 2; the slot is 3 long."""
    bench = Bench(3)
    bench.decode((0, 1, (0,)), (0, 1, (1,)), (0, 1, (2,)))
    assert bench.decode((1, 1, (2,)), (1, 1, (0,))) == 0
    assert bench.rows == [(1, 0, 0, 1, (2,)), (1, 0, 1, 2, (0,)), (0, 0, 2, 0, (1,))]
    [swap] = bench.told(CellsSwapped)
    assert (swap.seq, swap.cell, swap.other) == (0, 1, 2)
    assert (bench.cache.n, bench.told(SourcesTaken)[-1].s_copy.tolist()) == (3, [0, 2, 1])


def test_a_shared_prompt_takes_one_cell() -> None:
    """What sequence 1 had is left: only the first id of a set keeps its state."""
    bench = Bench(3)
    bench.decode((0, 2, (1,)))
    assert bench.decode((0, 4, (0, 1))) == 0
    assert [row[4] for row in bench.rows] == [(), (), (0, 1)]
    assert [row[3] for row in bench.rows] == [2, 2, -1]
    [left] = bench.told(StateLeft)
    assert (left.seq, left.cell, left.freed, bench.cache.used) == (1, 0, True, 1)


def test_positions_that_do_not_follow_are_told_and_taken() -> None:
    bench = Bench(2)
    bench.decode((0, 2, (0,)))
    assert bench.decode((7, 2, (0,))) == 0
    assert bench.told(SlotFilled)[-1].jumps == ((0, 1, 8),)
    assert bench.cache.seq_pos_max(0) == 8
    assert "sequence 0 goes from position 1 to 8" in explain(bench.told(SlotFilled)[-1])


def test_head_too_far_ahead_starts_over() -> None:
    """Head 4 is more than 1 used cell plus 2 x 1 token, so the empty cell is sought from cell 0."""
    bench = Bench(6)
    bench.decode((0, 4, (0,)))
    assert bench.cache.head == 4
    bench.decode((0, 1, (1,)))
    filled = bench.told(SlotFilled)[-1]
    assert (filled.head_before, filled.start, filled.begin) == (4, 0, 1)


def test_a_sequence_beyond_the_cells_finds_no_slot() -> None:
    """The shorter sequence is stored in a ubatch of its own, which stays."""
    bench = Bench(2, n_ubatch=2)
    assert bench.decode((0, 3, (9,)), (0, 2, (0,))) == 1
    assert bench.cache.seq_pos_max(0) == 1
    assert [(event.seq, event.ubatch) for event in bench.told(SlotRefused)] == [(9, 1)]
    assert bench.quirks == ["partial-decode"]


def test_a_refused_search_keeps_what_it_did_before() -> None:
    """Sequence 1 has left its state when sequence 5 is met."""
    bench = Bench(3)
    bench.decode((0, 2, (1,)))
    slot = bench.cache.find_slot(equal([(0, 1), (5,)], [0, 0]))
    assert (slot.cell, slot.found) == (-1, False)
    assert bench.rows == [(-1, 0, -1, -1, ()), (-1, 0, -1, -1, ()), (-1, 0, -1, -1, ())]
    assert (bench.cache.head, bench.cache.used) == (2, 0)


def test_a_failed_computation_removes_every_sequence() -> None:
    """Also those that were not in the batch; head and n come back, tails dangle."""
    bench = Bench(3)
    bench.decode((0, 1, (1,)))
    assert bench.decode((0, 4, (0,)), fail_at=0) == -3
    assert bench.rows == [(-1, 0, -1, 1, ()), (-1, 0, -1, 0, ()), (-1, 0, -1, -1, ())]
    assert (bench.cache.head, bench.cache.used, bench.cache.n) == (0, 0, 1)
    assert bench.quirks == ["recurrent-dangling-tail"]


def test_swapping_into_a_fresh_cell_loses_a_sequence() -> None:
    """Cells {} {1} {0}; sequence 0 goes first, sequence 2 is new and gets cell 0.

    0 is swapped into cell 0, what was there (nothing) into cell 2. 2 still has its tail at cell 0, so 0 is swapped
    on into cell 1 and 1 into cell 0, where 0 is tagged over it.
    """
    bench = Bench(4)
    bench.decode((0, 2, (0,)), (0, 2, (1,)), (0, 2, (2,)))
    bench.cache.seq_rm(2, -1, -1)
    assert bench.decode((2, 1, (0,)), (0, 3, (2,))) == 0
    assert bench.rows[:3] == [(2, 0, 0, 0, (0,)), (2, 0, 1, 0, (2,)), (-1, 0, 2, 1, ())]
    assert bench.quirks == ["recurrent-swap-loss"]
    assert bench.cache.check_integrity() == ["the tail of sequence 1 is 0 instead of -1"]
    first = bench.told(SourcesTaken)[1]
    assert (first.s_mask.tolist(), first.s_copy.tolist()) == ([True, True, False], [1, 2, 2])
    before = bench.rows
    with pytest.raises(CacheAbort, match="the tail of sequence 1 points at cell 0") as raised:
        bench.decode((2, 1, (1,)))
    assert raised.value.quirk == "recurrent-swap-loss"
    assert bench.rows == before


def test_removing_all_sequences_leaves_tails_behind() -> None:
    bench = Bench(2)
    bench.decode((0, 2, (0,)), (0, 2, (1,)))
    assert bench.cache.seq_rm(-1, -1, -1)
    assert bench.rows == [(-1, 0, -1, 1, ()), (-1, 0, -1, 0, ())]
    assert (bench.cache.used, bench.quirks) == (0, ["recurrent-dangling-tail"])
    assert bench.cache.check_integrity() == [
        "the tail of sequence 0 is 1 instead of -1",
        "the tail of sequence 1 is 0 instead of -1",
    ]
    with pytest.raises(CacheAbort, match="the tail of sequence 0 points at cell 1") as raised:
        bench.decode((0, 1, (0,)))
    assert raised.value.quirk == "recurrent-dangling-tail"


def test_a_dangling_tail_is_put_right_by_removing_or_copying() -> None:
    bench = Bench(3)
    bench.decode((0, 2, (0,)))
    bench.cache.seq_rm(-1, -1, -1)
    bench.cache.clear()
    bench.decode((0, 2, (1,)))
    bench.cache.seq_rm(-1, -1, -1)
    bench.cache.seq_cp(2, 1, -1, -1)
    assert bench.cache.lost == {}
    assert bench.decode((0, 2, (1,))) == 0


def test_an_abort_leaves_what_was_done_before_it() -> None:
    """Sequence 1 gets its cell before the wrong tail of sequence 0 is met."""
    bench = Bench(3)
    bench.decode((0, 1, (0,)))
    bench.cache.seq_rm(-1, -1, -1)
    with pytest.raises(CacheAbort):
        bench.decode((0, 1, (0,)), (0, 1, (1,)))
    assert [row[3] for row in bench.rows] == [0, 0, -1]


def test_one_sequence_in_two_sets() -> None:
    """New, it is met again before it is tagged. Tagged, it is swapped along, and beyond the last cell there is none."""
    with pytest.raises(CacheAbort, match="the tail of sequence 0 points at cell 0") as raised:
        Bench(2).cache.find_slot(equal([(0,), (0,)], [0, 0]))
    assert raised.value.quirk == ""
    bench = Bench(2)
    bench.decode((0, 1, (0,)))
    assert not bench.cache.find_slot(equal([(0,), (0,)], [1, 1])).found
    assert bench.rows == [(1, 0, -1, 1, (0,)), (1, 0, 0, -1, (0,))]
    assert "sequence 0 owns several cells: 0-1" in bench.cache.check_integrity()
    bench = Bench(1)
    bench.decode((0, 1, (0,)))
    with pytest.raises(CacheAbort, match="would go to cell 1, beyond the last one"):
        bench.cache.find_slot(equal([(0,), (0,)], [1, 1]))


def test_a_sequence_in_both_swapped_cells_ends_in_the_first() -> None:
    cells = RecurrentCells(3)
    cells.seqs[:2] = 1
    cells.swap(0, 1)
    assert cells.tail.tolist() == [0, -1, -1]


def test_no_empty_cell() -> None:
    """Only a sequence that owns two cells leaves none for another."""
    bench = Bench(2)
    bench.decode((0, 1, (0,)))
    bench.cache.find_slot(equal([(0,), (0,)], [1, 1]))
    with pytest.raises(CacheAbort, match="no empty cell for the state of sequence 1"):
        bench.decode((0, 1, (1,)))


def test_what_upstream_asserts_of_a_ubatch() -> None:
    cache = Bench(2).cache
    with pytest.raises(CacheAbort, match="a plain ubatch"):
        cache.find_slot(UBatch.plain(Batch.from_runs([(0, 2, (0,))])))
    with pytest.raises(CacheAbort, match="a token without a sequence"):
        cache.find_slot(equal([(0,), ()], [0, 0]))
    with pytest.raises(ParamError, match="ubatch is 'no tokens'"):
        cache.find_slot(UBatch.of(Batch.from_runs([]), np.empty(0, np.int32), 0, True))
    with pytest.raises(CacheAbort, match="a plain ubatch"):
        Bench(2).decode((0, 1, (0,)), split="simple")


def test_tokens_are_the_last_ones_taken_in() -> None:
    bench = Bench(2, n_ubatch=3)
    bench.context.decode(Batch.from_runs([(0, 5, (0,))], token=[10, 11, 12, 13, 14]))
    assert bench.cache.arrays["token"].tolist() == [14, -1]


def test_bytes_follow_the_sources() -> None:
    """A new state starts from zeros; a copy from its source; what is swapped moves; the rest stays."""
    bench = Bench(4)
    bench.cache.attach()
    tensors = bench.cache.tensors
    assert tensors is not None
    tensors.fill(1)
    kept = [array[1:].tolist() for array in (*tensors.k, *tensors.v)]
    bench.decode((0, 3, (0,)))
    assert [array[1:].tolist() for array in (*tensors.k, *tensors.v)] == kept
    assert not any(array[0].any() for array in (*tensors.k, *tensors.v))
    tensors.fill(2)
    state = [array[0].tolist() for array in (*tensors.k, *tensors.v)]
    bench.cache.seq_cp(0, 1, -1, -1)
    bench.decode((3, 2, (1,)))
    assert [array[3].tolist() for array in (*tensors.k, *tensors.v)] == state
    bench.decode((5, 1, (1,)), (3, 1, (0,)))
    assert [row[4] for row in bench.rows] == [(1,), (0,), (), ()]
    assert [array[1].tolist() for array in (*tensors.k, *tensors.v)] == state


def test_a_real_run() -> None:
    """What llama.cpp returned and what its cache view showed, step by step."""
    run = json.loads(LIVE.read_text(encoding="utf-8"))
    bench = Bench(run["config"]["n_seq_max"], run["config"]["n_ubatch"])
    for step in run["steps"]:
        assert live_result(bench, step["op"]) in (step["result"], LEFT_OUT)
        cells = bench.cache.cells
        assert [[row[0] + row[1], list(row[4])] for row in bench.rows] == step["view"]["cells"]
        assert np.bitwise_count(cells.seqs).sum() == step["view"]["token_count"]
        assert cells.n_owned == bench.cache.used == step["view"]["used_cells"]


def live_result(bench: Bench, op: dict[str, Any]) -> Any:
    match op["op"]:
        case "decode":
            return bench.decode(*((pos, 1, tuple(seqs)) for _, pos, seqs in op["tokens"]))
        case "save_seq":
            return LEFT_OUT
        case call:
            return getattr(bench.cache, call)(*op["args"])
