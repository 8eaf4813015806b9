"""A cache state carried forward by events alone: what they say must lead to what the cells hold."""

import numpy as np

from kvmodel import events as ev
from kvmodel.caches.unified import UnifiedCache

EMPTY = -1


class Ledger:
    """Copies of the arrays and of head that change only as an event says.

    Every claim an event makes about the state before it is checked on the way.
    """

    def __init__(self, cache: UnifiedCache) -> None:
        cells = cache.cells
        self.pos, self.shift, self.seqs = cells.pos.copy(), cells.shift.copy(), cells.seqs.copy()
        self.head = cache.head
        self.shifts_known = True
        self._purges: list[ev.PositionsPurged] = []

    def check(self, cache: UnifiedCache) -> None:
        """The state that the events lead to is the state of the cache."""
        assert self.pos.tolist() == cache.cells.pos.tolist()
        assert self.seqs.tolist() == cache.cells.seqs.tolist()
        assert self.head == cache.head
        if self.shifts_known:
            assert self.shift.tolist() == cache.cells.shift.tolist()

    def take(self, event: ev.Event) -> None:
        match event:
            case ev.SeqRemoved():
                self._removed(event)
            case ev.SeqCopied():
                self._copied(event)
            case ev.SeqKept():
                self._kept(event)
            case ev.SeqAdded():
                self._added(event)
            case ev.SeqDivided():
                self._divided(event)
            case ev.Cleared():
                self.pos[:], self.shift[:], self.seqs[:], self.head = EMPTY, 0, 0, 0
            case ev.ShiftApplied():
                assert event.k_shift.tolist() == np.where(self.pos == EMPTY, 0, self.shift).tolist()
                self.shift[:] = 0
            case ev.DefragApplied():
                self._moved(event)
            case _:
                self._store(event)

    def _store(self, event: ev.Event) -> None:
        match event:
            case ev.CellsOverwritten():
                assert event.pos.tolist() == self.pos[event.cells].tolist()
                assert (np.uint64(1) << event.seqs.astype(np.uint64)).tolist() == self.seqs[event.cells].tolist()
                self._empty(event.cells)
            case ev.PositionsPurged(trial=True):
                self._purge(event)
            case ev.PositionsPurged():
                self._purges.append(event)
            case ev.UBatchStored():
                self._stored(event)
            case ev.QuirkSeen(quirk="swa-shift-lost"):
                self.shifts_known = False

    def _empty(self, cells) -> None:
        self.pos[cells], self.shift[cells], self.seqs[cells] = EMPTY, 0, 0

    def _owned(self, cells, seq: int) -> np.ndarray:
        return (self.seqs[cells] >> np.uint64(seq)) & np.uint64(1)

    def _in_range(self, cells, p0: int, p1: int) -> bool:
        return bool(((self.pos[cells] >= p0) & (self.pos[cells] < p1)).all())

    def _removed(self, event: ev.SeqRemoved) -> None:
        assert self.head == event.head_before
        assert self._in_range(event.cells, event.p0, event.p1)
        if event.seq >= 0:
            assert self._owned(event.cells, event.seq).all()
            self.seqs[event.cells] ^= np.uint64(1 << event.seq)
            assert event.freed.tolist() == [i for i in event.cells.tolist() if not self.seqs[i]]
        else:
            assert event.freed.tolist() == event.cells.tolist()
        self._empty(event.freed)
        self.head = event.head

    def _copied(self, event: ev.SeqCopied) -> None:
        assert self._in_range(event.cells, event.p0, event.p1)
        assert self._owned(event.cells, event.src).all()
        assert event.had.tolist() == [i for i in event.cells.tolist() if self._owned(i, event.dst)]
        self.seqs[event.cells] |= np.uint64(1 << event.dst)

    def _kept(self, event: ev.SeqKept) -> None:
        assert self.head == event.head_before
        assert self.seqs[event.freed].all()
        assert not self._owned(event.freed, event.seq).any()
        assert self._owned(event.narrowed, event.seq).all()
        assert (self.seqs[event.narrowed] != np.uint64(1 << event.seq)).all()
        self._empty(event.freed)
        self.seqs[event.narrowed] = 1 << event.seq
        self.head = event.head

    def _added(self, event: ev.SeqAdded) -> None:
        assert self.head == event.head_before
        assert self._in_range(event.cells, event.p0, event.p1)
        assert self._owned(event.cells, event.seq).all()
        self.pos[event.cells] += np.int32(event.shift)
        self.shift[event.cells] += np.int32(event.shift)
        assert event.freed.tolist() == [i for i in event.cells.tolist() if self.pos[i] < 0]
        self._empty(event.freed)
        self.head = event.head

    def _divided(self, event: ev.SeqDivided) -> None:
        assert self._in_range(event.cells, event.p0, event.p1)
        assert self._owned(event.cells, event.seq).all()
        old = self.pos[event.cells]
        self.pos[event.cells] = old // np.int32(event.d)
        self.shift[event.cells] += old - self.pos[event.cells]

    def _moved(self, event: ev.DefragApplied) -> None:
        assert self.head == event.head_before
        for source, target, length in event.plan.moves.tolist():
            src, dst = slice(source, source + length), slice(target, target + length)
            assert (self.pos[dst] == EMPTY).all()
            assert (self.pos[src] != EMPTY).all()
            self.pos[dst], self.shift[dst], self.seqs[dst] = self.pos[src], self.shift[src], self.seqs[src]
            self._empty(src)
        self.head = 0

    def _stored(self, event: ev.UBatchStored) -> None:
        """New tokens, then the purges that their store brought about."""
        cells = slice(event.begin, event.end)
        assert self.head == event.head_before
        assert (self.pos[cells] == EMPTY).all()
        self.pos[cells], self.seqs[cells] = event.stored.pos, event.stored.seq_set
        for purge in self._purges:
            self._purge(purge)
        self._purges.clear()
        self.head = event.head

    def _purge(self, event: ev.PositionsPurged) -> None:
        assert len(event.cells)
        assert self._in_range(event.cells, event.p0, event.p1)
        assert self._owned(event.cells, event.seq).all()
        self.seqs[event.cells] ^= np.uint64(1 << event.seq)
        self._empty(event.cells[self.seqs[event.cells] == 0])
