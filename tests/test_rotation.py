"""The K-shift of whole caches: every layer, every type, every generation."""

from typing import Any

import numpy as np
import pytest

from kvmodel import rotation
from kvmodel.batch import Batch, UBatch
from kvmodel.caches.iswa import IswaCache, IswaParams
from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.unified import UnifiedCache
from kvmodel.errors import CacheAbort, KVModelError, ParamError
from kvmodel.events import Event, QuirkSeen, ShiftApplied
from kvmodel.ggml import dequantize, quantize
from kvmodel.rope import RopeParams, rotate
from kvmodel.rotation import SHIFTABLE, Rotation
from kvmodel.tensors import Layout, Tensors
from kvmodel.types import CacheParams

YARN = RopeParams(32, freq_scale=0.25, ext_factor=1.0, n_ctx_orig=64)
HEADS = (2, 1, 3)
CELLS = 6
SHIFT = np.array([0, 5, -3, 0, 4000, -1], np.int32)


def params(**more: Any) -> CacheParams:
    fields = {"n_pad": 1, "n_head_kv": 2, "n_embd_head_k": 32, "n_embd_head_v": 32, "type_v": "f32", "n_seq_max": 4}
    return CacheParams(**{"kv_size": CELLS} | fields | more)


def filled(**more: Any) -> tuple[CacheParams, Tensors]:
    """Three layers with different numbers of heads, K drawn at random."""
    p = params(n_layer=3, n_head_kv=HEADS, **more)
    tensors = Tensors(Layout.of(p))
    rng = np.random.default_rng(5)
    for rows, n in zip(tensors.k, tensors.layout.n_embd_k, strict=True):
        rows[:] = quantize(p.ggml_k, rng.standard_normal((CELLS, n), np.float32))
    tensors.v[0][:] = 7
    return p, tensors


@pytest.mark.parametrize("rope", [RopeParams(32), RopeParams(8, "neox"), YARN], ids=["norm", "partial neox", "yarn"])
@pytest.mark.parametrize("name", SHIFTABLE)
def test_every_layer_turns_cell_by_cell(name: str, rope: RopeParams) -> None:
    p, tensors = filled(type_k=name)
    before = [rows.copy() for rows in tensors.k]
    Rotation(rope).turn(tensors, p, SHIFT)
    for rows, old, heads in zip(tensors.k, before, HEADS, strict=True):
        values = dequantize(p.ggml_k, old).reshape(CELLS, heads, 32)
        wanted = [rotate(rope, values[cell : cell + 1], SHIFT[cell : cell + 1]) for cell in range(CELLS)]
        assert (rows == quantize(p.ggml_k, np.concatenate(wanted).reshape(CELLS, -1))).all()
    assert all((rows == 7).all() for rows in tensors.v[:1])


@pytest.mark.parametrize("name", SHIFTABLE)
def test_cells_without_a_shift_keep_their_bytes(name: str) -> None:
    p, tensors = filled(type_k=name)
    before = [rows.copy() for rows in tensors.k]
    Rotation(RopeParams(32)).turn(tensors, p, np.zeros(CELLS, np.int32))
    assert all((rows == old).all() for rows, old in zip(tensors.k, before, strict=True))


def test_the_magnitude_reaches_cells_without_a_shift() -> None:
    p, tensors = filled(type_k="f32")
    before = tensors.k_values(0, slice(None)).copy()
    Rotation(YARN).turn(tensors, p, np.zeros(CELLS, np.int32))
    assert (tensors.k_values(0, slice(None)) == before * np.float32(1 + 0.1 * np.log(4))).all()
    Rotation(YARN, magnitude="corrected").turn(tensors, p, np.zeros(CELLS, np.int32))
    assert (tensors.k_values(0, slice(None)) == before * np.float32(1 + 0.1 * np.log(4))).all()


def test_long_caches_are_turned_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, pieces = filled(type_k="q8_0"), filled(type_k="q8_0")
    Rotation(YARN).turn(whole[1], whole[0], SHIFT)
    monkeypatch.setattr(rotation, "CHUNK", 100)
    Rotation(YARN).turn(pieces[1], pieces[0], SHIFT)
    assert all((a == b).all() for a, b in zip(whole[1].k, pieces[1].k, strict=True))


