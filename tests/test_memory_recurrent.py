"""The recurrent memory of mid-2025, worked by hand from the rules of llama-memory-recurrent.cpp."""

import numpy as np
import pytest

from kvmodel.batch import Batch
from kvmodel.caches.memory_cells import MemoryCells
from kvmodel.caches.memory_recurrent import RecurrentMemory
from kvmodel.caches.recurrent_params import RecurrentParams
from kvmodel.context import Context, ContextParams
from kvmodel.errors import CacheAbort
from kvmodel.events import BatchRefused, Event, NothingToDo, QuirkSeen, Retried
from kvmodel.events_recurrent import SlotRefused, SourcesTaken, StatesStored
from kvmodel.formats.errors import StateError
from kvmodel.formats.state import read_state, write_state
from kvmodel.generations import make_context
from kvmodel.scenario import Scenario

Run = tuple[int, int, tuple[int, ...]]


class Memory:
    """A memory in its context, with what it reported."""

    def __init__(self, size: int, n_ubatch: int = 8, **more: int) -> None:
        self.seen: list[Event] = []
        self.cache = RecurrentMemory(RecurrentParams(size, n_seq_max=min(size, 64), **more), self.seen.append)
        self.context = Context(self.cache, ContextParams(n_ubatch=n_ubatch), self.seen.append)

    def decode(self, *runs: Run) -> int:
        self.seen.clear()
        return self.context.decode(Batch.from_runs(runs)).ret

    def told(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.seen if isinstance(event, kind)]

    @property
    def rows(self) -> list[tuple[int, int, int, tuple[int, ...]]]:
        """Position, source, tail of the sequence of that number, owners."""
        cells = self.cache.cells
        return [(int(cells.pos[i]), int(cells.src[i]), int(cells.tail[i]), cells.owners(i)) for i in range(len(cells))]


def test_a_first_decode_begins_a_state_where_head_stays() -> None:
    memory = Memory(3)
    assert memory.decode((0, 5, (1,))) == 0
    assert memory.rows == [(4, 0, -1, (1,)), (-1, -1, 0, ()), (-1, -1, -1, ())]
    assert (memory.cache.head, memory.cache.used, memory.cache.n, memory.cache.cells.rs_z) == (0, 1, 1, 0)
    [inputs] = memory.told(SourcesTaken)
    assert isinstance(inputs, SourcesTaken)
    assert (inputs.s_mask.tolist(), inputs.s_copy.tolist()) == ([False], [0])
    [stored] = memory.told(StatesStored)
    assert isinstance(stored, StatesStored)
    assert (stored.begin, stored.end, stored.head, stored.n_kv) == (0, 1, 0, 1)


def test_sequences_take_cells_in_the_order_of_the_batch() -> None:
    memory = Memory(3)
    assert memory.decode((0, 1, (0,)), (0, 1, (1,)), (0, 1, (2,))) == 0
    assert [row[3] for row in memory.rows] == [(0,), (1,), (2,)]


def test_all_states_that_begin_share_the_first_spare_one() -> None:
    """Sequences 1 and 2 are new: both come from cell 1, which nobody has as source and the graph zeroes."""
    memory = Memory(3)
    memory.decode((0, 1, (0,)))
    memory.decode((1, 1, (0,)), (0, 1, (1,)), (0, 1, (2,)))
    [inputs] = memory.told(SourcesTaken)
    assert isinstance(inputs, SourcesTaken)
    assert (inputs.s_mask.tolist(), inputs.s_copy.tolist()) == ([True, False, False], [0, 1, 1])
    assert memory.cache.cells.rs_z == 1
    assert memory.cache.cells.src0.tolist() == [0, 1, 1]


