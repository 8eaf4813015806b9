"""The older transformer cache against the literal reference, on anything that Hypothesis draws."""

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kvmodel.batch import UBatch
from kvmodel.caches.base import Placed
from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.legacy_view import view_cells
from kvmodel.context import ContextParams
from kvmodel.context_legacy import LegacyContext
from kvmodel.errors import CacheAbort
from kvmodel.events import (
    DefragDecided,
    DefragPlanned,
    Event,
    QuirkSeen,
    SeqAdded,
    SeqCopied,
    SeqDivided,
    SeqKept,
    SeqRemoved,
    ShiftApplied,
    SlotSearched,
    UBatchStored,
)
from kvmodel.limits import MAX_BATCH
from kvmodel.mask import kq_mask
from kvmodel.slots import SlotSearch
from kvmodel.types import CacheParams, SWAType
from tests import strategies
from tests.compare import batch_of, search_of
from tests.legacy_states import cells_of, reference_state, state_of
from tests.reference import INT32_MAX, Token
from tests.reference.legacy import Crash, Decoded, RefLegacy, Updated

NO_SEQ = (-1, 64, INT32_MAX)
"""Numbers that no cell can have for an owner."""

N_SWA = 5

sizes = st.one_of(st.integers(1, 48), st.sampled_from([24, 32, 40, 130]))
splits = st.sampled_from(["simple", "simple", "simple", "equal", "seq"])
budgets = st.sampled_from([8192, 8192, 0, 14, 20, 26, 44])
cut_short = st.sampled_from([14, 20, 26])
fails = st.sampled_from([None, None, None, 0, 1])


