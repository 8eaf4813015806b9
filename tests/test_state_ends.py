"""State streams that end early, lie about their sizes, or lose an end: what is left and what is said."""

import struct
import tracemalloc

import pytest

from kvmodel import events
from kvmodel.caches.unified import UnifiedCache
from kvmodel.errors import CacheAbort, ParamError
from kvmodel.explain import explain
from kvmodel.formats.errors import STATE_KINDS
from kvmodel.formats.state import read_state, write_state
from kvmodel.limits import MAX_STATE_BYTES
from tests.state_fields import FIELDS
from tests.streams import CHANNELS, ROWS, SINGLE, held, owners, params, patched, refusal, store, unified

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
