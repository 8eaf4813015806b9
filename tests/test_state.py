"""State streams of the unified cache byte for byte: the layout, every refusal, and what a refusal leaves."""

import struct
import tracemalloc

import pytest

from kvmodel import events
from kvmodel.caches.unified import UnifiedCache
from kvmodel.errors import CacheAbort, ParamError
from kvmodel.explain import explain
from kvmodel.formats.errors import STATE_KINDS, StateError
from kvmodel.formats.state import read_state, write_state
from kvmodel.formats.state_rows import read_rows
from kvmodel.formats.stream import Reader
from kvmodel.limits import MAX_STATE_BYTES
from kvmodel.tensors import Layout
from tests.streams import CHANNELS, ROWS, SINGLE, held, owners, params, patched, refusal, store, unified


@pytest.mark.parametrize("stream", [ROWS, CHANNELS], ids=["rows", "channels"])
def test_the_layout(stream):
    cache = unified(v_trans=stream is CHANNELS)
    assert read_state(cache, stream) == len(stream)
    assert owners(cache) == [(0, 0b11), (1, 0b01), (-1, 0), (-1, 0)]
    assert cache.cells.check_integrity() == []
    assert (cache.head, cache.cells.used, cache.has_shift) == (0, 2, False)
    assert [(cache.seq_pos_min(s), cache.seq_pos_max(s)) for s in (0, 1)] == [(0, 1), (0, 0)]
    assert [row.tobytes() for row in cache.tensors.k_rows(0, slice(2))] == [b"k0k0", b"k1k1"]
    assert [row.tobytes() for row in cache.tensors.v_rows(0, slice(2))] == [b"v0w0", b"v1w1"]
    assert write_state(cache) == stream


def test_one_sequence_is_written_as_its_only_owner():
    cache = unified()
    read_state(cache, ROWS)
    one = struct.pack("<I iIi", 1, 0, 1, 1) + struct.pack("<II iQ", 0, 1, 1, 4) + b"k0k0"
    assert write_state(cache, 1) == one + struct.pack("<iQ", 1, 4) + b"v0w0"


def test_one_sequence_is_read_into_a_slot_of_its_own():
    cache = unified(kv_size=6)
    store(cache, (5, 1, [0]), (9, 2, [1]))
    cache.seq_rm(0, -1, -1)
    assert read_state(cache, SINGLE, 1) == len(SINGLE)
    assert owners(cache) == [(0, 0b10), (1, 0b10)] + [(-1, 0)] * 4
    store(cache, (7, 3, [0]))
    assert read_state(cache, SINGLE, 1) == len(SINGLE)
    assert owners(cache) == [(0, 0b10), (1, 0b10), (7, 1), (8, 1), (9, 1), (-1, 0)]
    assert cache.head == 0
    assert [row.tobytes() for row in cache.tensors.k_rows(0, slice(2))] == [b"k0k0", b"k1k1"]


def test_any_number_but_0_says_transposed():
    assert read_state(unified(v_trans=True), patched(CHANNELS, 32, "I", 7)) == len(CHANNELS)


def test_what_follows_a_stream_is_left():
    assert read_state(unified(), ROWS + b"more") == len(ROWS)


def test_a_stream_can_be_any_buffer():
    for data in (bytearray(ROWS), memoryview(ROWS), memoryview(b"x" + ROWS)[1:]):
        assert read_state(unified(), data) == len(ROWS)


