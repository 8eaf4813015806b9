"""State streams of the other caches: the pair, the older two, and files that llama.cpp wrote."""

import struct
from pathlib import Path

import numpy as np
import pytest

from kvmodel.caches.iswa import IswaCache, IswaParams
from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.recurrent import RecurrentCache
from kvmodel.caches.recurrent_params import RecurrentParams
from kvmodel.caches.unified import UnifiedCache
from kvmodel.errors import CacheAbort
from kvmodel.explain import explain
from kvmodel.formats.state import read_state, write_state
from kvmodel.types import CacheParams, SWAType
from tests.streams import ROWS, SINGLE, held, owners, params, patched, refusal

LIVE = Path(__file__).parent / "data" / "live"


def pair(**more) -> IswaCache:
    model = params(kv_size=8, n_layer=2, swa_layers=(True, False), swa_type=SWAType.STANDARD, n_swa=1, **more)
    cache = IswaCache(IswaParams(model, n_ubatch=2))
    cache.attach()
    return cache


def test_a_pair_reads_its_full_half_first_and_stops_at_a_failure():
    cache = pair()
    assert [part.size for part in cache.parts] == [8, 4]
    assert read_state(cache, ROWS + ROWS) == 2 * len(ROWS)
    assert [owners(part)[:3] for part in cache.parts] == [[(0, 3), (1, 1), (-1, 0)]] * 2
    assert write_state(cache) == ROWS + ROWS
    empty = struct.pack("<III iQ iQ", 0, 0, 1, 1, 4, 1, 4)
    error = refusal(cache, empty + patched(ROWS, 0, "I", 5))
    assert (error.kind, error.offset, error.consumed) == ("too_many_cells", len(empty), len(empty) + 4)
    assert [part.cells.used for part in cache.parts] == [0, 0]
    error = refusal(pair(), ROWS)
    assert (error.kind, error.consumed) == ("eof", len(ROWS))


def test_a_half_says_which_it_is():
    seen = []
    model = params(kv_size=8, n_layer=2, swa_layers=(True, False), swa_type=SWAType.STANDARD, n_swa=1)
    cache = IswaCache(IswaParams(model, n_ubatch=2), seen.append)
    write_state(cache)
    assert [explain(event) for event in seen] == [
        f"In {half}: The whole cache was written as 36 bytes: no cell; no K or V is attached, so their bytes are 0."
        for half in ("base", "swa")
    ]


def legacy() -> LegacyCache:
    cache = LegacyCache(params())
    cache.attach()
    return cache


def test_the_older_cache_counts_what_was_restored_only_at_the_end():
    cache = legacy()
    assert read_state(cache, ROWS) == len(ROWS)
    assert (owners(cache)[:3], cache.used, cache.head) == ([(0, 3), (1, 1), (-1, 0)], 2, 0)
    assert refusal(cache, ROWS[:24]).kind == "eof"
    assert (owners(cache)[:3], cache.used, cache.head) == ([(0, 3), (-1, 0), (-1, 0)], 0, 0)
    assert held(cache) == bytes(32)


def test_restored_cells_of_the_older_cache_inherit_deltas():
    cache = legacy()
    read_state(cache, ROWS)
    cache.seq_add(0, 1, -1, 3)
    read_state(cache, ROWS)
    assert cache.cells.delta.tolist() == [0, 3, 0, 0]


def test_the_older_cache_writes_a_sequence_without_ids():
    cache = legacy()
    read_state(cache, ROWS)
    stream = write_state(cache, 0)
    assert stream[:20] == struct.pack("<I iI iI", 2, 0, 0, 1, 0)
    assert read_state(cache, stream, 5) == len(stream)
    assert owners(cache) == [(0, 3), (1, 1), (0, 32), (1, 32)]
    assert (cache.head, cache.used) == (2, 4)
    assert refusal(cache, stream, 4).kind == "no_slot"
    error = refusal(cache, SINGLE, 5)
    assert (error.kind, str(error)) == ("not_single_seq", "n_seq_id of cell 0 at byte 8 is 1; allowed: 0")