class LegacyMachine(RuleBasedStateMachine):
    """Every rule does one thing to both caches and compares what they give back."""

    @initialize(
        size=sizes,
        flash_attn=st.booleans(),
        n_layer=st.integers(1, 3),
        seqs=st.sampled_from(strategies.SEQ_POOLS),
        fill=strategies.often,
        no_owner=st.sampled_from([False, False, True]),
    )
    def make(self, size: int, flash_attn: bool, n_layer: int, seqs: list[int], fill: bool, no_owner: bool) -> None:
        self.pool, self.no_owner, self.n_tokens = seqs, no_owner, 0
        self.params = CacheParams(size, n_seq_max=64, n_pad=1, n_layer=n_layer, v_trans=not flash_attn)
        self._start()
        if fill:
            self._decode([Token(k, (seqs[k % len(seqs)],)) for k in range(size)], size)

    def _start(self) -> None:
        """Two empty caches: at first, and after the C++ has ended its process."""
        self.events: list[Event] = []
        self.model = LegacyCache(self.params, self.events.append)
        self.ref = RefLegacy(self.params.kv_size, 32 if self.params.v_trans else 256, self.params.n_layer)

    def _serials(self, tokens: list[Token]) -> list[Token]:
        """The tokens numbered on from those before them."""
        self.n_tokens += len(tokens)
        first = self.n_tokens - len(tokens)
        return [Token(token.pos, token.seqs, first + k) for k, token in enumerate(tokens)]

    def _context(self, thold: float = -1.0, n_max_nodes: int = 8192) -> LegacyContext:
        params = ContextParams(n_batch=MAX_BATCH, defrag_thold=thold, n_max_nodes=n_max_nodes)
        return LegacyContext(self.model, params, self.events.append)

    def _both(self, ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[object, object] | None:
        """What both give back; None if both end here, after which both start anew."""
        self.events.clear()
        try:
            expected = theirs()
        except Crash:
            try:
                ours()
            except CacheAbort:
                self._start()
                return None
            raise AssertionError("the C++ ends its process, the model goes on") from None
        return ours(), expected

    def _seen(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def _edit(self, name: str, *args: int) -> set[int]:
        """Do one edit on both; return the cells that it changed."""
        before = cells_of(self.ref)
        self.events.clear()
        getattr(self.model, name)(*args)
        getattr(self.ref, name)(*args)
        after = cells_of(self.ref)
        return {i for i in range(self.model.size) if before[i] != after[i]}

    def _decode(self, tokens: list[Token], n_ubatch: int, *, auto_pos: bool = False, **how: object) -> None:
        tokens = self._serials(tokens)
        settings = {name: how.pop(name) for name in ("thold", "n_max_nodes") if name in how}
        batch = batch_of(tokens, auto_pos=auto_pos)
        both = self._both(
            lambda: self._context(**settings).decode(batch, n_ubatch=n_ubatch, **how).ret,
            lambda: self.ref.decode(tokens, n_ubatch, **settings, **how),
        )
        if both is None:
            return
        ret, expected = both
        assert ret == expected.ret
        self._decode_agrees(expected, tokens)

    def _decode_agrees(self, expected: Decoded, tokens: list[Token]) -> None:
        searches = [event.search for event in self._seen(SlotSearched)]
        assert [search_of(search) for search in searches] == expected.searches
        stored = self._seen(UBatchStored)
        assert [event.n_kv for event in stored] == expected.n
        assert [event.begin for event in stored] == expected.heads[: len(stored)]
        parts = [[tokens[i].serial for i in part] for part in expected.parts[: len(stored)]]
        assert [event.stored.token.tolist() for event in stored] == parts
        self._updates_agree(expected.updates[: len(searches)])
        frags = [event.fragmentation for event in self._seen(DefragDecided)]
        assert frags == ([] if expected.frag is None else [expected.frag])
        kept = expected.ret == 1 and len(stored) > 0
        assert [event.quirk for event in self._seen(QuirkSeen) if event.quirk == "partial-decode"] == [
            "partial-decode"
        ] * kept

    def _updates_agree(self, updates: list[Updated]) -> None:
        shifts = [event.k_shift.tolist() for event in self._seen(ShiftApplied)]
        assert shifts == [update.k_shift for update in updates if update.k_shift is not None]
        plans = [(event.plan.ids.tolist(), event.plan.n_moves) for event in self._seen(DefragPlanned)]
        assert plans == [(update.ids, update.n_moves) for update in updates if update.ids is not None]

    @rule(
        data=st.data(),
        n_ubatch=st.integers(1, 6),
        split=splits,
        fail_at=fails,
        thold=strategies.tholds,
        n_max_nodes=budgets,
        auto_update=strategies.often,
    )
    def decode(self, data: st.DataObject, n_ubatch: int, split: str, **how: object) -> None:
        tokens = data.draw(strategies.any_tokens(self.pool, may_be_empty=self.no_owner))
        self._decode(tokens, n_ubatch, split=split, **how)

    @rule(n=st.integers(1, 8), seq=st.integers(0, 5))
    def decode_next(self, n: int, seq: int) -> None:
        """Positions that go on after the largest one in the cache."""
        first, owner = self.ref.max_pos() + 1, self.pool[seq % len(self.pool)]
        self._decode([Token(first + k, (owner,)) for k in range(n)], 4, auto_pos=True)

    @rule(data=st.data())
    def place(self, data: st.DataObject) -> None:
        """A hand-made ubatch without what a decode does around it; deltas left in its cells are inherited."""
        tokens = self._serials(data.draw(strategies.any_tokens(self.pool, max_runs=2, may_be_empty=self.no_owner)))
        ubatch, before = UBatch.plain(batch_of(tokens)), Placed(self.model.head, self.model.n)
        self.events.clear()
        search, expected = self.model.find_slot(ubatch), self.ref.find_slot(tokens)
        assert search_of(search) == expected
        self._failure_agrees(search)
        if not search.found:
            return
        cells = range(search.cell, search.cell + len(tokens))
        stale = any(self.ref.cells.delta[i] for i in cells)
        assert [event.quirk for event in self._seen(QuirkSeen)] == ["stale-delta"] * stale
        self.model.finish(ubatch, 0, before)
        self.ref.passed(len(tokens))

    def _failure_agrees(self, search: SlotSearch) -> None:
        if search.found or search.too_many:
            assert (search.free, search.longest) == (-1, -1)
            return
        free = sum(pos < 0 for pos in self.ref.cells.pos)
        assert (search.free, search.reusable) == (free, 0)
        assert (search.longest, search.longest_start) == self.ref.longest_free()

    @rule(data=st.data(), other=st.sampled_from([None, None, None, None, *NO_SEQ]))
    def seq_rm(self, data: st.DataObject, other: int | None) -> None:
        seq, p0, p1 = data.draw(strategies.edits(self.ref, self.pool))
        changed = self._edit("seq_rm", seq if other is None else other, p0, p1)
        [event] = self._seen(SeqRemoved)
        assert set(event.cells.tolist()) == changed
        assert set(event.freed.tolist()) == {i for i in changed if self.ref.cells.pos[i] < 0}

    @rule(data=st.data())
    def seq_cp(self, data: st.DataObject) -> None:
        src, p0, p1 = data.draw(strategies.edits(self.ref, self.pool))
        changed = self._edit("seq_cp", src, data.draw(st.sampled_from(self.pool)), p0, p1)
        [event] = self._seen(SeqCopied)
        assert set(event.cells.tolist()) - set(event.had.tolist()) == changed

    @rule(data=st.data(), shift=strategies.shifts)
    def seq_add(self, data: st.DataObject, shift: int) -> None:
        """Shifts leave room below the largest position: C++ leaves an overflow open."""
        shift = min(shift, INT32_MAX - 1_000 - self.ref.max_pos())
        changed = self._edit("seq_add", *data.draw(strategies.edits(self.ref, self.pool)), shift)
        assert not shift or changed == {i for event in self._seen(SeqAdded) for i in event.cells.tolist()}

    @rule(data=st.data(), d=strategies.divisors)
    def seq_div(self, data: st.DataObject, d: int) -> None:
        changed = self._edit("seq_div", *data.draw(strategies.edits(self.ref, self.pool)), d)
        assert changed <= {i for event in self._seen(SeqDivided) for i in event.cells.tolist()}

    @rule(data=st.data(), other=st.sampled_from([None, None, None, *NO_SEQ]))
    @precondition(lambda self: self.n_tokens > 60)
    def seq_keep(self, data: st.DataObject, other: int | None) -> None:
        changed = self._edit("seq_keep", data.draw(st.sampled_from(self.pool)) if other is None else other)
        [event] = self._seen(SeqKept)
        assert {*event.freed.tolist(), *event.narrowed.tolist()} == changed

    @rule()
    @precondition(lambda self: self.n_tokens > 60)
    def clear(self) -> None:
        self.model.clear()
        self.ref.clear()

    @rule(data=st.data(), first=st.integers(0, 4), step=st.integers(2, 7))
    def thin_out(self, data: st.DataObject, first: int, step: int) -> None:
        """Holes everywhere, then a defrag that has to close them; now and then its budget ends it."""
        for pos in range(first, min(self.ref.max_pos(), 80), step):
            self.model.seq_rm(-1, pos, pos + 1)
            self.ref.seq_rm(-1, pos, pos + 1)
        self._update(ask=True, n_max_nodes=data.draw(cut_short if self.no_owner else budgets))

    @rule(ask=strategies.often, n_max_nodes=budgets)
    def update(self, ask: bool, n_max_nodes: int) -> None:
        self._update(ask, n_max_nodes)

    def _update(self, ask: bool, n_max_nodes: int) -> None:
        if ask:
            self.model.defrag()
            self.ref.do_defrag = True
        due = self.ref.do_defrag or self.ref.has_shift
        both = self._both(lambda: self._context().update(n_max_nodes=n_max_nodes), lambda: self.ref.update(n_max_nodes))
        if both is not None:
            assert both[0] == due
            self._updates_agree([both[1]])

    @rule(n_seq_max=st.sampled_from([0, 1, 2, 5, 66]))
    def view(self, n_seq_max: int) -> None:
        view, expected = view_cells(self.model.cells, n_seq_max), self.ref.view(n_seq_max)
        assert (view.token_count, view.used_cells) == (expected.token_count, expected.used_cells)
        assert (view.max_contiguous, view.max_contiguous_idx) == (expected.max_contiguous, expected.max_contiguous_idx)
        assert view.pos.tolist() == expected.pos
        assert view.seqs.tolist() == expected.seqs

    @invariant()
    def cells_agree(self) -> None:
        seqs = (*self.pool, *NO_SEQ, 1, 63)
        assert state_of(self.model, seqs) == reference_state(self.ref, seqs)
        assert self.model.check_integrity() == []

    @invariant()
    def masks_agree(self) -> None:
        """What attention sees: an owner's cells up to the query, in a window only the last N_SWA positions."""
        cells = self.ref.cells
        queries = sorted({(pos, seq) for seq in self.pool for pos in (2, self.ref.seq_pos_max(seq))})
        pos, seqs = (np.array(column, np.int32) for column in zip(*queries, strict=True))
        view = self.model.cells.pos[: self.model.n], self.model.cells.seqs[: self.model.n]
        for n_swa, swa_type in ((INT32_MAX, SWAType.NONE), (N_SWA, SWAType.STANDARD)):
            mask = kq_mask(*view, pos, seqs, swa_type=swa_type, n_swa=n_swa)[: len(queries)]
            assert (mask == 0).tolist() == [
                [s in cells.seqs[i] and cells.pos[i] <= p and p - cells.pos[i] < n_swa for i in range(self.ref.n)]
                for p, s in queries
            ]


TestLegacy = LegacyMachine.TestCase
TestLegacy.settings = strategies.MACHINE
