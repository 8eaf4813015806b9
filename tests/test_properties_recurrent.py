"""The recurrent cache against its literal reference, operation after operation, on anything Hypothesis draws."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import Placed
from kvmodel.caches.recurrent import RecurrentCache
from kvmodel.caches.recurrent_params import RecurrentParams
from kvmodel.context import ContextParams
from kvmodel.context_legacy import LegacyContext
from kvmodel.errors import CacheAbort
from kvmodel.events import Event
from kvmodel.events_recurrent import SlotFilled, SlotRefused, SourcesTaken
from kvmodel.explain import explain
from tests.ledger_recurrent import RecurrentLedger
from tests.reference import INT32_MAX, INT32_MIN, Token
from tests.reference.recurrent import Inputs, RefRecurrent, SeqSets, Stored
from tests.reference.recurrent_edits import RefAbort

T = TypeVar("T")

MACHINE = settings(
    max_examples=180,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

positions = st.integers(0, 30)
starts = st.one_of(st.sampled_from([-1, 0]), st.integers(0, 9))
ends = st.one_of(st.sampled_from([-1, -1, 0, INT32_MAX, INT32_MIN]), st.integers(-3, 40))


def batch_of(tokens: list[Token]) -> Batch:
    runs = [(token.pos, 1, token.seqs) for token in tokens]
    return Batch.from_runs(runs, token=[token.serial for token in tokens])


def sets_of(seqs: list[tuple[int, ...]], pos: list[int], serials: list[int]) -> UBatch:
    per = len(pos) // len(seqs)
    tokens = [Token(p, seqs[k // per], serial) for k, (p, serial) in enumerate(zip(pos, serials, strict=True))]
    return UBatch.of(batch_of(tokens), np.arange(len(pos), dtype=np.int32), len(seqs), True)


def rows_of(cache: RecurrentCache) -> list[tuple[object, ...]]:
    columns = [cache.arrays[name].tolist() for name in ("pos", "delta", "src", "tail", "token")]
    return [(*row, set(cache.cells.owners(i))) for i, row in enumerate(zip(*columns, strict=True))]


def state_of(cache: RecurrentCache) -> dict[str, object]:
    seqs = range(-1, cache.size + 1)
    return {
        "cells": rows_of(cache),
        "counters": (cache.head, cache.used, cache.n, cache.cell_max, cache.max_pos),
        "pmax": [cache.seq_pos_max(seq) for seq in seqs],
        "lost": cache.lost,
    }


def reference_state(ref: RefRecurrent) -> dict[str, object]:
    return {
        "cells": [(c.pos, c.delta, c.src, c.tail, c.token, c.ids) for c in ref.cells],
        "counters": (ref.head, ref.used, ref.n, ref.cell_max(), ref.max_pos()),
        "pmax": [ref.seq_pos_max(seq) for seq in range(-1, ref.size + 1)],
        "lost": ref.blamed,
    }


def inputs_of(event: SourcesTaken) -> Inputs:
    return Inputs(event.s_mask.tolist(), event.s_copy.tolist())


class RecurrentMachine(RuleBasedStateMachine):
    """Every rule does one thing to both caches and compares what they give back."""

    @initialize(size=st.sampled_from([1, 2, 3, 4, 5, 6, 8, 9, 12]))
    def make(self, size: int) -> None:
        self.events: list[Event] = []
        self.model = RecurrentCache(RecurrentParams(size, n_seq_max=size), self._record)
        self.ref = RefRecurrent(size)
        self.ledger = RecurrentLedger(self.model)
        self.n_tokens = 0
        self._decode([Token(k, (seq,)) for seq in range(size) for k in range(1 + seq % 3)], 4, "equal", None)

    def _record(self, event: Event) -> None:
        self.events.append(event)
        self.ledger.take(event)
        said = explain(event)
        assert said[0].isupper() or said.startswith("seq_")
        assert said.endswith(".")
        assert not any(odd in said for odd in ("array(", "np.", "None", "  "))

    def _both(self, model: Callable[[], T], reference: Callable[[], T]) -> T | None:
        """Carry both out; they agree on what comes out, or both abort at the same point and start anew."""
        self.events.clear()
        try:
            expected = reference()
        except RefAbort as abort:
            self._both_abort(model, abort.quirk)
            return None
        assert model() == expected
        return expected

    def _both_abort(self, model: Callable[[], object], quirk: str) -> None:
        with pytest.raises(CacheAbort) as raised:
            model()
        assert raised.value.quirk == quirk
        assert state_of(self.model) == reference_state(self.ref)
        self.model.clear()
        self.ref.clear()
        self.ref.blame("")
        self.ledger = RecurrentLedger(self.model)

    def _serials(self, n: int) -> list[int]:
        self.n_tokens += n
        return list(range(self.n_tokens - n, self.n_tokens))

    def _ids(self, *others: int, rare: int = 19) -> st.SearchStrategy[int]:
        """Mostly ids that the cache has a place for."""
        known = st.integers(0, self.model.size - 1)
        odd = st.sampled_from([-1, self.model.size, *others])
        return st.integers(0, rare).flatmap(lambda k: odd if k == rare else known)

    def _decode(self, tokens: list[Token], n_ubatch: int, split: str, fail_at: int | None) -> None:
        tokens = [Token(t.pos, t.seqs, k) for t, k in zip(tokens, self._serials(len(tokens)), strict=True)]
        context = LegacyContext(self.model, ContextParams(n_ubatch=n_ubatch), self._record)

        def model() -> tuple[int, list[Stored]]:
            result = context.decode(batch_of(tokens), split=split, fail_at=fail_at)
            ubatches = list(result.ubatches)
            stored = []
            for event in self.events:
                match event:
                    case SlotFilled(found=found):
                        stored.append(Stored(event.filled.idx.tolist(), found, event.begin))
                    case SlotRefused():
                        stored.append(Stored([], False, event.head))
                    case SourcesTaken():
                        stored[-1].n, stored[-1].inputs = len(event.s_mask), inputs_of(event)
            assert [ubatch.idx.tolist() for ubatch in ubatches] == [one.idx for one in stored if one.found]
            return result.ret, stored

        def reference() -> tuple[int, list[Stored]]:
            ret, stored = self.ref.decode(tokens, n_ubatch, split, fail_at)
            refused = {i for i, one in enumerate(stored) if not one.found and not self._fits(tokens, one)}
            return ret, [Stored([], False, one.head) if i in refused else one for i, one in enumerate(stored)]

        self._both(model, reference)

    def _fits(self, tokens: list[Token], one: Stored) -> bool:
        return all(0 <= seq < self.model.size for i in one.idx for seq in tokens[i].seqs)

    @rule(data=st.data(), n_ubatch=st.integers(1, 9), split=st.sampled_from(["equal", "equal", "seq"]))
    def decode_next(self, data: st.DataObject, n_ubatch: int, split: str) -> None:
        """Some sequences go on where they are, alone or in shared sets, interleaved at times."""
        known = st.integers(0, self.model.size - 1)
        seqs = data.draw(st.lists(known, min_size=1, max_size=6, unique=True))
        joins = st.sampled_from([True, False, False, False])
        cuts = data.draw(st.lists(joins, min_size=len(seqs), max_size=len(seqs)))
        sets: list[tuple[int, ...]] = []
        for seq, joined in zip(seqs, cuts, strict=True):
            sets[-1:] = [(*sets[-1], seq)] if sets and joined else [*sets[-1:], (seq,)]
        queues = []
        for ids in sets:
            n = data.draw(st.integers(1, 5))
            first = max(self.ref.seq_pos_max(ids[0]), -1) + 1
            queues.append([Token(first + k, ids) for k in range(n)])
        tokens = [token for queue in queues for token in queue]
        if data.draw(st.booleans()):
            tokens = [queue[k] for k in range(5) for queue in queues if k < len(queue)]
        self._decode(tokens, n_ubatch, split, data.draw(st.sampled_from([None, None, None, None, 0, 1, 2])))

    @rule(data=st.data(), n_ubatch=st.integers(2, 9))
    def decode_singly(self, data: st.DataObject, n_ubatch: int) -> None:
        """One token for each of some sequences, as a server generates; one of them begins anew at times."""
        seqs = data.draw(st.lists(st.integers(0, self.model.size - 1), min_size=1, max_size=8, unique=True))
        if data.draw(st.booleans()):
            self._both(lambda: self.model.seq_rm(seqs[0], -1, -1), lambda: self.ref.seq_rm(seqs[0], -1, -1))
        self._decode([Token(self.ref.seq_pos_max(seq) + 1, (seq,)) for seq in seqs], n_ubatch, "equal", None)

    @rule(data=st.data(), n_ubatch=st.integers(1, 9), split=st.sampled_from(["equal", "seq"]))
    def decode_any(self, data: st.DataObject, n_ubatch: int, split: str) -> None:
        """Tokens of one's choice: ids twice in a list or without a place, positions that do not follow."""
        lists = st.lists(self._ids(), min_size=1, max_size=3).map(tuple)
        tokens = data.draw(st.lists(st.builds(Token, positions, lists), min_size=1, max_size=8))
        self._decode(tokens, n_ubatch, split, None)

    @rule(data=st.data(), with_inputs=st.booleans(), advance=st.booleans(), per=st.integers(1, 3))
    def place(self, data: st.DataObject, with_inputs: bool, advance: bool, per: int) -> None:
        """A hand-made ubatch, in which a sequence may stand in several sets."""
        singles = st.lists(self._ids().map(lambda seq: (seq,)), min_size=1, max_size=5, unique=True)
        lists = st.lists(st.lists(self._ids(), min_size=1, max_size=3).map(tuple), min_size=1, max_size=4)
        seqs = data.draw(st.one_of(singles, singles, lists))
        n = per * len(seqs)
        pos = data.draw(st.lists(positions, min_size=n, max_size=n))
        serials = self._serials(n)
        ubatch, before = sets_of(seqs, pos, serials), Placed(self.model.head, self.model.n)

        def model() -> tuple[bool, Inputs | None]:
            found = self.model.find_slot(ubatch).found
            inputs = self.model.set_inputs() if found and with_inputs else None
            if found and advance:
                self.model.finish(ubatch, 0, before)
            return found, None if inputs is None else Inputs(inputs.s_mask.tolist(), inputs.s_copy.tolist())

        def reference() -> tuple[bool, Inputs | None]:
            found = self.ref.find_slot(SeqSets(seqs, pos, serials))
            inputs = self.ref.set_inputs() if found and with_inputs else None
            if found and advance:
                self.ref.advance(n)
            return found, inputs

        self._both(model, reference)

    @rule(data=st.data(), how=st.sampled_from(["whole", "whole", "near", "near", "any"]))
    def seq_rm(self, data: st.DataObject, how: str) -> None:
        """A whole state, or a range with ends about the position of one."""
        seq = data.draw(self._ids(-1, INT32_MIN, INT32_MAX, rare=6))
        near = st.integers(-2, 2).map(lambda k: self.ref.seq_pos_max(seq) + k)
        both = {"whole": st.just(-1), "near": st.one_of(st.just(-1), near), "any": ends}[how]
        p0, p1 = data.draw(both), data.draw(both)
        self._both(lambda: self.model.seq_rm(seq, p0, p1), lambda: self.ref.seq_rm(seq, p0, p1))

    @rule(data=st.data(), p0=ends, p1=ends)
    def seq_cp(self, data: st.DataObject, p0: int, p1: int) -> None:
        src, dst = data.draw(self._ids(INT32_MIN)), data.draw(self._ids(INT32_MAX))
        self._both(lambda: self.model.seq_cp(src, dst, p0, p1), lambda: self.ref.seq_cp(src, dst))

    @rule(data=st.data(), p0=starts, p1=ends, shift=st.one_of(st.integers(-9, 9), st.just(INT32_MIN)))
    def seq_add(self, data: st.DataObject, p0: int, p1: int, shift: int) -> None:
        seq = data.draw(self._ids())
        self._both(lambda: self.model.seq_add(seq, p0, p1, shift), lambda: self.ref.seq_add(seq, p0, p1, shift))

    @rule(data=st.data(), p0=starts, p1=ends, d=st.sampled_from([1, 2, 2, 3, 3, -2, 0, INT32_MAX, INT32_MIN]))
    def seq_div(self, data: st.DataObject, p0: int, p1: int, d: int) -> None:
        seq = data.draw(self._ids())
        self._both(lambda: self.model.seq_div(seq, p0, p1, d), lambda: self.ref.seq_div(seq, p0, p1, d))

    @rule(data=st.data(), how=st.sampled_from(["keep", "keep", "clear"]))
    @precondition(lambda self: self.n_tokens > 40)
    def drop_most(self, data: st.DataObject, how: str) -> None:
        self.n_tokens = 0
        if how == "keep":
            seq = data.draw(self._ids())
            self._both(lambda: self.model.seq_keep(seq), lambda: self.ref.seq_keep(seq))
        else:
            self._both(self.model.clear, self.ref.clear)
            self.ref.blame("")

    @invariant()
    def states_agree(self) -> None:
        assert state_of(self.model) == reference_state(self.ref)
        self.ledger.check(self.model)
        self.ledger = RecurrentLedger(self.model)

    @invariant()
    def faults_agree(self) -> None:
        told = self.model.check_integrity()
        wrong = [f"the tail of sequence {s} is {tail} instead of {cell}" for s, tail, cell in self.ref.wrong_tails()]
        assert [line for line in told if line.startswith("the tail of")] == wrong
        twice = [line.split(" owns several cells")[0] for line in told if " owns several cells" in line]
        assert twice == [f"sequence {s}" for s in self.ref.twice_owned()]


TestRecurrent = RecurrentMachine.TestCase
TestRecurrent.settings = MACHINE