FIELDS = [
    ("too_many_cells", ROWS, 0, "I", 5, 4, "cell_count at byte 0 is 5; allowed: 4 at most"),
    ("bad_seq_id", ROWS, 16, "i", 2, 20, "seq_id of cell 0 at byte 16 is 2; allowed: 0 to 1"),
    ("bad_seq_id", ROWS, 28, "i", -1, 32, "seq_id of cell 1 at byte 28 is -1; allowed: 0 to 1"),
    ("bad_pos", ROWS, 20, "i", -5, 24, "pos of cell 1 at byte 20 is -5; allowed: 0 to 2,147,483,647"),
    ("layer_count", ROWS, 36, "I", 2, 40, "number of layers at byte 36 is 2; allowed: 1"),
    ("v_trans", ROWS, 32, "I", 3, 40, "v_trans at byte 32 is 3; allowed: 0"),
    ("v_trans", CHANNELS, 32, "I", 0, 40, "v_trans at byte 32 is 0; allowed: 1"),
    ("key_type", ROWS, 40, "i", 8, 44, "K type of layer 0 at byte 40 is q8_0 (8); allowed: f16 (1)"),
    ("key_type", ROWS, 40, "i", -9, 44, "K type of layer 0 at byte 40 is no known type (-9); allowed: f16 (1)"),
    ("key_row_size", ROWS, 44, "Q", 2**63, 52, "K row size of layer 0 at byte 44 is 9,223,372,036,854,775,808 bytes"),
    ("value_type", ROWS, 60, "i", 0, 64, "V type of layer 0 at byte 60 is f32 (0); allowed: f16 (1)"),
    ("value_type", CHANNELS, 60, "i", 0, 64, "V type of layer 0 at byte 60 is f32 (0); allowed: f16 (1)"),
    ("value_row_size", ROWS, 64, "Q", 6, 72, "V row size of layer 0 at byte 64 is 6 bytes; allowed: 4 bytes"),
    ("value_el_size", CHANNELS, 64, "I", 4, 68, "V element size of layer 0 at byte 64 is 4 bytes; allowed: 2 bytes"),
    ("value_gqa", CHANNELS, 68, "I", 3, 72, "V channels of layer 0 at byte 68 is 3; allowed: 2"),
]


@pytest.mark.parametrize(("kind", "stream", "at", "code", "value", "consumed", "message"), FIELDS)
def test_a_field_that_does_not_agree_clears_the_cache(kind, stream, at, code, value, consumed, message):
    cache = unified(v_trans=stream is CHANNELS)
    store(cache, (3, 2, [1]))
    cache.tensors.fill(1)
    error = refusal(cache, patched(stream, at, code, value))
    assert (error.kind, error.offset, error.consumed) == (kind, at, consumed)
    assert str(error).startswith(message)
    assert owners(cache) == [(-1, 0)] * 4
    assert (cache.head, held(cache)) == (0, bytes(32))


@pytest.mark.parametrize(
    ("kind", "at", "value", "consumed", "message"),
    [
        ("not_single_seq", 8, 0, 12, "n_seq_id of cell 0 at byte 8 is 0; allowed: 1"),
        ("not_single_seq", 20, 2**32 - 1, 24, "n_seq_id of cell 1 at byte 20 is 4,294,967,295; allowed: 1"),
        ("layer_count", 32, 9, 36, "number of layers at byte 32 is 9; allowed: 1"),
    ],
)
def test_a_refused_sequence_is_removed_and_the_others_stay(kind, at, value, consumed, message):
    cache = unified()
    store(cache, (3, 2, [0]), (3, 2, [1]))
    cache.tensors.fill(1)
    before = held(cache)
    error = refusal(cache, patched(SINGLE, at, "I", value), 1)
    assert (error.kind, error.offset, error.consumed, str(error)) == (kind, at, consumed, message)
    assert owners(cache) == [(3, 1), (4, 1), (-1, 0), (-1, 0)]
    assert held(cache) == before


@pytest.mark.parametrize(
    ("stored", "room"),
    [((0, 3, [0]), "at most 1, the longest run of usable cells"), ((0, 4, [0]), "at most 0, the longest run")],
)
def test_no_slot_names_the_room_there_is(stored, room):
    cache = unified()
    store(cache, stored)
    error = refusal(cache, SINGLE, 1)
    assert (error.kind, error.offset, error.consumed) == ("no_slot", 0, 28)
    assert str(error).startswith(f"cell_count at byte 0 is 2; allowed: {room}")
    assert cache.seq_pos_max(1) == -1


def test_a_sequence_larger_than_the_cache_has_no_slot():
    cells = b"".join(struct.pack("<iIi", pos, 1, 0) for pos in range(5))
    error = refusal(unified(), struct.pack("<I", 5) + cells, 0)
    assert (error.kind, error.consumed) == ("no_slot", 64)
    assert str(error) == "cell_count at byte 0 is 5; allowed: at most 4, the cells of the cache"


def test_too_many_cells_before_their_data():
    """No stream gets to this check, since too_many_cells or no_slot comes first; upstream has it all the same."""
    reader = Reader(struct.pack("<II", 0, 1))
    with pytest.raises(StateError, match="cell_count at byte 0 is 5; allowed: 4 at most") as caught:
        read_rows(reader, Layout.of(params()), None, 0, 5)
    assert (caught.value.kind, caught.value.consumed) == ("too_many_cells_data", 8)


