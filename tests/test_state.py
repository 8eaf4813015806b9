"""State streams of the unified cache byte for byte: the layout, and every field that does not agree."""

import struct

import pytest

from kvmodel.formats.errors import StateError
from kvmodel.formats.state import read_state, write_state
from kvmodel.formats.state_rows import read_rows
from kvmodel.formats.stream import Reader
from kvmodel.tensors import Layout
from tests.state_fields import FIELDS
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
