"""State streams against the literal reference, on whole, cut and damaged streams, and from cache to cache."""

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.unified import UnifiedCache
from kvmodel.formats.state import read_state, write_state
from kvmodel.limits import MAX_SEQ
from kvmodel.types import CacheParams, SWAType
from tests.reference import RefCache, Token, Window
from tests.reference.cache import Params
from tests.reference.state import Crash, RefTensors, Refused, read, write
from tests.state_pairs import damages, outcome, owners, uses

NUMBERS = {"f32": (0, 4), "f16": (1, 2), "bf16": (30, 2)}
"""ggml number and bytes of an element."""


@dataclass(frozen=True)
class Geometry:
    """A unified cache in plain values: heads per layer, K elements, V elements, types, owners, window."""

    size: int
    n_seq_max: int
    heads: tuple[int, ...]
    n_k: int
    n_v: int
    types: tuple[str, str]
    v_trans: bool
    window: Window

    def params(self) -> CacheParams:
        return CacheParams(
            kv_size=self.size, n_pad=1, n_seq_max=self.n_seq_max, n_layer=len(self.heads), n_head_kv=self.heads,
            n_embd_head_k=self.n_k, n_embd_head_v=self.n_v, type_k=self.types[0], type_v=self.types[1],
            v_trans=self.v_trans, swa_type=SWAType(self.window.kind), n_swa=self.window.n,
        )  # fmt: skip

    def tensors(self) -> RefTensors:
        (type_k, k), (type_v, v) = (NUMBERS[name] for name in self.types)
        channels = [h * self.n_v for h in self.heads]
        found = RefTensors(self.size, (type_k, type_v), [h * self.n_k * k for h in self.heads], self.v_trans)
        if self.v_trans:
            found.v_element, found.v_channels = v, channels
        else:
            found.v_rows = [n * v for n in channels]
        found.clear()
        return found


windows = st.sampled_from([Window(), Window("standard", 3), Window("chunked", 4)])

geometries = st.builds(
    Geometry,
    size=st.integers(4, 12),
    n_seq_max=st.integers(1, 4),
    heads=st.lists(st.integers(1, 2), min_size=1, max_size=2).map(tuple),
    n_k=st.integers(1, 3),
    n_v=st.integers(1, 3),
    types=st.tuples(st.sampled_from(sorted(NUMBERS)), st.sampled_from(sorted(NUMBERS))),
    v_trans=st.booleans(),
    window=windows,
)

groups = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3), owners), max_size=6)


class Pair:
    """The model and the reference, filled alike."""

    def __init__(self, geometry: Geometry, stored: list[tuple[int, int, tuple[int, ...]]], seed: int) -> None:
        self.geometry = geometry
        self.model = UnifiedCache(geometry.params())
        self.model.attach()
        self.ref = RefCache(Params(geometry.size, 1, geometry.window, len(geometry.heads)))
        self.bytes = geometry.tensors()
        for pos, n, seqs in stored:
            self.place(pos, n, seqs)
        self.fill(seed)

    def place(self, pos: int, n: int, seqs: tuple[int, ...]) -> None:
        cell = self.ref.find_slot(n).cell
        if cell >= 0:
            self.ref.apply_ubatch(cell, [Token(pos + k, seqs) for k in range(n)])
            self.model.apply_ubatch(cell, UBatch.plain(Batch.from_runs([(pos, n, seqs)])))

    def fill(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        for k, rows in zip(self.model.tensors.k, self.bytes.k, strict=True):
            k[:] = rng.integers(0, 256, k.shape)
            rows[:] = [row.tobytes() for row in k]
        for array, rows in zip(self.model.tensors.v, self.bytes.vt or self.bytes.v, strict=True):
            array[:] = rng.integers(0, 256, array.shape)
            rows[:] = [[e.tobytes() for e in row] if self.geometry.v_trans else row.tobytes() for row in array]

    def write(self, seq: int) -> bytes:
        data = write(self.ref, self.bytes, self.geometry.n_seq_max, seq)
        assert write_state(self.model, seq) == data
        return data

    def read(self, data: bytes, seq: int) -> bool:
        """Restore in both; whether the process lives on."""
        told = outcome(lambda: read_state(self.model, data, seq))
        try:
            expected = ("read", read(self.ref, self.bytes, self.geometry.n_seq_max, data, seq))
        except Refused as refusal:
            expected = (refusal.kind, refusal.consumed)
        except Crash:
            expected = ("crash", None)
        assert told == expected
        return expected[0] != "crash"

    def check(self) -> None:
        cells, ref = self.model.cells, self.ref.cells
        assert cells.pos.tolist() == ref.pos
        assert cells.shift.tolist() == ref.shift
        assert cells.seqs.tolist() == [sum(1 << seq for seq in seqs) for seqs in ref.seqs]
        assert (self.model.head, cells.used, cells.used_max_p1) == (self.ref.head, len(ref.used), ref.used_max_p1())
        for seq in range(MAX_SEQ):
            assert (cells.seq_pos_min(seq), cells.seq_pos_max(seq)) == (ref.pos_min(seq), ref.pos_max(seq))
        assert [[row.tobytes() for row in k] for k in self.model.tensors.k] == self.bytes.k
        v = self.model.tensors.v
        if self.geometry.v_trans:
            assert [[[e.tobytes() for e in row] for row in array] for array in v] == self.bytes.vt
        else:
            assert [[row.tobytes() for row in array] for array in v] == self.bytes.v
        assert cells.check_integrity() == []


@given(geometries, st.none() | geometries, groups, groups, uses, st.data())
def test_every_stream_is_read_as_the_reference_reads_it(geometry, other, written, there, use, data):
    of, into = use
    source, target = Pair(geometry, written, 1), Pair(other or geometry, there, 2)
    stream = data.draw(damages(source.write(of)))
    if target.read(stream, into):
        target.check()


@given(geometries, groups)
def test_a_cache_comes_back_from_its_own_stream(geometry, stored):
    """Cells close up and lose the ids that are not written; K and V go with them."""
    source = Pair(geometry, stored, 1).model
    stream = write_state(source)
    target = UnifiedCache(geometry.params())
    target.attach()
    assert read_state(target, stream) == len(stream)
    used = np.flatnonzero(source.cells.pos >= 0)
    n = len(used)
    assert target.cells.pos.tolist() == source.cells.pos[used].tolist() + [-1] * (geometry.size - n)
    kept = source.cells.seqs[used] & np.uint64((1 << geometry.n_seq_max) - 1)
    assert target.cells.seqs[:n].tolist() == kept.tolist()
    assert (target.cells.used, target.head) == (n, 0)
    for layer in range(len(geometry.heads)):
        assert (target.tensors.k_rows(layer, slice(n)) == source.tensors.k_rows(layer, used)).all()
        assert (target.tensors.v_rows(layer, slice(n)) == source.tensors.v_rows(layer, used)).all()
    assert write_state(target) == stream