CUTS = [
    (3, 0, [(3, 2), (4, 2), (-1, 0), (-1, 0)], None, "cell_count"),
    (4, 4, [(-1, 0)] * 4, 0, "pos of cell 0"),
    (11, 8, [(-1, 0)] * 4, 0, "n_seq_id of cell 0"),
    (12, 12, [(0, 0b00), (-1, 0), (-1, 0), (-1, 0)], 0, "seq_id of cell 0"),
    (16, 16, [(0, 0b01), (-1, 0), (-1, 0), (-1, 0)], 0, "seq_id of cell 0"),
    (31, 28, [(0, 0b11), (1, 0b00), (-1, 0), (-1, 0)], 0, "seq_id of cell 1"),
    (32, 32, [(0, 0b11), (1, 0b01), (-1, 0), (-1, 0)], 0, "v_trans"),
    (51, 44, [(0, 0b11), (1, 0b01), (-1, 0), (-1, 0)], 0, "K row size of layer 0"),
    (59, 52, [(0, 0b11), (1, 0b01), (-1, 0), (-1, 0)], 0, "K of layer 0"),
    (75, 72, [(0, 0b11), (1, 0b01), (-1, 0), (-1, 0)], 8, "V of layer 0, channel 0"),
    (79, 76, [(0, 0b11), (1, 0b01), (-1, 0), (-1, 0)], 12, "V of layer 0, channel 1"),
]


@pytest.mark.parametrize(("length", "consumed", "cells", "n_bytes", "field"), CUTS)
def test_an_early_end_leaves_what_was_read(length, consumed, cells, n_bytes, field):
    cache = unified(v_trans=True)
    store(cache, (3, 2, [1]))
    cache.tensors.fill(1)
    before = held(cache)
    error = refusal(cache, CHANNELS[:length])
    assert (error.kind, error.offset, error.consumed, error.field) == ("eof", consumed, consumed, field)
    assert owners(cache) == cells
    assert cache.cells.check_integrity() == []
    read = b"k0k0k1k1"[: n_bytes or 0].ljust(16, b"\0") + (b"v0v1" if n_bytes == 12 else b"").ljust(16, b"\0")
    assert held(cache) == (before if n_bytes is None else read)


def test_a_sequence_that_ends_early_is_gone():
    cache = unified()
    store(cache, (3, 2, [0]), (3, 2, [1]))
    error = refusal(cache, SINGLE[:20], 1)
    assert (error.kind, error.consumed, error.field) == ("eof", 20, "n_seq_id of cell 1")
    assert owners(cache) == [(3, 1), (4, 1), (-1, 0), (-1, 0)]


def test_a_sequence_that_ends_within_its_rows_stays():
    cache = unified()
    assert refusal(cache, SINGLE[:-1], 1).kind == "eof"
    assert owners(cache) == [(0, 2), (1, 2), (-1, 0), (-1, 0)]
    assert cache.head == 0


def test_every_reason_is_known():
    assert {kind for kind, *_ in FIELDS} | {"eof", "not_single_seq", "no_slot", "too_many_cells_data"} == set(
        STATE_KINDS
    ) - {"duplicate_tail"}


def test_restoring_a_sequence_of_no_cells_crashes():
    stream = write_state(unified(), 0)
    assert stream[:4] == bytes(4)
    with pytest.raises(CacheAbort, match="sequence 1 from 0 cells") as caught:
        read_state(unified(), stream, 1)
    assert caught.value.quirk == "state-empty-seq"
    assert read_state(unified(), stream) == len(stream)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_sequence_that_loses_an_end_while_it_is_stored_crashes(lost):
    class Purging(UnifiedCache):
        def apply_ubatch(self, *args, **kwargs):
            super().apply_ubatch(*args, **kwargs)
            self.seq_rm(1, lost, lost + 1)

    with pytest.raises(CacheAbort, match="storing sequence 1 removed part of it"):
        read_state(Purging(params()), SINGLE, 1)


def test_ids_of_n_seq_max_and_above_are_not_written():
    seen = []
    cache = unified(emit=seen.append)
    store(cache, (0, 1, [5]), (0, 1, [1, 2]))
    stream = write_state(cache)
    assert stream[:24] == struct.pack("<I iI iIi", 2, 0, 0, 0, 1, 1)
    [quirk] = [event for event in seen if isinstance(event, events.QuirkSeen)]
    assert quirk.quirk == "state-ids-dropped"
    assert "2 cells have owners of n_seq_max = 2 or more" in explain(quirk)
    target = unified()
    read_state(target, stream)
    assert owners(target) == [(0, 0), (0, 2), (-1, 0), (-1, 0)]
    assert target.cells.used == 2


