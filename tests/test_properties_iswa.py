"""The pair of caches against two literal references, operation after operation, on anything Hypothesis draws."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kvmodel.batch import UBatch
from kvmodel.caches.base import MemoryStatus
from kvmodel.caches.iswa import IswaCache, IswaParams
from kvmodel.events import BatchSplit, Event, QuirkSeen, SlotSearched, UBatchStored
from kvmodel.types import CacheParams
from tests import strategies
from tests.compare import batch_of, check_masks, checked, reference_state, search_of, state_of
from tests.ledger import Ledger
from tests.reference import INT32_MAX, RefCache, Refusal, Token, Window
from tests.reference.iswa import Layers, RefIswa, window_cells

LAYERS = ((True, False), (False, True, True), (True, True, False, False))


class IswaMachine(RuleBasedStateMachine):
    """Every rule does one thing to the pair and to two references, and compares what they give back."""

    @initialize(
        size=st.integers(2, 12),
        n_pad=st.sampled_from([1, 4]),
        swa=st.sampled_from(["standard", "standard", "chunked"]),
        n_swa=st.integers(1, 9),
        n_seq_max=st.integers(1, 3),
        n_ubatch=st.integers(1, 8),
        swa_full=st.sampled_from([False, False, False, True]),
        swa_layers=st.sampled_from(LAYERS),
        pool=st.sampled_from(strategies.SEQ_POOLS),
        half=st.booleans(),
    )
    def make(self, size: int, n_pad: int, swa: str, n_swa: int, n_seq_max: int, n_ubatch: int, **more: object) -> None:
        self.n_ubatch, self.pool, self.n_tokens = n_ubatch, more["pool"], 0
        cells, layers, swa_full = size * 4, more["swa_layers"], more["swa_full"]
        model = CacheParams(
            cells,
            n_seq_max=n_seq_max,
            n_pad=n_pad,
            swa_type=swa,
            n_swa=n_swa,
            n_layer=len(layers),
            swa_layers=layers,
        )
        self.events: list[Event] = []
        self.model = IswaCache(IswaParams(model, n_ubatch, swa_full), self._record)
        swa_cells = cells if swa_full else window_cells(cells, n_swa, n_seq_max, n_ubatch, n_pad)
        self.ref = RefIswa(cells, swa_cells, n_pad, Window(swa, n_swa), Layers(layers))
        self.ledgers = {part.name: Ledger(part) for part in self.model.parts}
        assert self.model.can_shift == (swa_cells == cells)
        fill = cells // 2 if more["half"] else cells
        self._decode([Token(pos, (seq,)) for pos in range(fill) for seq in self.pool][:fill], n_ubatch)

    def _record(self, event: Event) -> None:
        self.events.append(event)
        self.ledgers[event.cache].take(event)

    def _serials(self, tokens: list[Token]) -> list[Token]:
        """The tokens numbered on from those before them."""
        self.n_tokens += len(tokens)
        first = self.n_tokens - len(tokens)
        return [Token(token.pos, token.seqs, first + k) for k, token in enumerate(tokens)]

    def _edit(self, name: str, *args: int) -> None:
        getattr(self.model, name)(*args)
        self.ref.edit(name, *args)

    def _decode(self, tokens: list[Token], n_ubatch: int, *, embd: bool = False, auto_pos: bool = False) -> None:
        tokens = self._serials(tokens)
        self.events.clear()
        expected = self.ref.decode(tokens, n_ubatch, embd=embd, auto_pos=auto_pos)
        batch = checked(self.model, batch_of(tokens, embd=embd, auto_pos=auto_pos))
        if isinstance(batch, Refusal):
            assert batch == expected.refusal
            return
        prepared = self.model.init_batch(batch, n_ubatch)
        assert prepared.status == expected.status
        self._attempts_agree(n_ubatch)
        assert [ubatch.idx.tolist() for ubatch in prepared.ubatches] == expected.ubatches
        placed = [self.model.apply(prepared, i) for i in range(len(prepared.ubatches))]
        assert [tuple(at[name].head for name in ("base", "swa")) for at in placed] == expected.heads
        stored = [(event.cache, event.ubatch) for event in self.events if isinstance(event, UBatchStored)]
        assert stored == [(name, i) for i in range(len(placed)) for name in ("base", "swa")]

    def _attempts_agree(self, n_ubatch: int) -> None:
        """Splits and searches in their order, and a word about a ubatch that is too long."""
        splits = [(event.how, list(event.sizes)) for event in self.events if isinstance(event, BatchSplit)]
        assert splits == [(tried.how, list(map(len, tried.parts))) for tried in self.ref.tried]
        searches = [(event.cache, search_of(event.search)) for event in self.events if isinstance(event, SlotSearched)]
        halves = [item for tried in self.ref.tried for item in tried.searches.items()]
        assert searches == [(name, search) for name, found in halves for search in found]
        longest = max(len(part) for tried in self.ref.tried for part in tried.parts)
        quirks = [event.quirk for event in self.events if isinstance(event, QuirkSeen)]
        assert ("equal-split-overflow" in quirks) == (longest > n_ubatch)

    @rule(data=st.data(), auto_pos=st.booleans())
    def decode(self, data: st.DataObject, auto_pos: bool) -> None:
        tokens = data.draw(strategies.next_tokens(self.ref.swa, self.pool))
        self._decode(tokens, self.n_ubatch, auto_pos=auto_pos)

    @rule(data=st.data(), n_ubatch=st.integers(1, 12))
    def decode_otherwise_cut(self, data: st.DataObject, n_ubatch: int) -> None:
        self._decode(data.draw(strategies.next_tokens(self.ref.swa, self.pool)), n_ubatch)

    @rule(first=st.integers(0, 5), n=st.integers(1, 2), more=st.integers(1, 3))
    @precondition(lambda self: len(self.pool) > 1)
    def decode_uneven(self, first: int, n: int, more: int) -> None:
        """Two sequences of unequal length in one ubatch, which the equal split cuts into two."""
        seqs = [self.pool[(first + k) % len(self.pool)] for k in (0, 1)]
        starts = [self.ref.swa.cells.pos_max(seq) + 1 for seq in seqs]
        runs = [
            (start + k, seq)
            for start, seq, length in zip(starts, seqs, (n, n + more), strict=True)
            for k in range(length)
        ]
        self._decode([Token(pos, (seq,)) for pos, seq in runs], 2 * n + more)

    @rule(data=st.data(), embd=st.booleans())
    def decode_spoiled(self, data: st.DataObject, embd: bool) -> None:
        self._decode(data.draw(strategies.spoiled_tokens(self.ref.swa, self.pool)), self.n_ubatch, embd=embd)

    @rule(data=st.data())
    def place(self, data: st.DataObject) -> None:
        """A hand-made ubatch, stored if it has a slot in both halves; it may leave the halves with other positions."""
        tokens = self._serials(data.draw(strategies.any_tokens(self.pool, max_runs=1, may_be_empty=True)))
        ubatch = UBatch.plain(batch_of(tokens))
        heads = {part.name: part.prepare([ubatch]) for part in self.model.parts}
        expected = {name: half.prepare([tokens]) for name, half in self.ref.halves.items()}
        assert heads == {name: None if found is None else tuple(found) for name, found in expected.items()}
        if None not in heads.values():
            self.model.apply_ubatch({name: found[0] for name, found in heads.items()}, ubatch)
            for name, half in self.ref.halves.items():
                half.apply_ubatch(expected[name][0], tokens)

    @rule(data=st.data(), everyone=st.sampled_from([None, None, None, None, -1, -9]))
    def seq_rm(self, data: st.DataObject, everyone: int | None) -> None:
        seq, p0, p1 = data.draw(strategies.edits(self.ref.base, self.pool))
        self._edit("seq_rm", seq if everyone is None else everyone, p0, p1)

    @rule(data=st.data())
    def seq_cp(self, data: st.DataObject) -> None:
        src, p0, p1 = data.draw(strategies.edits(self.ref.base, self.pool))
        self._edit("seq_cp", src, data.draw(st.sampled_from(self.pool)), p0, p1)

    @rule(data=st.data(), first=st.integers(0, 5), step=st.integers(3, 6), n=st.integers(1, 2))
    def thin_out(self, data: st.DataObject, first: int, step: int, n: int) -> None:
        """Holes of a few cells, in which only shorter ubatches than those of the plain split have a slot."""
        seq = data.draw(st.sampled_from(self.pool))
        for pos in range(first, min(max(self.ref.base.cells.pos), 80), step):
            self._edit("seq_rm", seq, pos, pos + n)

    @rule(data=st.data(), shift=strategies.shifts)
    def seq_add(self, data: st.DataObject, shift: int) -> None:
        """Shifts leave room below the largest position: C++ leaves an overflow open."""
        shift = min(shift, INT32_MAX - 1_000 - max(self.ref.base.cells.pos + self.ref.swa.cells.pos))
        self._edit("seq_add", *data.draw(strategies.edits(self.ref.base, self.pool)), shift)

    @rule(data=st.data(), d=strategies.divisors)
    def seq_div(self, data: st.DataObject, d: int) -> None:
        self._edit("seq_div", *data.draw(strategies.edits(self.ref.base, self.pool)), d)

    @rule(optimize=strategies.often, thold=strategies.tholds, n_max_nodes=strategies.node_budgets)
    def update(self, optimize: bool, thold: float, n_max_nodes: int) -> None:
        prepared = self.model.init_update(optimize=optimize, thold=thold, n_max_nodes=n_max_nodes)
        shifts = {name: shift.tolist() for name, shift in self.model.update(prepared).items()}
        expected = self.ref.update(optimize=optimize, thold=thold, n_max_nodes=n_max_nodes)
        assert (prepared.status is MemoryStatus.SUCCESS) == any(half.changed for half in expected.values())
        assert shifts == {name: half.k_shift for name, half in expected.items() if half.k_shift is not None}
        for name, half in expected.items():
            plan = prepared.parts[name].plan
            assert (None if plan is None else plan.ids.tolist()) == half.ids

    @rule(data=st.data(), how=st.sampled_from(["clear", "clear data", "keep", "keep", "keep"]))
    @precondition(lambda self: self.n_tokens > 60)
    def drop_most(self, data: st.DataObject, how: str) -> None:
        if how == "keep":
            self._edit("seq_keep", data.draw(st.sampled_from(self.pool)))
        else:
            self.model.clear(how == "clear data")
            self.ref.edit("clear")

    @invariant()
    def halves_agree(self) -> None:
        for part in self.model.parts:
            assert state_of(part) == reference_state(self.ref.halves[part.name])
            assert part.cells.check_integrity() == []
        for seq in self.pool:
            span = self.ref.swa.cells.pos_min(seq), self.ref.swa.cells.pos_max(seq)
            assert (self.model.seq_pos_min(seq), self.model.seq_pos_max(seq)) == span

    @invariant()
    def events_lead_here(self) -> None:
        for part in self.model.parts:
            self.ledgers[part.name].check(part)
            self.ledgers[part.name] = Ledger(part)

    @invariant()
    def masks_agree(self) -> None:
        for part in self.model.parts:
            half = self.ref.halves[part.name]
            check_masks(part, half, queries_of(half, self.pool[:2]))


def queries_of(half: RefCache, pool: list[int]) -> list[tuple[int, int]]:
    """A query inside the window of each sequence, and one behind its newest position."""
    newest = [(seq, half.cells.pos_max(seq)) for seq in pool]
    return sorted({(max(pos, 0), seq) for seq, last in newest for pos in (last // 2, last + 1)})


TestIswa = IswaMachine.TestCase
TestIswa.settings = settings(strategies.MACHINE, max_examples=100)
