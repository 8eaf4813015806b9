"""K and V as bytes: element types, rows and channels, patterns, moves, and the caches that hold them."""

import gzip
import json
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.iswa import IswaCache, IswaParams
from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.unified import UnifiedCache
from kvmodel.defrag import plan_defrag
from kvmodel.errors import ParamError
from kvmodel.ggml import KV_TYPES, dequantize, ggml_type, quantize, type_words
from kvmodel.limits import MAX_TENSOR_BYTES
from kvmodel.tensors import Layout, Tensors
from kvmodel.types import CacheParams

TRACES = Path(__file__).parent / "data" / "traces" / "state"

TYPES = {
    "f32": (0, 1, 4), "f16": (1, 1, 2), "q4_0": (2, 32, 18), "q4_1": (3, 32, 20), "q5_0": (6, 32, 22),
    "q5_1": (7, 32, 24), "q8_0": (8, 32, 34), "iq4_nl": (20, 32, 18), "bf16": (30, 1, 2),
}  # fmt: skip
"""ggml number, elements of a block, bytes of a block, as ggml.h and ggml-common.h give them."""

HALF = struct.pack("<e", 0.5)
NIBBLES = bytes(i | (15 - i) << 4 for i in range(16))
"""Element i is i, element 16 + i is 15 - i."""


def params(**more) -> CacheParams:
    return CacheParams(**{"kv_size": 8, "n_pad": 1, "n_embd_head_k": 2, "n_embd_head_v": 2} | more)


@pytest.mark.parametrize("name", KV_TYPES)
def test_types_are_those_of_ggml(name):
    kind = ggml_type(name)
    assert (kind.number, kind.block, kind.block_bytes) == TYPES[name]
    assert type_words(kind.number) == f"{name} ({kind.number})"


BLOCKS = {
    "f32": (struct.pack("<2f", 1.5, -2), [1.5, -2]),
    "f16": (struct.pack("<2e", 1.5, -2), [1.5, -2]),
    "bf16": (struct.pack("<2H", 0x3FC0, 0xC000), [1.5, -2]),
    "q8_0": (HALF + struct.pack("<32b", *range(-16, 16)), [q / 2 for q in range(-16, 16)]),
    "q4_0": (HALF + NIBBLES, [(q - 8) / 2 for q in (*range(16), *range(15, -1, -1))]),
    "q4_1": (HALF + struct.pack("<e", 3) + NIBBLES, [q / 2 + 3 for q in (*range(16), *range(15, -1, -1))]),
    "q5_0": (HALF + bytes([1, 0, 0, 0]) + NIBBLES, [0.0, *[(q - 16) / 2 for q in (*range(1, 16), *range(15, -1, -1))]]),
    "q5_1": (
        HALF + struct.pack("<e", 3) + bytes([1, 0, 0, 0]) + NIBBLES,
        [11.0, *[q / 2 + 3 for q in (*range(1, 16), *range(15, -1, -1))]],
    ),
    "iq4_nl": (
        HALF + NIBBLES,
        [q / 2 for q in (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)]
        + [q / 2 for q in (113, 89, 69, 53, 38, 25, 13, 1, -10, -22, -35, -49, -65, -83, -104, -127)],
    ),
}
"""One block of each type, put together by hand, and what it stands for."""


@pytest.mark.parametrize("name", KV_TYPES)
def test_what_a_block_stands_for(name):
    data, values = BLOCKS[name]
    rows = np.frombuffer(data, np.uint8).reshape(1, -1)
    found = dequantize(ggml_type(name), rows)
    assert found.dtype == np.float32
    assert found.tolist() == [values]


@pytest.mark.parametrize("name", [name for name in KV_TYPES if name not in ("q4_1", "q5_1", "iq4_nl")])
def test_a_row_survives_when_its_type_can_hold_it(name):
    kind = ggml_type(name)
    values = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
    data = quantize(kind, values)
    assert (data.dtype, data.shape) == (np.uint8, (2, kind.row_size(32)))
    again = quantize(kind, dequantize(kind, data))
    assert (again == data).all()
    steps = {"f32": 0, "f16": 2**-11, "bf16": 2**-8, "q8_0": 1 / 254, "q5_0": 1 / 16, "q4_0": 1 / 8}
    assert np.abs(dequantize(kind, data) - values).max() <= steps[name]


def test_half_precision_rounds_to_even():
    tie_down, tie_up = 1 + 2**-11, 1 + 3 * 2**-11
    data = quantize(ggml_type("f16"), np.array([[tie_down, tie_up, 1e30]], np.float32))
    assert data.tobytes() == struct.pack("<3H", 0x3C00, 0x3C02, 0x7C00)


def test_rows_without_elements():
    for name in KV_TYPES:
        assert dequantize(ggml_type(name), np.empty((3, 0), np.uint8)).shape == (3, 0)
        assert dequantize(ggml_type(name), np.empty((0, TYPES[name][2]), np.uint8)).shape == (0, TYPES[name][1])
    assert quantize(ggml_type("q4_0"), np.empty((0, 32), np.float32)).shape == (0, 18)


