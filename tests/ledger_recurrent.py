"""A recurrent cache carried forward by events alone: what they say must lead to what the cells hold."""

import numpy as np

from kvmodel import events as ev
from kvmodel import events_recurrent as rec
from kvmodel.caches.recurrent import RecurrentCache

NONE = -1
UINT32 = 2**32
CARRIED = ("pos", "src", "seqs")


class RecurrentLedger:
    """Copies of the arrays and counters that change only as an event says.

    Every claim an event makes about the state before it is checked on the way.
    """

    def __init__(self, cache: RecurrentCache) -> None:
        self.cells = {name: array.copy() for name, array in cache.arrays.items() if name != "token"}
        self.head, self.used, self.n = cache.head, cache.used, cache.n
        self._left = NONE

    def check(self, cache: RecurrentCache) -> None:
        """The state that the events lead to is the state of the cache."""
        for name, array in self.cells.items():
            assert array.tolist() == cache.arrays[name].tolist(), name
        assert (self.head, self.used, self.n) == (cache.head, cache.used, cache.n)

    def take(self, event: ev.Event) -> None:
        match event:
            case rec.StateBegun():
                assert (self._tail(event.seq), self.cells["seqs"][event.cell]) == (NONE, 0)
                self.cells["tail"][event.seq] = event.cell
            case rec.StateCopied():
                self._branched(event)
            case rec.StateLeft():
                self._leave(event)
            case rec.CellsSwapped():
                self._swapped(event)
            case rec.SlotFilled():
                self._filled(event)
            case rec.SlotRefused():
                assert (self.head, event.n_cells) == (event.head_before, len(self.cells["pos"]))
                self.head = event.head
            case rec.SourcesTaken():
                self._sources(event)
            case rec.StatesStored():
                assert event.begin == self.head
                self.head = event.head
            case rec.SlotTakenBack():
                assert self.head == event.head_before
                self.head, self.n = event.head, event.n
            case _:
                self._edit(event)

    def _edit(self, event: ev.Event) -> None:
        match event:
            case rec.StateRemoved():
                self._removed(event)
            case rec.StateShared():
                self._shared(event)
            case ev.SeqKept():
                self._kept(event)
            case rec.StateShifted():
                [cell] = event.cells.tolist()
                assert self._tail(event.seq) == cell
                assert self.cells["pos"][cell] + event.shift == event.pos
                self.cells["pos"][cell] = event.pos
            case rec.StateDivided():
                [cell] = event.cells.tolist()
                assert self._tail(event.seq) == cell
                self.cells["pos"][cell] = event.pos
            case ev.Cleared():
                for name in ("pos", "src", "tail"):
                    self.cells[name][:] = NONE
                self.cells["seqs"][:] = self.head = self.used = 0

    def _tail(self, seq: int) -> int:
        return int(self.cells["tail"][seq])

    def _free(self, cells) -> None:
        self.cells["pos"][cells], self.cells["src"][cells], self.cells["seqs"][cells] = NONE, NONE, 0

    def _owners(self, cell: int) -> list[int]:
        return [seq for seq in range(64) if int(self.cells["seqs"][cell]) >> seq & 1]

    def _branched(self, event: rec.StateCopied) -> None:
        cells = self.cells
        assert self._tail(event.seq) == event.shared
        assert event.seq in self._owners(event.shared)
        assert len(self._owners(event.shared)) > 1
        assert (cells["seqs"][event.cell], cells["src"][event.shared]) == (0, event.src)
        cells["pos"][event.cell], cells["src"][event.cell] = cells["pos"][event.shared], event.src
        cells["seqs"][event.shared] ^= np.uint64(1 << event.seq)
        cells["seqs"][event.cell] = 1 << event.seq
        cells["tail"][event.seq] = event.cell

    def _leave(self, event: rec.StateLeft) -> None:
        assert self._tail(event.seq) == event.cell
        self.cells["tail"][event.seq] = NONE
        self.cells["seqs"][event.cell] &= np.uint64(~(1 << event.seq) % 2**64)
        assert event.freed == (not self._owners(event.cell))
        if event.freed:
            self._free(event.cell)
            self.used = (self.used - 1) % UINT32
        self._left = event.cell if event.freed else NONE

    def _swapped(self, event: rec.CellsSwapped) -> None:
        here, there = event.cell, event.other
        assert self._tail(event.seq) == there
        for name in CARRIED:
            self.cells[name][[here, there]] = self.cells[name][[there, here]]
        for cell in (there, here):
            self.cells["tail"][self._owners(cell)] = cell

    def _filled(self, event: rec.SlotFilled) -> None:
        ubatch, cells = event.filled, self.cells
        assert self.head == event.head_before
        assert event.start in (event.head_before, 0)
        assert event.found == (event.n >= ubatch.n_seqs)
        ends = range(ubatch.n_seq_tokens - 1, len(ubatch), ubatch.n_seq_tokens)
        jumps = []
        for cell, row in enumerate(ends, event.begin):
            old, new = int(cells["pos"][cell]), int(ubatch.pos[row])
            if 0 <= old != new - ubatch.n_seq_tokens:
                jumps.append((int(ubatch.seq_id[row, 0]), old, new))
            cells["pos"][cell], cells["seqs"][cell] = new, ubatch.seq_set[row]
            cells["tail"][self._owners(cell)] = cell
        assert event.jumps == tuple(jumps)
        self.head, self.n, self.used = event.begin, event.n, int(np.count_nonzero(cells["seqs"]))

    def _sources(self, event: rec.SourcesTaken) -> None:
        own = np.arange(event.begin, event.begin + self.n)
        src = self.cells["src"][own]
        assert event.begin == self.head
        assert event.s_mask.tolist() == (src >= 0).tolist()
        assert event.s_copy.tolist() == np.where(src >= 0, src, own).tolist()
        self.cells["src"][own] = own

    def _removed(self, event: rec.StateRemoved) -> None:
        cells = self.cells
        assert self.head == event.head_before
        assert ((cells["pos"][event.cells] >= event.p0) & (cells["pos"][event.cells] < event.p1)).all()
        if event.tail_gone:
            cells["tail"][event.seq] = NONE
        gone = np.uint64(2**64 - 1 if event.seq < 0 else 1 << event.seq)
        cells["seqs"][event.cells] &= ~gone
        assert event.freed.tolist() == [cell for cell in event.cells.tolist() if not self._owners(cell)]
        self._free(event.freed)
        self.head, self.used = event.head, (self.used - len(event.freed)) % UINT32

    def _shared(self, event: rec.StateShared) -> None:
        if self._left >= 0:
            self.cells["delta"][self._left] = NONE
        self._left = NONE
        self.cells["tail"][event.dst] = self._tail(event.src)
        assert event.cells.tolist() == ([self._tail(event.src)] if self._tail(event.src) >= 0 else [])
        self.cells["seqs"][event.cells] |= np.uint64(1 << event.dst)

    def _kept(self, event: ev.SeqKept) -> None:
        cells = self.cells
        assert self.head == event.head_before
        others = [i for i in range(len(cells["pos"])) if event.seq not in self._owners(i)]
        assert event.freed.tolist() == [i for i in others if self._owners(i) or cells["pos"][i] >= 0]
        counted = sum(bool(cells["pos"][i] >= 0) for i in others)
        self._free(others)
        for cell in event.narrowed.tolist():
            assert len(self._owners(cell)) > 1
            cells["seqs"][cell] = 1 << event.seq
        cells["tail"][[i for i in range(len(cells["tail"])) if i != event.seq]] = NONE
        self.head, self.used = event.head, (self.used - counted) % UINT32
