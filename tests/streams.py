"""State streams put together by hand, and what to do with them."""

import struct

import pytest

from kvmodel import events
from kvmodel.batch import Batch, UBatch
from kvmodel.caches.unified import UnifiedCache
from kvmodel.formats.errors import StateError
from kvmodel.formats.state import read_state
from kvmodel.types import CacheParams

CELLS = struct.pack("<I iIii iIi", 2, 0, 2, 0, 1, 1, 1, 0)
K = struct.pack("<iQ", 1, 4) + b"k0k0k1k1"
ROWS = CELLS + struct.pack("<II", 0, 1) + K + struct.pack("<iQ", 1, 4) + b"v0w0v1w1"
CHANNELS = CELLS + struct.pack("<II", 1, 1) + K + struct.pack("<iII", 1, 2, 2) + b"v0v1w0w1"
SINGLE = struct.pack("<I iIi iIi", 2, 0, 1, 7, 1, 1, 7) + ROWS[len(CELLS) :]
"""Two cells of one layer with two f16 elements in K and in V: (position 0, owners 0 and 1), (position 1, owner 0)."""


def params(v_trans: bool = False, **more) -> CacheParams:
    two = {"n_embd_head_k": 2, "n_embd_head_v": 2}
    return CacheParams(**{"kv_size": 4, "n_seq_max": 2, "n_pad": 1, "v_trans": v_trans} | two | more)


def unified(v_trans: bool = False, emit=events.silent, **more) -> UnifiedCache:
    cache = UnifiedCache(params(v_trans, **more), emit)
    cache.attach()
    return cache


def store(cache, *runs: tuple[int, int, list[int]]) -> None:
    """Put runs (first position, tokens, owners) into the first cells that are free."""
    for run in runs:
        ubatch = UBatch.plain(Batch.from_runs([run]))
        cache.apply_ubatch(cache.find_slot(len(ubatch)).cell, ubatch)


def patched(stream: bytes, at: int, code: str, value: int) -> bytes:
    piece = struct.pack(f"<{code}", value)
    return stream[:at] + piece + stream[at + len(piece) :]


def refusal(cache, stream: bytes, seq: int = -1) -> StateError:
    with pytest.raises(StateError) as caught:
        read_state(cache, stream, seq)
    return caught.value


def owners(cache) -> list[tuple[int, int]]:
    return list(zip(cache.cells.pos.tolist(), cache.cells.seqs.tolist(), strict=True))


def held(cache: UnifiedCache) -> bytes:
    return cache.tensors.k[0].tobytes() + cache.tensors.v[0].tobytes()
