"""The slot search of the recurrent cache, which also fills: every sequence of a ubatch gets a cell, all in a row.

Counterpart of the recurrent branch of `llama_kv_cache_find_slot` (January 2025). Where upstream asserts, the cache is
left as it is at that point.
"""

from dataclasses import dataclass

import numpy as np

from kvmodel.batch import UBatch
from kvmodel.caches.recurrent_tails import UINT32, RecurrentTails
from kvmodel.errors import CacheAbort, ParamError
from kvmodel.events_recurrent import CellsSwapped, SlotFilled, SlotRefused, StateBegun, StateCopied

Sets = list[tuple[int, ...]]
Jumps = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class StateSlot:
    """What a search came to.

    Attributes:
        cell: first cell of the slot, -1 if a sequence id was refused.
        found: whether the ubatch can be computed.
    """

    cell: int
    found: bool


class RecurrentSlots(RecurrentTails):
    """The search, in the order of upstream's passes over the sequence sets of a ubatch."""

    def find_slot(self, ubatch: UBatch, number: int = 0, *, in_decode: bool = False) -> StateSlot:
        """Bring the states of a ubatch together, beginning or copying those that have no cell of their own. Mutates.

        Args:
            ubatch: equally many tokens of every sequence set.
            number: ordinal for the events.
            in_decode: with what a decode does before it: head beyond used + 2 x tokens returns to 0.

        Raises:
            CacheAbort: a plain ubatch, or a state that upstream asserts to be there is not.
            ParamError: the ubatch is empty.
        """
        head_before = self.head
        if in_decode and self.head > (self.used + 2 * len(ubatch)) % UINT32:
            self.head = 0
        return self._search(ubatch, number, head_before)

    def _search(self, ubatch: UBatch, number: int, head_before: int) -> StateSlot:
        """Seek from head on and fill; tell what happened. Mutates."""
        start = self.head
        sets = _sets(ubatch)
        refused = self._leave_for_shared(sets)
        if refused is not None:
            n, name = len(self.cells), self.name
            event = SlotRefused(ubatch=number, seq=refused, n_cells=n, head_before=head_before, head=start, cache=name)
            self.emit(event)
            return StateSlot(-1, False)
        jumps = self._fill(ubatch, sets)
        found = self.n >= len(sets)
        self.emit(
            SlotFilled(
                ubatch=number,
                begin=self.head,
                filled=ubatch,
                n=self.n,
                head_before=head_before,
                start=start,
                found=found,
                jumps=jumps,
                cache=self.name,
            )
        )
        self._quirk("recurrent-swap-loss", "the swaps put another state in its place, so its own is lost")
        return StateSlot(self.head, found)

    def _fill(self, ubatch: UBatch, sets: Sets) -> Jumps:
        """Find the cells, bring them together, tag them; head becomes the first one. Mutates."""
        firsts = [ids[0] for ids in sets]
        first, last = self._claim(firsts)
        self._gather(firsts, first)
        jumps = self._tag(ubatch, sets, first)
        self.head, self.n, self.used = first, last - first + 1, self.cells.n_owned
        return jumps

    def _leave_for_shared(self, sets: Sets) -> int | None:
        """Sequences that share a set with one before them leave their own state.

        Returns:
            a sequence id that is not below the number of cells, which ends the search; None if there is none.
        """
        for ids in sets:
            for j, seq in enumerate(ids):
                if not self._known(seq):
                    return seq
                if j and self.cells.tail[seq] >= 0:
                    self._leave(seq)
        return None

    def _claim(self, firsts: list[int]) -> tuple[int, int]:
        """Point the tail of every set's first sequence at a cell that no other sequence owns.

        Returns:
            the lowest and the highest of these cells.
        """
        cells = self.cells
        empty = cells.next_empty(self.head)
        tails = []
        for i, seq in enumerate(firsts):
            tail = int(cells.tail[seq])
            if tail >= 0 and not cells.has_seq(tail, seq):
                raise self._no_state(seq, tail, self.lost.get(seq, ""))
            if tail < 0 or not cells.alone(tail, seq):
                if empty < 0:
                    raise CacheAbort(f"there is no empty cell for the state of sequence {seq}; upstream asserts one")
                self._move_to(seq, tail, empty)
                tail = empty
                empty = cells.next_empty(empty + 1) if i + 1 < len(firsts) else empty
            tails.append(tail)
        return min(tails), max(tails)

    def _move_to(self, seq: int, shared: int, cell: int) -> None:
        if shared < 0:
            self.emit(StateBegun(seq=seq, cell=cell, cache=self.name))
        else:
            self.cells.branch(seq, cell)
            src = int(self.cells.src[cell])
            self.emit(StateCopied(seq=seq, cell=cell, shared=shared, src=src, cache=self.name))
        self.cells.tail[seq] = cell

    def _gather(self, firsts: list[int], first: int) -> None:
        """Swap cells until the states stand in the order of the sets, from `first` on."""
        cells = self.cells
        for cell, seq in enumerate(firsts, first):
            other = int(cells.tail[seq])
            if cell == other:
                continue
            if cell >= len(cells):
                raise CacheAbort(f"sequence {seq} would go to cell {cell}, beyond the last one; upstream writes there")
            cells.swap(cell, other)
            self.emit(CellsSwapped(seq=seq, cell=cell, other=other, cache=self.name))

    def _tag(self, ubatch: UBatch, sets: Sets, first: int) -> Jumps:
        """Give the cells their new positions and owners; return the states whose positions do not follow."""
        cells, per = self.cells, ubatch.n_seq_tokens
        part = slice(first, first + len(sets))
        before, now = cells.pos[part].copy(), ubatch.pos[per - 1 :: per]
        jumped = np.flatnonzero((before >= 0) & (now != before.astype(np.int64) + per)).tolist()
        cells.pos[part], cells.token[part] = now, ubatch.token[per - 1 :: per]
        cells.seqs[part] = ubatch.seq_set[::per]
        for cell, ids in enumerate(sets, first):
            cells.tail[list(ids)] = cell
        return tuple((sets[i][0], int(before[i]), int(now[i])) for i in jumped)

    def _no_state(self, seq: int, tail: int, quirk: str) -> CacheAbort:
        return CacheAbort(
            f"the tail of sequence {seq} points at cell {tail}, which it does not own; upstream asserts that it does",
            quirk=quirk,
        )


def _sets(ubatch: UBatch) -> Sets:
    """The sequence ids of every set, in the order given."""
    if not ubatch.equal_seqs:
        raise CacheAbort("a plain ubatch; allowed: one of an equal or seq split (upstream asserts equal_seqs)")
    if not len(ubatch):
        raise ParamError("ubatch", "no tokens", "at least 1")
    rows = range(0, len(ubatch), ubatch.n_seq_tokens)
    sets = [tuple(ubatch.seq_id[row, : ubatch.n_seq_id[row]].tolist()) for row in rows]
    if () in sets:
        raise CacheAbort("a token without a sequence; allowed: 1 or more ids (upstream reads beyond the list)")
    return sets