STATES = struct.pack("<I iIi iIii", 2, -3, 1, 2, 9, 2, 0, 1) + struct.pack("<II iQ", 0, 1, 0, 4) + b"k0k0k1k1"
STATES += struct.pack("<iQ", 0, 4) + b"v0v0v1v1"
"""Two states: sequence 2 at position -3, sequences 0 and 1 at position 9."""


def recurrent(kv_size: int = 3) -> RecurrentCache:
    cache = RecurrentCache(RecurrentParams(kv_size=kv_size, n_seq_max=3, ssm_d_conv=2, ssm_d_inner=1, ssm_d_state=1))
    cache.attach()
    return cache


def test_a_recurrent_cache_points_its_tails_at_the_restored_states():
    cache = recurrent()
    assert read_state(cache, STATES) == len(STATES)
    assert owners(cache) == [(-3, 4), (9, 3), (-1, 0)]
    assert cache.cells.tail.tolist() == [1, 1, 0]
    assert cache.cells.src.tolist() == [0, 1, -1]
    assert (cache.used, cache.head, cache.cells.check_integrity()) == (2, 0, [])
    assert write_state(cache) == STATES
    assert refusal(cache, STATES[:28]).kind == "eof"
    assert (owners(cache)[:2], cache.cells.tail.tolist()) == ([(-3, 4), (9, 1)], [1, -1, 0])
    assert (cache.used, cache.cells.src.tolist()) == (0, [-1, -1, -1])


@pytest.mark.parametrize(("at", "seq"), [(24, 2), (28, 0), (28, 2)])
def test_a_sequence_has_one_state(at, seq):
    cache = recurrent()
    error = refusal(cache, patched(STATES, at, "i", seq))
    assert (error.kind, error.offset, error.consumed) == ("duplicate_tail", at, at + 4)
    assert str(error) == f"seq_id of cell 1 at byte {at} is {seq}; allowed: an id not met before"
    assert owners(cache) == [(-1, 0)] * 3
    assert cache.cells.tail.tolist() == [-1] * 3


def test_a_refusal_zeroes_the_states():
    cache = recurrent()
    read_state(cache, STATES)
    assert cache.tensors.k[0].tobytes() == b"k0k0k1k1" + bytes(4)
    refusal(cache, patched(STATES, 0, "I", 4))
    assert cache.tensors.k[0].tobytes() == bytes(12)


def test_a_recurrent_sequence_is_one_state():
    cache = recurrent()
    read_state(cache, STATES)
    one = write_state(cache, 1)
    assert one[:12] == struct.pack("<I iI", 1, 9, 0)
    assert read_state(cache, one, 2) == len(one)
    assert cache.cells.tail.tolist() == [1, 1, 0]
    assert cache.cells.src[cache.cells.tail[2]] == cache.cells.tail[2]
    assert refusal(cache, one, 3).expected == "a sequence id below 3, the cells of the cache"
    with pytest.raises(CacheAbort, match="storing sequence 0 removed part of it"):
        read_state(cache, struct.pack("<I iI iI", 2, 9, 0, 9, 0) + one[12:], 0)
    with pytest.raises(CacheAbort, match="sequence 2 has no tail among 2 cells"):
        read_state(recurrent(2), STATES)


def state_part(name: str) -> bytes:
    """The cache's stream inside a session or sequence file: what follows the tokens, names, outputs and logits."""
    data = (LIVE / name).read_bytes()
    magic, _version, n_tokens = struct.unpack_from("<III", data)
    at = 12 + 4 * n_tokens
    if magic == 0x67677371:
        return data[at:]
    for count, size in (("I", 1), ("I", 4), ("Q", 4), ("Q", 4)):
        [n] = struct.unpack_from(f"<{count}", data, at)
        at += struct.calcsize(count) + n * size
    return data[at:]