def test_swapping_loses_no_sequence() -> None:
    """Cells {2} {1} {0}, as after a split of January; 2 is removed, then 0 goes on and 2 begins anew."""
    memory = Memory(4)
    memory.decode((0, 2, (2,)), (0, 2, (1,)), (0, 2, (0,)))
    memory.cache.seq_rm(2, -1, -1)
    assert memory.decode((2, 1, (0,)), (0, 1, (2,))) == 0
    assert [row[3] for row in memory.rows] == [(0,), (2,), (1,), ()]
    assert memory.cache.check_integrity() == []
    assert memory.told(QuirkSeen) == []
    assert memory.decode((2, 1, (1,))) == 0


def test_a_batch_that_finds_no_place_changes_nothing() -> None:
    """The first ubatch would fit; sequence 3 has no place among 3 cells."""
    memory = Memory(3, n_ubatch=2)
    memory.decode((0, 3, (1,)))
    before, head = memory.rows, memory.cache.head
    assert memory.decode((0, 2, (0,)), (0, 4, (3,))) == 1
    assert (memory.rows, memory.cache.head, memory.cache.used) == (before, head, 1)
    [refused] = memory.told(SlotRefused)
    assert isinstance(refused, SlotRefused)
    assert (refused.ubatch, refused.seq, refused.n_cells) == (0, 3, 3)
    [retried] = memory.told(Retried)
    assert isinstance(retried, Retried)
    assert not retried.again


def test_positions_are_checked_as_for_every_memory_of_its_time() -> None:
    memory = Memory(2)
    memory.decode((0, 3, (0,)))
    assert memory.decode((2, 1, (0,))) == -1
    [refused] = memory.told(BatchRefused)
    assert isinstance(refused, BatchRefused)
    assert (refused.kind, refused.stored, refused.start) == ("not_consecutive", 2, 2)


def test_a_sequence_without_a_state_is_at_no_position() -> None:
    memory = Memory(2)
    memory.decode((0, 3, (0,)))
    assert [memory.cache.seq_pos_max(seq) for seq in (0, 1, 5)] == [2, -1, -1]
    assert [memory.cache.seq_pos_min(seq) for seq in (0, 1, 5)] == [2, -1, -1]
    memory.cache.seq_add(0, -1, -1, -9)
    assert (memory.cache.seq_pos_min(0), memory.cache.seq_pos_max(0)) == (-7, -1)


def test_what_changes_nothing_is_left_alone() -> None:
    memory = Memory(2)
    memory.decode((0, 3, (0,)))
    before = memory.rows
    memory.seen.clear()
    memory.cache.seq_cp(0, 0, -1, -1)
    memory.cache.seq_add(0, -1, -1, 0)
    memory.cache.seq_div(0, -1, -1, 1)
    assert [event.call for event in memory.seen if isinstance(event, NothingToDo)] == ["seq_cp", "seq_add", "seq_div"]
    assert memory.rows == before


def test_a_copy_frees_what_the_target_had_without_a_trace() -> None:
    memory = Memory(3)
    memory.decode((0, 2, (0,)), (0, 4, (1,)))
    memory.cache.seq_cp(0, 1, -1, -1)
    assert memory.rows == [(1, 0, 0, (0, 1)), (-1, -1, 0, ()), (-1, -1, -1, ())]
    assert not memory.cache.cells.delta.any()


def test_head_far_ahead_of_the_used_cells_starts_over() -> None:
    """Two sets count twice each, however many tokens they have."""
    memory = Memory(12)
    memory.decode(*((0, 1, (seq,)) for seq in range(8)))
    memory.decode((1, 1, (7,)))
    assert memory.cache.head == 7
    for seq in range(7):
        memory.cache.seq_rm(seq, -1, -1)
    assert memory.cache.head == 0
    memory.cache.head = 4
    assert memory.decode((0, 8, (0,))) == 0
    assert memory.cache.cells.tail[0] == 0


def test_a_failed_computation_removes_what_began_in_it() -> None:
    """A state that was there before cannot forget a part of it."""
    memory = Memory(2)
    memory.decode((0, 3, (0,)))
    batch = Batch.from_runs([(3, 2, (0,)), (0, 2, (1,))])
    assert memory.context.decode(batch, fail_at=0).ret == -3
    assert [row[::3] for row in memory.rows] == [(4, (0,)), (-1, ())]


