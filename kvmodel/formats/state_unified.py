"""State streams of the unified cache.

Counterpart of `state_write` and `state_read_meta` in llama-kv-cache-unified.cpp (mid-2025).
"""

import numpy as np
from numpy.typing import NDArray

from kvmodel.caches.unified import UnifiedCache
from kvmodel.cells import EMPTY, seq_bit
from kvmodel.events import QuirkSeen, SlotSearched
from kvmodel.formats.state_places import Index, Places, Seqs, no_tokens, room, ubatch_of
from kvmodel.formats.state_table import CellTable
from kvmodel.limits import MAX_SEQ


class UnifiedPlaces(Places):
    """Every used cell, with its ids below n_seq_max; a single sequence names itself."""

    def __init__(self, cache: UnifiedCache) -> None:
        self.cache: UnifiedCache = cache

    def chosen(self, seq: int) -> Index:
        """Used cells, or those that `seq` owns."""
        cells = self.cache.cells
        return np.flatnonzero(cells.pos != EMPTY if seq < 0 else cells.seqs & seq_bit(seq))

    def owners(self, cells: Index, seq: int) -> Seqs:
        """All owners, or `seq` alone; without those of n_seq_max and above (quirk state-ids-dropped)."""
        n_seq_max = self.cache.params.n_seq_max
        seqs = self.cache.cells.seqs[cells]
        if seq >= 0:
            seqs &= seq_bit(seq)
        kept = seqs & np.uint64((1 << n_seq_max) - 1)
        lost = int(np.count_nonzero(kept != seqs))
        if lost:
            detail = f"{lost} cells have owners of n_seq_max = {n_seq_max} or more, which are not written"
            self._quirk("state-ids-dropped", detail)
        return kept

    def put_all(self, table: CellTable) -> None:
        """Fill the cleared cache; an owner named twice is counted twice (quirk cp-double-count)."""
        cells, repeated = self.cache.cells, np.array(table.repeated, np.int64)
        self.cache.clear(data=True)
        cells.put(0, table.pos, table.seqs, no_tokens(len(table.pos)))
        for seq in np.unique(repeated % MAX_SEQ).tolist():
            cells.spans.echo(seq, table.pos[repeated[repeated % MAX_SEQ == seq] // MAX_SEQ])
            self._quirk("cp-double-count", f"a cell names sequence {seq} twice, so its position is counted twice")

    def put_sequence(self, pos: NDArray[np.int32], seq: int) -> str:
        """Store a ubatch in a slot, as a decode would; head returns to the slot."""
        search = self.cache.find_slot(len(pos))
        self.cache.emit(SlotSearched(search=search, cache=self.cache.name))
        if search.found:
            self.cache.apply_ubatch(search.cell, ubatch_of(pos, seq))
            self.cache.head = search.cell
        return room(search)

    def _quirk(self, quirk: str, detail: str) -> None:
        self.cache.emit(QuirkSeen(quirk=quirk, detail=detail, cache=self.cache.name))