def live_params(name: str) -> CacheParams:
    """The cache of a recorded run: two layers with two KV heads each."""
    head = 16 if name.startswith("chat") else 32
    two = {"n_layer": 2, "n_head_kv": 2, "n_embd_head_k": head, "n_embd_head_v": head, "n_seq_max": 4}
    types = name.removeprefix("types-").split("-") if name.startswith("types") else ["f16", "f16"]
    fa = "-fa" in name
    return CacheParams(kv_size=256, n_pad=256 if fa else 32, type_k=types[0], type_v=types[1], v_trans=not fa, **two)


RUNS = ["chat-context-shift", "types-f32-f32", "types-q8_0-f16", "types-q8_0-q8_0-fa"]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(("version", "kind"), [("0.3.7", LegacyCache), ("0.3.11", UnifiedCache)])
@pytest.mark.parametrize(("file", "seq", "n"), [("session", -1, {"c": 72, "t": 11}), ("slot0", 0, {"c": 72, "t": 6})])
def test_a_file_that_llama_cpp_wrote_is_written_again(run, version, kind, file, seq, n):
    stream = state_part(f"{version}/{run}-{file}.bin")
    cache = kind(live_params(run))
    cache.attach()
    assert read_state(cache, stream, seq) == len(stream)
    assert np.count_nonzero(cache.cells.seqs) == cache.counters["used"] == n[run[0]]
    assert cache.tensors.k[1][: n[run[0]]].any(axis=1).all()
    assert write_state(cache, seq) == stream


@pytest.mark.parametrize("run", RUNS)
def test_one_generation_reads_the_whole_caches_of_the_other(run):
    old, new = LegacyCache(live_params(run)), UnifiedCache(live_params(run))
    for cache, stream in ((new, f"0.3.7/{run}-session.bin"), (old, f"0.3.11/{run}-session.bin")):
        cache.attach()
        data = state_part(stream)
        read_state(cache, data)
        assert write_state(cache) == data
    for cache, stream in ((new, f"0.3.7/{run}-slot0.bin"), (old, f"0.3.11/{run}-slot0.bin")):
        assert refusal(cache, state_part(stream), 0).kind == "not_single_seq"


def test_a_file_of_a_pair_is_written_again():
    """Six layers, every sixth without a window of 16; two sequences, ubatches of 16."""
    model = CacheParams(
        kv_size=128, n_layer=6, n_head_kv=2, n_embd_head_k=16, n_embd_head_v=16, n_seq_max=2,
        swa_type=SWAType.STANDARD, n_swa=16, swa_layers=(True,) * 5 + (False,),
    )  # fmt: skip
    cache = IswaCache(IswaParams(model, n_ubatch=16))
    cache.attach()
    stream = state_part("0.3.11/swa-slide-slot0.bin")
    assert read_state(cache, stream, 0) == len(stream)
    assert [part.cells.used for part in cache.parts] == [64, 24]
    assert (cache.seq_pos_min(0), cache.seq_pos_max(0)) == (40, 63)
    assert write_state(cache, 0) == stream


@pytest.mark.parametrize("version", ["0.3.7", "0.3.11"])
def test_a_file_of_a_recurrent_cache_is_written_again(version):
    cache = RecurrentCache(RecurrentParams(kv_size=4, n_seq_max=4, n_layer=2, ssm_d_inner=64, ssm_d_state=16))
    cache.attach()
    stream = state_part(f"{version}/recurrent-slot2.bin")
    assert read_state(cache, stream, 2) == len(stream)
    assert cache.cells.check_integrity() == []
    assert (cache.cells.tail.tolist(), cache.cells.src[0], cache.cells.pos[0]) == ([-1, -1, 0, -1], 0, 5)
    assert write_state(cache, 2) == stream