def test_a_dangling_tail_ends_the_process() -> None:
    memory = Memory(2)
    memory.decode((0, 2, (0,)))
    memory.cache.seq_rm(-1, -1, -1)
    with pytest.raises(CacheAbort, match="the tail of sequence 0 points at cell 0") as raised:
        memory.decode((0, 1, (0,)))
    assert raised.value.quirk == "recurrent-dangling-tail"


def test_a_slot_without_a_spare_state_ends_the_process() -> None:
    """No decode leads there: a state elsewhere has the fresh cell as its source."""
    cells = MemoryCells(2)
    cells.src[1] = 0
    with pytest.raises(CacheAbort, match="every cell of the slot is a source"):
        cells.stage(0, 1)


def test_there_is_never_an_update_but_it_says_that_it_can_shift() -> None:
    memory = Memory(2)
    memory.decode((0, 2, (0,)))
    memory.cache.seq_add(0, -1, -1, 5)
    memory.context.defrag()
    assert not memory.context.update()
    assert memory.cache.can_shift


def test_bytes_begin_from_zero_or_from_their_source() -> None:
    memory = Memory(3, ssm_d_conv=2, ssm_d_inner=1, ssm_d_state=1)
    memory.cache.attach()
    memory.decode((0, 1, (0,)))
    tensors = memory.cache.tensors
    assert tensors is not None
    tensors.fill(1)
    state = tensors.k[0][0].tobytes()
    memory.cache.seq_cp(0, 1, -1, -1)
    memory.decode((1, 1, (1,)), (0, 1, (2,)))
    assert [row[3] for row in memory.rows] == [(0,), (1,), (2,)]
    assert [row.tobytes() for row in tensors.k[0]] == [state, state, bytes(4)]
    memory.cache.clear(data=False)
    assert tensors.k[0][0].tobytes() == state
    memory.cache.clear()
    assert not tensors.k[0].any()


def test_a_state_is_written_and_read_again() -> None:
    memory = Memory(4, n_layer=2)
    memory.cache.attach()
    memory.decode((0, 3, (0,)), (0, 2, (1,)))
    memory.cache.seq_cp(0, 2, -1, -1)
    whole, one = write_state(memory.cache), write_state(memory.cache, 2)
    other = Memory(4, n_layer=2)
    other.cache.attach()
    assert read_state(other.cache, whole) == len(whole)
    assert write_state(other.cache) == whole
    assert read_state(other.cache, one, 3) == len(one)
    assert other.rows == [(2, 0, 0, (0, 2)), (1, 1, 1, (1,)), (2, 2, 0, (3,)), (-1, -1, 2, ())]
    with pytest.raises(StateError, match="a sequence id below 4"):
        read_state(other.cache, one, 4)


def test_an_id_without_a_tail_ends_the_process_at_a_restore() -> None:
    """Upstream has no bound for ids in a stream; 64 and more fit in no set of this model."""
    stream = np.array([1, 0, 1, 2], "<i4").tobytes()
    with pytest.raises(CacheAbort, match="sequence 2 has no tail among 2 cells"):
        read_state(Memory(2).cache, stream)
    with pytest.raises(StateError, match="seq_id of cell 0 at byte 12 is 64"):
        read_state(Memory(2).cache, np.array([1, 0, 1, 64], "<i4").tobytes())


def test_a_scenario_asks_for_it_by_kind() -> None:
    scenario = Scenario.model_validate({"title": "t", "cache": {"kind": "memory_recurrent", "kv_size": 4}})
    context = make_context(scenario)
    assert isinstance(context, Context)
    assert isinstance(context.cache, RecurrentMemory)
    assert context.params.n_max_nodes == 65_536
    assert Scenario.from_json(scenario.to_json()) == scenario