REFUSED = [
    ({"type_k": "bf16"}, RopeParams(32), CacheAbort, "type_k is bf16; allowed for a K-shift: f32, f16, q8_0"),
    ({"type_k": "iq4_nl"}, RopeParams(32), ParamError, "type_k is 'iq4_nl'; allowed: f32, f16, q8_0"),
    ({"type_k": "q8_0", "n_embd_head_k": 16}, RopeParams(16), CacheAbort, "n_embd_head_k is 16; allowed for a K-shift"),
    ({"n_embd_head_k": 16}, RopeParams(32), ParamError, "n_rot is 32; allowed: at most n_embd_head_k = 16"),
]


@pytest.mark.parametrize(("fields", "rope", "kind", "told"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_shifted_is_told_and_left_alone(
    fields: dict[str, Any], rope: RopeParams, kind: type[KVModelError], told: str
) -> None:
    cache = UnifiedCache(params(**fields))
    cache.attach(Rotation(rope))
    place(cache)
    cache.tensors.fill(3)
    before = cache.tensors.k[0].copy()
    cache.seq_add(0, 0, -1, 2)
    with pytest.raises(kind) as caught:
        update(cache)
    assert str(caught.value).startswith(told)
    assert getattr(caught.value, "quirk", "") == ("bf16-shift-abort" if fields.get("type_k") == "bf16" else "")
    assert cache.has_shift
    assert (cache.tensors.k[0] == before).all()


@pytest.mark.parametrize("name", ["shift_sign", "magnitude"])
def test_a_behaviour_is_one_of_two(name: str) -> None:
    with pytest.raises(ParamError, match=f"{name} is 'right'; allowed: upstream, corrected"):
        Rotation(YARN, **{name: "right"})


def place(cache: UnifiedCache | LegacyCache, begin: int = 0, n: int = 4) -> None:
    ubatch = UBatch.plain(Batch.from_runs([(begin, n, (0,))]))
    if isinstance(cache, UnifiedCache):
        cache.apply_ubatch(begin, ubatch)
    else:
        cache.find_slot(ubatch)


def update(cache: UnifiedCache | LegacyCache) -> np.ndarray:
    if isinstance(cache, LegacyCache):
        return cache.apply_shift()
    return cache.update(cache.init_update(optimize=False, thold=0, n_max_nodes=65_536))["kv"]


def made(kind: type[UnifiedCache] | type[LegacyCache], how: Rotation | None, **more: Any) -> Any:
    """A cache of 4 tokens whose keys are drawn at random, and the list of its events."""
    events: list[Event] = []
    cache = kind(params(type_k="f32", **more), events.append)
    cache.attach(how)
    place(cache)
    cache.tensors.k[0][:] = quantize(cache.params.ggml_k, np.random.default_rng(1).standard_normal((CELLS, 64)))
    return cache, events


def keys(cache: Any) -> np.ndarray:
    return cache.tensors.k_values(0, slice(None)).reshape(CELLS, 2, 32).copy()


@pytest.mark.parametrize("kind", [UnifiedCache, LegacyCache])
def test_a_cache_turns_its_keys_when_a_shift_is_applied(kind: Any) -> None:
    rope = RopeParams(32)
    cache, events = made(kind, Rotation(rope))
    before = keys(cache)
    cache.seq_add(0, 2, -1, 9)
    assert (keys(cache) == before).all()
    shift = update(cache)
    assert shift.tolist() == [0, 0, 9, 9, 0, 0]
    assert (keys(cache) == rotate(rope, before, shift)).all()
    assert [event.rotated for event in events if isinstance(event, ShiftApplied)] == [True]
    assert not any(isinstance(event, QuirkSeen) for event in events)


@pytest.mark.parametrize("kind", [UnifiedCache, LegacyCache])
def test_without_a_rotation_or_a_model_that_rotates_the_bytes_stay(kind: Any) -> None:
    for cache, _ in (made(kind, None), made(kind, Rotation(YARN), rope=False)):
        before = keys(cache)
        cache.seq_add(0, 0, -1, 9)
        update(cache)
        assert (keys(cache) == before).all()
        assert not cache.has_shift


def test_a_cache_without_tensors_drops_its_shift_whatever_its_type() -> None:
    cache = UnifiedCache(params(type_k="bf16"))
    cache.rotation = Rotation(YARN)
    place(cache)
    cache.seq_add(0, 0, -1, 2)
    assert update(cache).tolist() == [2, 2, 2, 2, 0, 0]


def test_the_older_cache_turns_freed_cells_by_what_they_kept() -> None:
    """Quirk stale-delta: cells 2 and 3 are freed with their delta, and their bytes turn."""
    cache, _ = made(LegacyCache, Rotation(RopeParams(32)))
    before = keys(cache)
    cache.seq_add(0, 2, -1, 9)
    cache.seq_rm(0, 2, -1)
    assert (keys(cache) == before).all()
    update(cache)
    assert (keys(cache) == rotate(RopeParams(32), before, np.array([0, 0, 9, 9, 0, 0], np.int32))).all()


def test_the_newer_cache_leaves_freed_cells_alone() -> None:
    cache, _ = made(UnifiedCache, Rotation(RopeParams(32)))
    before = keys(cache)
    cache.seq_add(0, 1, -1, 9)
    cache.seq_rm(0, 10, -1)
    update(cache)
    assert (keys(cache)[2:] == before[2:]).all()


def test_mrope_shifts_as_neox_and_not_at_all_in_the_older_cache() -> None:
    cache, _ = made(UnifiedCache, Rotation(RopeParams(32, "mrope")))
    before = keys(cache)
    cache.seq_add(0, 0, -1, 3)
    shift = update(cache)
    assert (keys(cache) == rotate(RopeParams(32, "neox"), before, shift)).all()
    older, _ = made(LegacyCache, Rotation(RopeParams(32, "mrope")))
    older.seq_add(0, 0, -1, 3)
    with pytest.raises(CacheAbort, match="rope_type is mrope; allowed for a K-shift here: norm, neox"):
        update(older)


@pytest.mark.parametrize(
    ("how", "arch", "seen"),
    [
        (Rotation(YARN), "llama", ["yarn-shift-magnitude"]),
        (Rotation(YARN, magnitude="corrected"), "llama", []),
        (Rotation(YARN), "deepseek2", []),
        (Rotation(RopeParams(32)), "llama", []),
    ],
)
def test_a_shift_that_scales_says_so(how: Rotation, arch: str, seen: list[str]) -> None:
    cache, events = made(UnifiedCache, how, arch=arch)
    lengths = np.linalg.norm(keys(cache))
    cache.seq_add(0, 0, -1, 3)
    update(cache)
    assert [event.quirk for event in events if isinstance(event, QuirkSeen)] == seen
    factor = 1 + 0.1 * np.log(4) if seen else 1
    assert np.linalg.norm(keys(cache)) / lengths == pytest.approx(factor, rel=1e-6)


def test_dividing_turns_the_wrong_way_unless_corrected() -> None:
    for sign, shift, seen in (("upstream", [0, 1, 1, 2], ["div-shift-sign"]), ("corrected", [0, -1, -1, -2], [])):
        cache, events = made(UnifiedCache, Rotation(RopeParams(32), shift_sign=sign))
        before = keys(cache)
        cache.seq_div(0, 0, -1, 2)
        assert cache.cells.check_integrity() == []
        assert cache.cells.shift.tolist() == [*shift, 0, 0]
        update(cache)
        assert (keys(cache) == rotate(RopeParams(32), before, np.array([*shift, 0, 0], np.int32))).all()
        assert [event.quirk for event in events if isinstance(event, QuirkSeen)] == seen


def test_each_half_of_a_pair_has_its_own_rotation() -> None:
    model = params(
        kv_size=32, n_pad=32, n_layer=2, type_k="f32", swa_type="standard", n_swa=8, swa_layers=(True, False)
    )
    pair = IswaCache(IswaParams(model, n_ubatch=4, swa_full=True))
    pair.attach()
    ropes = {"base": RopeParams(32, freq_base=1e6), "swa": RopeParams(32)}
    before = {}
    for part in pair.parts:
        part.rotation = Rotation(ropes[part.name])
        part.tensors.k[0][:] = quantize(model.ggml_k, np.random.default_rng(2).standard_normal((32, 64)))
        before[part.name] = part.tensors.k_values(0, slice(None)).reshape(32, 2, 32).copy()
        place(part)
    pair.seq_add(0, 0, -1, 6)
    shifts = pair.update(pair.init_update(optimize=False, thold=0, n_max_nodes=65_536))
    for part in pair.parts:
        wanted = rotate(ropes[part.name], before[part.name], shifts[part.name])
        assert (part.tensors.k_values(0, slice(None)).reshape(32, 2, 32) == wanted).all()
