"""The arrays against the literal reference, operation after operation, on anything Hypothesis draws."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kvmodel.batch import UBatch
from kvmodel.caches.base import MemoryStatus
from kvmodel.caches.unified import UnifiedCache
from kvmodel.events import Event, SlotSearched
from kvmodel.split import split_equal, split_seq, split_simple
from tests import reference, strategies
from tests.compare import (
    batch_of,
    check_failure,
    check_masks,
    checked,
    reference_state,
    search_of,
    state_of,
    tokens_of,
)
from tests.ledger import Ledger
from tests.reference import INT32_MAX, RefCache, Refusal, Token


class UnifiedMachine(RuleBasedStateMachine):
    """Every rule does one thing to both caches and compares what they give back."""

    @initialize(setup=strategies.setups())
    def make(self, setup: strategies.Setup) -> None:
        self.pool = setup.seqs
        self.events: list[Event] = []
        self.model = UnifiedCache(setup.model, self._record)
        self.ref = RefCache(setup.reference)
        self.ledger = Ledger(self.model)
        self.n_tokens = 0
        self._fill()

    def _fill(self) -> None:
        """Start half full: two tokens of every sequence in turn, as far as they go."""
        pairs = [(pos, seq) for pos in range(0, 24, 2) for seq in self.pool]
        tokens = [Token(pos + k, (seq,)) for pos, seq in pairs for k in (0, 1)]
        self._decode(tokens[: self.model.size // 2], 8)

    def _record(self, event: Event) -> None:
        self.events.append(event)
        self.ledger.take(event)

    def _serials(self, tokens: list[Token]) -> list[Token]:
        """The tokens numbered on from those before them."""
        self.n_tokens += len(tokens)
        first = self.n_tokens - len(tokens)
        return [Token(token.pos, token.seqs, first + k) for k, token in enumerate(tokens)]

    def _searches_agree(self) -> None:
        searches = [event.search for event in self.events if isinstance(event, SlotSearched)]
        assert [search_of(search) for search in searches] == self.ref.searches

    def _decode(self, tokens: list[Token], n_ubatch: int, *, embd: bool = False, auto_pos: bool = False) -> None:
        tokens = self._serials(tokens)
        self.events.clear()
        self.ref.searches = []
        expected = self.ref.decode(tokens, n_ubatch, embd=embd, auto_pos=auto_pos)
        batch = checked(self.model, batch_of(tokens, embd=embd, auto_pos=auto_pos))
        if isinstance(batch, Refusal):
            assert batch == expected.refusal
            return
        prepared = self.model.init_batch(batch, n_ubatch)
        assert prepared.status == expected.status
        self._searches_agree()
        assert [ubatch.idx.tolist() for ubatch in prepared.ubatches] == expected.ubatches
        placed = [self.model.apply(prepared, i)["kv"].head for i in range(len(prepared.ubatches))]
        assert placed == expected.heads
        self._splits_agree(tokens_of(UBatch.plain(batch)), n_ubatch)

    def _splits_agree(self, tokens: list[Token], n_ubatch: int) -> None:
        batch = batch_of(tokens)
        simple = [ubatch.idx.tolist() for ubatch in split_simple(batch, n_ubatch)]
        assert simple == reference.split_simple(tokens, n_ubatch)
        equal = [ubatch.idx.reshape(ubatch.n_seqs, -1).tolist() for ubatch in split_equal(batch, n_ubatch)]
        assert equal == reference.split_equal(tokens, n_ubatch)
        by_set = [ubatch.idx.tolist() for ubatch in split_seq(batch, n_ubatch)]
        assert by_set == reference.split_seq(tokens, n_ubatch)

    @rule(data=st.data(), n_ubatch=st.integers(1, 12), auto_pos=st.booleans())
    def decode(self, data: st.DataObject, n_ubatch: int, auto_pos: bool) -> None:
        self._decode(data.draw(strategies.next_tokens(self.ref, self.pool)), n_ubatch, auto_pos=auto_pos)

    @rule(data=st.data(), n_ubatch=st.integers(1, 12), embd=st.booleans())
    def decode_spoiled(self, data: st.DataObject, n_ubatch: int, embd: bool) -> None:
        self._decode(data.draw(strategies.spoiled_tokens(self.ref, self.pool)), n_ubatch, embd=embd)

    @rule(data=st.data(), n_ubatch=st.integers(1, 12), embd=st.booleans(), auto_pos=st.booleans())
    def decode_any(self, data: st.DataObject, n_ubatch: int, embd: bool, auto_pos: bool) -> None:
        tokens = data.draw(strategies.any_tokens(self.pool))
        self._decode(tokens, n_ubatch, embd=embd, auto_pos=auto_pos)

    @rule(data=st.data(), n=st.integers(1, 4))
    def prepare(self, data: st.DataObject, n: int) -> None:
        """A trial store of hand-made ubatches, which often fails half-way and leaves its traces."""
        ubatches = [self._serials(data.draw(strategies.any_tokens(self.pool, may_be_empty=True))) for _ in range(n)]
        self.events.clear()
        heads = self.model.prepare([UBatch.plain(batch_of(tokens)) for tokens in ubatches])
        expected = self.ref.prepare(ubatches)
        assert heads == (None if expected is None else tuple(expected))
        self._searches_agree()

    @rule(data=st.data())
    def place(self, data: st.DataObject) -> None:
        """A hand-made ubatch, stored if it has a slot."""
        tokens = self._serials(data.draw(strategies.any_tokens(self.pool, max_runs=2, may_be_empty=True)))
        ubatch = UBatch.plain(batch_of(tokens))
        heads, expected = self.model.prepare([ubatch]), self.ref.prepare([tokens])
        assert heads == (None if expected is None else tuple(expected))
        if heads is not None:
            self.model.apply_ubatch(heads[0], ubatch)
            self.ref.apply_ubatch(heads[0], tokens)

    @rule(n=st.integers(0, 50))
    def find_slot(self, n: int) -> None:
        search = self.model.find_slot(n)
        assert search_of(search) == self.ref.find_slot(n)
        check_failure(search, self.ref)

    @rule(data=st.data(), everyone=st.sampled_from([None, None, None, None, -1, -9]))
    def seq_rm(self, data: st.DataObject, everyone: int | None) -> None:
        seq, p0, p1 = data.draw(strategies.edits(self.ref, self.pool))
        seq = seq if everyone is None else everyone
        assert self.model.seq_rm(seq, p0, p1)
        self.ref.seq_rm(seq, p0, p1)

    @rule(data=st.data())
    def seq_cp(self, data: st.DataObject) -> None:
        src, p0, p1 = data.draw(strategies.edits(self.ref, self.pool))
        dst = data.draw(st.sampled_from(self.pool))
        self.model.seq_cp(src, dst, p0, p1)
        self.ref.seq_cp(src, dst, p0, p1)

    @rule(data=st.data(), shift=strategies.shifts)
    def seq_add(self, data: st.DataObject, shift: int) -> None:
        """Shifts leave room for the tokens of one run below the largest position: C++ leaves an overflow open."""
        shift = min(shift, INT32_MAX - 1_000 - max(self.ref.cells.pos))
        seq, p0, p1 = data.draw(strategies.edits(self.ref, self.pool))
        self.model.seq_add(seq, p0, p1, shift)
        self.ref.seq_add(seq, p0, p1, shift)

    @rule(data=st.data(), d=strategies.divisors)
    def seq_div(self, data: st.DataObject, d: int) -> None:
        seq, p0, p1 = data.draw(strategies.edits(self.ref, self.pool))
        self.model.seq_div(seq, p0, p1, d)
        self.ref.seq_div(seq, p0, p1, d)

    @rule(optimize=strategies.often, thold=strategies.tholds, n_max_nodes=strategies.node_budgets)
    def update(self, optimize: bool, thold: float, n_max_nodes: int) -> None:
        prepared = self.model.init_update(optimize=optimize, thold=thold, n_max_nodes=n_max_nodes)
        shifts = self.model.update(prepared)
        expected = self.ref.update(optimize=optimize, thold=thold, n_max_nodes=n_max_nodes)
        assert (prepared.status is MemoryStatus.SUCCESS) == expected.changed
        assert (shifts["kv"].tolist() if shifts else None) == expected.k_shift
        plan = prepared.parts["kv"].plan
        assert (None if plan is None else (plan.ids.tolist(), plan.n_moves)) == (
            None if expected.ids is None else (expected.ids, expected.n_moves)
        )

    @rule(data=st.data(), how=st.sampled_from(["clear", "clear data", "keep", "keep", "keep"]))
    @precondition(lambda self: self.n_tokens > 60)
    def drop_most(self, data: st.DataObject, how: str) -> None:
        if how == "keep":
            seq = data.draw(st.sampled_from(self.pool))
            self.model.seq_keep(seq)
            self.ref.seq_keep(seq)
        else:
            self.model.clear(how == "clear data")
            self.ref.clear()

    @invariant()
    def cells_agree(self) -> None:
        assert state_of(self.model) == reference_state(self.ref)
        assert self.model.cells.check_integrity() == []

    @invariant()
    def events_lead_here(self) -> None:
        self.ledger.check(self.model)
        self.ledger = Ledger(self.model)

    @invariant()
    def masks_agree(self) -> None:
        cells = self.ref.cells
        spans = [(seq, cells.pos_min(seq), cells.pos_max(seq)) for seq in self.pool]
        queries = {(max(pos, 0), seq) for seq, low, high in spans for pos in (low, (low + high) // 2, high, high + 1)}
        check_masks(self.model, self.ref, sorted(queries))


TestUnified = UnifiedMachine.TestCase
TestUnified.settings = strategies.MACHINE
