"""The recurrent memory of mid-2025 against its literal reference, on anything Hypothesis draws."""

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kvmodel.batch import Batch
from kvmodel.caches.base import MemoryStatus
from kvmodel.caches.memory_recurrent import RecurrentMemory
from kvmodel.caches.recurrent_params import RecurrentParams
from kvmodel.errors import CacheAbort
from kvmodel.events import Event
from kvmodel.explain import explain
from tests.reference import INT32_MAX, INT32_MIN, Token
from tests.reference.memory_recurrent import MemoryState, RefMemory
from tests.reference.recurrent_edits import RefAbort

T = TypeVar("T")

MACHINE = settings(
    max_examples=150,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
ends = st.one_of(st.sampled_from([-1, -1, 0, INT32_MAX, INT32_MIN]), st.integers(-3, 40))


def state_of(memory: RecurrentMemory) -> dict[str, object]:
    columns = [memory.arrays[name].tolist() for name in ("pos", "delta", "src", "src0", "tail", "token")]
    rows = [(*row, set(memory.cells.owners(i))) for i, row in enumerate(zip(*columns, strict=True))]
    spans = [(memory.seq_pos_min(seq), memory.seq_pos_max(seq)) for seq in range(-1, memory.size + 1)]
    counters = (memory.head, memory.used, memory.n, memory.cells.rs_z, memory.lost)
    return {"cells": rows, "counters": counters, "spans": spans}


def reference_state(ref: RefMemory) -> dict[str, object]:
    cells = [cell for cell in ref.cells if isinstance(cell, MemoryState)]
    rows = [(c.pos, c.delta, c.src, c.src0, c.tail, c.token, c.ids) for c in cells]
    spans = [(ref.seq_pos_min(seq), ref.seq_pos_max(seq)) for seq in range(-1, ref.size + 1)]
    return {"cells": rows, "counters": (ref.head, ref.used, ref.n, ref.rs_z, ref.blamed), "spans": spans}


class MemoryMachine(RuleBasedStateMachine):
    """Every rule does one thing to both and compares what they give back."""

    @initialize(size=st.sampled_from([1, 2, 3, 4, 5, 8, 12]))
    def make(self, size: int) -> None:
        self.n_tokens = 0
        self.model = RecurrentMemory(RecurrentParams(size, n_seq_max=size), self._record)
        self.ref = RefMemory(size)
        self._decode([Token(k, (seq,)) for seq in range(size) for k in range(1 + seq % 3)], 4)

    def _record(self, event: Event) -> None:
        said = explain(event)
        assert said.endswith(".")
        assert not any(odd in said for odd in ("array(", "np.", "None", "  "))

    def _both(self, model: Callable[[], T], reference: Callable[[], T]) -> None:
        """Carry both out; they agree on what comes out, or both abort and start anew."""
        try:
            expected = reference()
        except RefAbort as abort:
            self._both_abort(model, abort.quirk)
            return
        assert model() == expected

    def _both_abort(self, model: Callable[[], object], quirk: str) -> None:
        with pytest.raises(CacheAbort) as raised:
            model()
        assert raised.value.quirk == quirk
        size = self.model.size
        self.model = RecurrentMemory(RecurrentParams(size, n_seq_max=size), self._record)
        self.ref = RefMemory(size)

    def _decode(self, tokens: list[Token], n_ubatch: int) -> None:
        tokens = [Token(token.pos, token.seqs, self.n_tokens + k) for k, token in enumerate(tokens)]
        self.n_tokens += len(tokens)
        batch = Batch.from_runs([(t.pos, 1, t.seqs) for t in tokens], token=[t.serial for t in tokens])

        def model() -> list[tuple[int, int]] | None:
            prepared = self.model.init_batch(batch, n_ubatch)
            if prepared.status is not MemoryStatus.SUCCESS:
                return None
            placed = [self.model.apply(prepared, i)["kv"] for i in range(len(prepared.ubatches))]
            assert prepared.heads["kv"] == tuple(one.head for one in placed)
            return [(one.head, one.n_kv) for one in placed]

        self._both(model, lambda: self.ref.decode(tokens, n_ubatch))

    def _ids(self, *others: int) -> st.SearchStrategy[int]:
        known = st.integers(0, self.model.size - 1)
        odd = st.sampled_from([-1, self.model.size, *others])
        return st.integers(0, 15).flatmap(lambda k: known if k else odd)

    @rule(data=st.data(), n_ubatch=st.integers(1, 9))
    def decode_next(self, data: st.DataObject, n_ubatch: int) -> None:
        """Some sequences go on where they are, alone or in shared sets, interleaved at times."""
        known = st.integers(0, self.model.size - 1)
        seqs = data.draw(st.lists(known, min_size=1, max_size=6, unique=True))
        sets: list[tuple[int, ...]] = []
        for seq in seqs:
            joined = data.draw(st.sampled_from([True, False, False, False]))
            sets[-1:] = [(*sets[-1], seq)] if sets and joined else [*sets[-1:], (seq,)]
        queues = [
            [Token(self.ref.seq_pos_max(ids[0]) + 1 + k, ids) for k in range(data.draw(st.integers(1, 5)))]
            for ids in sets
        ]
        tokens = [token for queue in queues for token in queue]
        if data.draw(st.booleans()):
            tokens = [queue[k] for k in range(5) for queue in queues if k < len(queue)]
        self._decode([token for token in tokens if (token.pos or 0) >= 0], n_ubatch)

    @rule(data=st.data(), n_ubatch=st.integers(1, 9))
    def decode_any(self, data: st.DataObject, n_ubatch: int) -> None:
        """Overlapping sets, ids without a place, positions that do not follow."""
        ids = st.integers(0, self.model.size)
        lists = st.lists(ids, min_size=1, max_size=3, unique=True).map(tuple)
        self._decode(data.draw(st.lists(st.builds(Token, st.integers(0, 30), lists), min_size=1, max_size=8)), n_ubatch)

    @rule(data=st.data(), how=st.sampled_from(["whole", "whole", "near", "near", "any"]))
    def seq_rm(self, data: st.DataObject, how: str) -> None:
        seq = data.draw(self._ids(INT32_MIN, INT32_MAX))
        near = st.integers(-2, 2).map(lambda k: self.ref.seq_pos_max(seq) + k)
        both = {"whole": st.just(-1), "near": st.one_of(st.just(-1), near), "any": ends}[how]
        p0, p1 = data.draw(both), data.draw(both)
        self._both(lambda: self.model.seq_rm(seq, p0, p1), lambda: self.ref.seq_rm(seq, p0, p1))

    @rule(data=st.data())
    def seq_cp(self, data: st.DataObject) -> None:
        src, dst = data.draw(self._ids(INT32_MIN)), data.draw(self._ids(INT32_MAX))
        self._both(lambda: self.model.seq_cp(src, dst, -1, -1), lambda: self.ref.seq_cp(src, dst))

    @rule(data=st.data(), p0=ends, p1=ends, shift=st.integers(-9, 9))
    def seq_add(self, data: st.DataObject, p0: int, p1: int, shift: int) -> None:
        seq = data.draw(self._ids())
        self._both(lambda: self.model.seq_add(seq, p0, p1, shift), lambda: self.ref.seq_add(seq, p0, p1, shift))

    @rule(data=st.data(), p0=ends, p1=ends, d=st.sampled_from([1, 2, 3, -2, 0]))
    def seq_div(self, data: st.DataObject, p0: int, p1: int, d: int) -> None:
        seq = data.draw(self._ids())
        self._both(lambda: self.model.seq_div(seq, p0, p1, d), lambda: self.ref.seq_div(seq, p0, p1, d))

    @rule(data=st.data(), keep=st.integers(0, 9))
    def drop_most(self, data: st.DataObject, keep: int) -> None:
        seq = data.draw(self._ids())
        if keep:
            self._both(lambda: self.model.seq_keep(seq), lambda: self.ref.seq_keep(seq))
        else:
            self._both(self.model.clear, self.ref.clear)
            self.ref.blame("")

    @invariant()
    def states_agree(self) -> None:
        assert state_of(self.model) == reference_state(self.ref)


TestMemory = MemoryMachine.TestCase
TestMemory.settings = MACHINE