def test_what_cannot_be_encoded():
    with pytest.raises(ParamError, match="type is 'iq4_nl'; allowed: f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1:"):
        quantize(ggml_type("iq4_nl"), np.zeros((1, 32), np.float32))
    with pytest.raises(ParamError, match="row is 33; allowed: a multiple of 32 elements for type q8_0"):
        quantize(ggml_type("q8_0"), np.zeros((1, 33), np.float32))
    assert type_words(999) == "no known type (999)"


@pytest.mark.parametrize("path", sorted(TRACES.glob("*.gz")), ids=lambda path: path.name.split(".")[0])
def test_sizes_are_those_of_the_recorded_tensors(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        first = json.loads(next(lines))
    header, res = first["header"], first["res"]
    heads = header["n_head_kv"]
    model = params(
        kv_size=header["kv_size"], n_layer=header["n_layer"], type_k=header["type_k"], type_v=header["type_v"],
        n_head_kv=tuple(heads) if isinstance(heads, list) else heads, v_trans=header["v_trans"],
        n_embd_head_k=header["n_embd_head_k"], n_embd_head_v=header["n_embd_head_v"],
    )  # fmt: skip
    tensors = Tensors(Layout.of(model))
    per_layer = header["n_layer"] if header["kind"] == "iswa" else 1
    whole = res["kv"] if header["kind"] == "unified" else res["base"]
    assert sum(k.nbytes for k in tensors.k) == per_layer * whole["size_k_bytes"]
    assert sum(v.nbytes for v in tensors.v) == per_layer * whole["size_v_bytes"]


def pattern(n: int, layer: int, kind: int, seed: int) -> bytes:
    """The bytes that a fill writes, one at a time."""
    x = [(o * 2654435761 + layer * 40503 + kind * 97 + seed * 1013904223) % 2**32 for o in range(n)]
    return bytes(((v >> 24) ^ (v >> 8)) & 255 for v in x)


@pytest.mark.parametrize("v_trans", [False, True])
def test_a_fill_writes_the_pattern(v_trans):
    tensors = Tensors(Layout.of(params(n_layer=2, n_head_kv=(1, 3), v_trans=v_trans)))
    tensors.fill(7)
    for layer in (0, 1):
        k, v = tensors.k[layer], tensors.v[layer]
        assert k.tobytes() == pattern(k.nbytes, layer, 0, 7)
        assert v.tobytes() == pattern(v.nbytes, layer, 1, 7)
    tensors.clear()
    assert not any(array.any() for array in (*tensors.k, *tensors.v))


def test_a_large_fill_goes_on_where_it_was():
    tensors = Tensors(Layout.of(params(kv_size=4096, n_embd_head_k=200)))
    tensors.fill(2**31 - 1)
    data = tensors.k[0].tobytes()
    assert len(data) == 1_638_400
    for at in (0, 1 << 20, len(data) - 100):
        x = [(o * 2654435761 + (2**31 - 1) * 1013904223) % 2**32 for o in range(at, at + 100)]
        assert data[at : at + 100] == bytes(((v >> 24) ^ (v >> 8)) & 255 for v in x)


@given(st.lists(st.booleans(), min_size=1, max_size=24), st.integers(0, 6), st.booleans())
def test_a_defrag_moves_the_bytes_of_its_blocks(filled, budget, v_trans):
    n = len(filled)
    plan = plan_defrag(np.array(filled), budget)
    tensors = Tensors(Layout.of(params(kv_size=n, n_layer=2, n_head_kv=(1, 2), v_trans=v_trans)))
    tensors.fill(3)
    k = [bytearray(array.tobytes()) for array in tensors.k]
    v = [bytearray(array.tobytes()) for array in tensors.v]
    for src, dst, length in plan.moves.tolist():
        for layer, heads in enumerate((1, 2)):
            row = 4 * heads
            k[layer][dst * row : (dst + length) * row] = k[layer][src * row : (src + length) * row]
            strips = [(0, row)] if not v_trans else [(channel * n * 2, 2) for channel in range(2 * heads)]
            for begin, width in strips:
                to, start = begin + dst * width, begin + src * width
                v[layer][to : to + length * width] = v[layer][start : start + length * width]
    tensors.move(plan.src, plan.dst)
    assert [array.tobytes() for array in tensors.k] == k
    assert [array.tobytes() for array in tensors.v] == v


@pytest.mark.parametrize("v_trans", [False, True])
def test_rows_are_stored_at_a_slot(v_trans):
    tensors = Tensors(Layout.of(params(kv_size=4, type_k="f32", v_trans=v_trans)))
    k = np.array([[1, 2], [3, 4]], np.float32)
    tensors.store(0, 1, k, -k)
    assert tensors.k[0].tobytes() == struct.pack("<8f", 0, 0, 1, 2, 3, 4, 0, 0)
    order = (0, -1, -3, 0, 0, -2, -4, 0) if v_trans else (0, 0, -1, -2, -3, -4, 0, 0)
    assert tensors.v[0].tobytes() == struct.pack("<8e", *order)
    assert tensors.k_values(0, np.array([2, 0])).tolist() == [[3, 4], [0, 0]]
    assert tensors.v_values(0, slice(1, 3)).tolist() == [[-1, -2], [-3, -4]]
    assert tensors.v_rows(0, slice(1, 2)).tobytes() == struct.pack("<2e", -1, -2)


@pytest.mark.parametrize(
    ("layer", "begin", "k", "v", "message"),
    [
        (1, 0, (1, 2), (1, 2), "layer is 1; allowed: a whole number from 0 to 0"),
        (0, 7, (2, 2), (2, 2), "begin is 7; allowed: a whole number from 0 to 6"),
        (0, 0, (2, 3), (2, 2), r"k is 'an array of shape \(2, 3\)'; allowed: shape \(2, 2\)"),
        (0, 0, (2, 2), (1, 2), r"v is 'an array of shape \(1, 2\)'; allowed: shape \(2, 2\)"),
    ],
)
def test_rows_that_do_not_fit(layer, begin, k, v, message):
    tensors = Tensors(Layout.of(params()))
    with pytest.raises(ParamError, match=message):
        tensors.store(layer, begin, np.zeros(k, np.float32), np.zeros(v, np.float32))


def test_too_much_is_refused_before_it_is_taken():
    large = params(kv_size=1 << 20, n_head_kv=8, n_embd_head_k=128, n_embd_head_v=128)
    tracemalloc.start()
    with pytest.raises(ParamError, match=f"'4,294,967,296 bytes'; allowed: {MAX_TENSOR_BYTES:,} bytes at most"):
        Tensors(Layout.of(large))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 16


def test_a_quantised_v_cannot_be_transposed():
    wide = {"n_embd_head_k": 32, "n_embd_head_v": 32}
    with pytest.raises(ParamError, match="type_v is 'q8_0'; allowed: f32, f16 or bf16 while V is transposed"):
        UnifiedCache(params(type_v="q8_0", **wide)).attach()
    UnifiedCache(params(type_v="q8_0", v_trans=False, **wide)).attach()
    with pytest.raises(ParamError, match="n_embd_k_gqa is 2; allowed: a multiple of 32 elements for type q8_0"):
        UnifiedCache(params(type_k="q8_0")).attach()


def test_clear_zeroes_the_bytes_only_when_told():
    model = params(n_layer=2, swa_layers=(True, False), swa_type="standard", n_swa=2)
    cache = IswaCache(IswaParams(model, n_ubatch=4))
    cache.attach()
    for part in cache.parts:
        part.tensors.fill(1)
    before = [part.tensors.k[0].tobytes() for part in cache.parts]
    cache.clear(data=False)
    assert [part.tensors.k[0].tobytes() for part in cache.parts] == before
    cache.clear(data=True)
    assert not any(array.any() for part in cache.parts for array in (*part.tensors.k, *part.tensors.v))


@pytest.mark.parametrize("v_trans", [False, True])
def test_an_update_moves_the_bytes(v_trans):
    cache = UnifiedCache(params(kv_size=6, v_trans=v_trans))
    cache.attach()
    cache.apply_ubatch(0, UBatch.plain(Batch.from_runs([(0, 6, [0])])))
    cache.tensors.fill(1)
    rows = [[row.tobytes() for row in of(0, slice(6))] for of in (cache.tensors.k_rows, cache.tensors.v_rows)]
    cache.seq_rm(0, 1, 3)
    cache.update(cache.init_update(optimize=True, thold=0.0, n_max_nodes=65536))
    assert cache.cells.pos.tolist() == [0, 4, 5, 3, -1, -1]
    moved = [[row.tobytes() for row in of(0, slice(4))] for of in (cache.tensors.k_rows, cache.tensors.v_rows)]
    assert moved == [[of[i] for i in (0, 4, 5, 3)] for of in rows]


def test_the_older_cache_zeroes_and_moves_its_bytes():
    cache = LegacyCache(params(kv_size=6))
    cache.attach()
    cache.find_slot(UBatch.plain(Batch.from_runs([(0, 6, [0])])))
    cache.tensors.fill(1)
    rows = [row.tobytes() for row in cache.tensors.k[0]]
    columns = [row.tobytes() for row in cache.tensors.v_rows(0, slice(6))]
    cache.seq_rm(0, 1, 3)
    cache.defrag()
    cache.apply_defrag(8192)
    assert cache.cells.pos.tolist() == [0, 4, 5, 3, -1, -1]
    assert [row.tobytes() for row in cache.tensors.k[0][:4]] == [rows[i] for i in (0, 4, 5, 3)]
    assert [row.tobytes() for row in cache.tensors.v_rows(0, slice(4))] == [columns[i] for i in (0, 4, 5, 3)]
    cache.clear()
    assert not any(array.any() for array in (*cache.tensors.k, *cache.tensors.v))