def test_a_restored_owner_named_twice_is_counted_twice():
    seen = []
    cache = unified(emit=seen.append)
    twice = patched(ROWS, 16, "i", 0)
    read_state(cache, twice)
    assert owners(cache)[0] == (0, 1)
    assert [event.quirk for event in seen if isinstance(event, events.QuirkSeen)] == ["cp-double-count"]
    cache.seq_rm(0, -1, -1)
    assert cache.cells.used == 0
    assert (cache.seq_pos_min(0), cache.seq_pos_max(0)) == (0, 0)


def test_without_tensors_bytes_are_zero_and_skipped():
    cache = UnifiedCache(params())
    assert read_state(cache, ROWS) == len(ROWS)
    assert write_state(cache) == ROWS.replace(b"k0k0k1k1", bytes(8)).replace(b"v0w0v1w1", bytes(8))
    assert refusal(cache, ROWS[:-1]).field == "V of layer 0"


@pytest.mark.parametrize("seq", [-2, 64, 1.5, True, "0"])
def test_a_sequence_that_cannot_be(seq):
    for call in (lambda: write_state(unified(), seq), lambda: read_state(unified(), ROWS, seq)):
        with pytest.raises(ParamError, match=r"seq is .*; allowed: a whole number from -1 to 63"):
            call()


def test_something_that_has_no_state():
    class Other:
        parts = (object(),)

    with pytest.raises(ParamError, match="cache is 'object'; allowed: a unified, iSWA, legacy or recurrent cache"):
        write_state(Other())


LYING = {
    "cells of one sequence": (struct.pack("<I", 2**32 - 1) + SINGLE[4:28] * 20, 1, "eof"),
    "owners of a cell": (patched(ROWS, 8, "I", 2**32 - 1), -1, "bad_seq_id"),
    "owners without end": (struct.pack("<IiI", 1, 0, 2**32 - 1) + bytes(400), -1, "eof"),
    "cells of a cache": (patched(ROWS, 0, "I", 2**32 - 1), -1, "too_many_cells"),
    "row size": (patched(ROWS, 44, "Q", 2**64 - 1), -1, "key_row_size"),
    "channels": (patched(CHANNELS, 68, "I", 2**32 - 1), -1, "value_gqa"),
}


@pytest.mark.parametrize("what", LYING)
def test_a_stream_that_claims_too_much_takes_no_memory(what):
    stream, seq, kind = LYING[what]
    cache = unified(v_trans=what == "channels")
    tracemalloc.start()
    error = refusal(cache, stream, seq)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert error.kind == kind
    assert peak < 1 << 16


def test_a_stream_too_large_to_write_is_refused_first():
    n = 32_768
    cache = UnifiedCache(params(kv_size=n, n_layer=32, n_head_kv=8, n_embd_head_k=128, n_embd_head_v=128))
    store(cache, (0, n, [0]))
    tracemalloc.start()
    with pytest.raises(ParamError, match=f"allowed: {MAX_STATE_BYTES:,} bytes at most"):
        write_state(cache)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 22


def test_what_was_done_is_told():
    seen = []
    cache = unified(emit=seen.append)
    store(cache, (0, 2, [1]))
    stream = write_state(cache, 1)
    read_state(cache, stream, 0)
    refusal(cache, stream[:-1], 0)
    refusal(cache, patched(stream, 8, "I", 3), 0)
    told = [event for event in seen if isinstance(event, events.StateWritten | events.StateRead | events.StateRefused)]
    at_end = "V of layer 0 at byte 68 is 7 of 8 bytes, where the stream ends; allowed: 8 bytes"
    assert [explain(event) for event in told] == [
        "Sequence 1 was written as 76 bytes: 2 cells (0-1).",
        "Sequence 0 was restored from 76 bytes into 2 cells (2-3); head is 2.",
        f"The state was refused (eof): {at_end}; what was read before stays, since the clean-up is skipped.",
        "The state was refused (not_single_seq): n_seq_id of cell 0 at byte 8 is 3; allowed: 1; sequence 0 is removed.",
    ]
    quirks = [event.quirk for event in seen if isinstance(event, events.QuirkSeen)]
    assert quirks == ["state-truncated"]
