"""Storing tokens in the unified cache: the trial of `prepare`, the real store, and the purge that may follow.

Counterpart of `prepare` and `apply_ubatch` in llama-kv-cache-unified.cpp.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.cells import EMPTY, Cells, Index, SavedCells, single_owners
from kvmodel.errors import check_int
from kvmodel.events import (
    CellsOverwritten,
    Emit,
    PositionsPurged,
    PrepareFailed,
    QuirkSeen,
    SlotSearched,
    UBatchStored,
)
from kvmodel.limits import INT32_MAX
from kvmodel.slots import SlotSearch, find_slot
from kvmodel.types import CacheParams, pad


@dataclass(frozen=True, eq=False)
class Purge:
    """Positions [p0, p1) that `seq` lost in `cells`."""

    seq: int
    p0: int
    p1: int
    cells: Index


@dataclass(frozen=True, eq=False)
class Displaced:
    """What storing a ubatch did beside filling its cells.

    Attributes:
        cells: used cells that were overwritten.
        seqs: int32, the one sequence that owned each of them.
        pos: int32, the position of each.
        had_shift: one of them had a pending shift.
        repeated: sequences with a newly double-counted position, since a token names them twice.
        purges: older positions that went with the overwritten ones, by ascending sequence.
    """

    cells: Index
    seqs: NDArray[np.int32]
    pos: NDArray[np.int32]
    had_shift: bool
    repeated: tuple[int, ...]
    purges: tuple[Purge, ...]


class UnifiedStores:
    """The calls that seek slots and fill them."""

    params: CacheParams
    cells: Cells
    head: int
    emit: Emit
    name: str

    @property
    def n_kv(self) -> int:
        """Leading cells that attention has to look at now (`get_n_kv`)."""
        n_pad = self.params.n_pad
        return min(len(self.cells), max(n_pad, pad(self.cells.used_max_p1, n_pad)))

    def find_slot(self, n_tokens: int) -> SlotSearch:
        """Search cells for `n_tokens` tokens, whoever they belong to. Changes nothing."""
        n_tokens = check_int("n_tokens", n_tokens, 0, INT32_MAX)
        return find_slot(self.cells, self.head, n_tokens, self.params.swa_type, self.params.n_swa)

    def prepare(self, ubatches: list[UBatch]) -> tuple[int, ...] | None:
        """Find a slot for each ubatch as if those before it were stored already.

        Slots are filled on trial and rolled back in reverse. What the trial purged elsewhere stays purged (quirk
        purge-leak), and shifts of overwritten cells stay dropped (quirk swa-shift-lost).

        Returns:
            first cell of every slot; None if one of the ubatches has none.
        """
        undo: list[tuple[int, SavedCells]] = []
        leaks = False
        for i, ubatch in enumerate(ubatches):
            search = self.find_slot(len(ubatch))
            self.emit(SlotSearched(search=search, ubatch=i, cache=self.name))
            if not search.found:
                break
            undo.append((self.head, self.cells.save(search.cell, len(ubatch))))
            displaced = self._store(search.cell, ubatch)
            leaks |= self._report_trial(displaced, [saved for _, saved in undo])
        for head, saved in reversed(undo):
            self.cells.restore(saved)
            self.head = head
        n = len(undo)
        if n == len(ubatches):
            return tuple(saved.begin for _, saved in undo)
        self.emit(PrepareFailed(ubatch=n, n_ubatches=len(ubatches), n_placed=n, cache=self.name))
        if leaks:
            self._quirk("purge-leak", "nothing is stored, but the cells that were purged during the trial stay empty")
        return None

    def apply_ubatch(self, begin: int, ubatch: UBatch, *, number: int = 0) -> None:
        """Store a ubatch at cells [begin, begin + n); overwritten positions are purged up to the newest. Mutates.

        Args:
            begin: first cell of a slot that `find_slot` returned.
            ubatch: tokens in cell order.
            number: ordinal for the events.
        """
        head_before, n_kv_before = self.head, self.n_kv
        displaced = self._store(begin, ubatch)
        self._report(displaced)
        self.emit(
            UBatchStored(
                ubatch=number,
                begin=begin,
                end=self.head,
                stored=ubatch,
                head_before=head_before,
                head=self.head,
                n_kv_before=n_kv_before,
                n_kv=self.n_kv,
                cache=self.name,
            )
        )

    def _store(self, begin: int, ubatch: UBatch) -> Displaced:
        """What a trial and a real store have in common; head moves behind the slot. Mutates."""
        cells = self.cells
        used = np.flatnonzero(cells.pos[begin : begin + len(ubatch)] != EMPTY) + begin
        seqs, pos, had_shift = single_owners(cells.seqs[used]), cells.pos[used], bool(cells.shift[used].any())
        cells.free(used)
        cells.put(begin, ubatch.pos, ubatch.seq_set, ubatch.token)
        repeated = tuple(seq for seq, again in _repeats(ubatch) if cells.spans.echo(seq, again))
        purges = tuple(self._purges(seqs, pos))
        self.head = begin + len(ubatch)
        return Displaced(used, seqs, pos, had_shift, repeated, purges)

    def _purges(self, seqs: NDArray[np.int32], pos: NDArray[np.int32]) -> Iterator[Purge]:
        """Drop what each overwritten sequence still has up to its newest lost position, so that no gap is left."""
        for seq in np.unique(seqs).tolist():
            p0, p1 = max(self.cells.seq_pos_min(seq), 0), int(pos[seqs == seq].max()) + 1
            hit = self.cells.select(p0, p1, seq)
            if len(hit):
                self.cells.seq_rm(hit, seq)
                yield Purge(seq, p0, p1, hit)

    def _report(self, displaced: Displaced) -> None:
        if len(displaced.cells):
            self.emit(CellsOverwritten(cells=displaced.cells, seqs=displaced.seqs, pos=displaced.pos, cache=self.name))
        self._report_repeats(displaced)
        for purge in displaced.purges:
            self._report_purge(purge, purge.cells, trial=False)

    def _report_trial(self, displaced: Displaced, restored: list[SavedCells]) -> bool:
        """Tell what will outlive the roll-back of the slots `restored`; return whether a purge is among it."""
        if displaced.had_shift:
            detail = "the trial store dropped the pending shift of cells it overwrote; they come back without it"
            self._quirk("swa-shift-lost", detail)
        self._report_repeats(displaced)
        leaks = False
        for purge in displaced.purges:
            inside = [(purge.cells >= part.begin) & (purge.cells < part.end) for part in restored]
            lasting = purge.cells[~np.logical_or.reduce(inside)]
            if len(lasting):
                self._report_purge(purge, lasting, trial=True)
                leaks = True
        return leaks

    def _report_purge(self, purge: Purge, cells: Index, *, trial: bool) -> None:
        self.emit(PositionsPurged(seq=purge.seq, p0=purge.p0, p1=purge.p1, cells=cells, trial=trial, cache=self.name))

    def _report_repeats(self, displaced: Displaced) -> None:
        for seq in displaced.repeated:
            self._quirk("cp-double-count", f"a token names sequence {seq} twice, so its position is counted twice")

    def _quirk(self, quirk: str, detail: str) -> None:
        self.emit(QuirkSeen(quirk=quirk, detail=detail, cache=self.name))


def _repeats(ubatch: UBatch) -> list[tuple[int, NDArray[np.int32]]]:
    """Sequences that a token names more than once, each with the positions of those tokens."""
    if ubatch.seq_id.shape[1] < 2:
        return []
    ids = np.sort(ubatch.seq_id, axis=1)
    rows, cols = np.nonzero((ids[:, 1:] == ids[:, :-1]) & (ids[:, 1:] >= 0))
    named = ids[rows, cols]
    return [(seq, ubatch.pos[rows[named == seq]]) for seq in np.unique(named).tolist()]
