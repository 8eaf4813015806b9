"""State streams of the older caches, for transformers and for recurrent models, and of the recurrent memory.

Counterpart of `write_kv_cache` and `read_kv_cache_meta` in llama-context.cpp (January 2025), and of `state_write` and
`state_read_meta` in llama-memory-recurrent.cpp (mid-2025), which do the same.
"""

import numpy as np
from numpy.typing import NDArray

from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.recurrent_states import RecurrentStates
from kvmodel.cells import seq_bit
from kvmodel.errors import CacheAbort
from kvmodel.formats.state_places import Index, Places, Seqs, no_tokens, room, ubatch_of
from kvmodel.formats.state_table import CellRules, CellTable
from kvmodel.limits import INT32_MAX, MAX_SEQ


class OlderPlaces(Places):
    """Every cell with an owner, with all its ids; a single sequence without any."""

    n_ids = 0

    def chosen(self, seq: int) -> Index:
        """Cells with an owner, or those that `seq` owns."""
        seqs = self.cache.cells.seqs
        return np.flatnonzero(seqs if seq < 0 else seqs & seq_bit(seq))

    def owners(self, cells: Index, seq: int) -> Seqs:
        """All owners, or none."""
        return self.cache.cells.seqs[cells] if seq < 0 else np.zeros(len(cells), np.uint64)


class LegacyPlaces(OlderPlaces):
    """The transformer cache. Cells keep the delta that a former token left in them (quirk stale-delta)."""

    def __init__(self, cache: LegacyCache) -> None:
        self.cache: LegacyCache = cache

    def put_all(self, table: CellTable) -> None:
        """Fill the cleared cache; `used` stays 0 if the stream ends within the cells."""
        self.cache.clear()
        self.cache.cells.put(0, table.pos, table.seqs, no_tokens(len(table.pos)))
        if table.end is None:
            self.cache.used = len(table.pos)

    def put_sequence(self, pos: NDArray[np.int32], seq: int) -> str:
        """Seek and fill as a decode does; a failed search moves head."""
        return room(self.cache.find_slot(ubatch_of(pos, seq)))


class RecurrentPlaces(OlderPlaces):
    """A recurrent cache: whole states, one cell each, at any position."""

    lowest_pos = -INT32_MAX - 1
    one_cell_each = True

    def __init__(self, cache: RecurrentStates) -> None:
        self.cache: RecurrentStates = cache

    def put_all(self, table: CellTable) -> None:
        """Fill the cleared cache and point the tails there.

        A stream that ends within the cells leaves `used` at 0 and the states without source.
        """
        cache, n = self.cache, len(table.pos)
        cache.clear()
        everyone = int(np.bitwise_or.reduce(table.seqs, initial=np.uint64(0)))
        if everyone >> cache.size:
            seq = everyone.bit_length() - 1
            raise CacheAbort(f"sequence {seq} has no tail among {cache.size} cells; upstream writes beyond them")
        cache.cells.pos[:n], cache.cells.seqs[:n] = table.pos, table.seqs
        for seq in range(everyone.bit_length()):
            owned = np.flatnonzero(table.seqs & seq_bit(seq))
            cache.cells.tail[seq] = owned[0] if len(owned) else -1
        if table.end is None:
            cache.used = n
            self._keep_states(n)

    def put_sequence(self, pos: NDArray[np.int32], seq: int) -> str:
        """Give the sequence a cell as a decode does; its state is kept."""
        if not self.cache.find_slot(ubatch_of(pos, seq)).found:
            return f"a sequence id below {self.cache.size}, the cells of the cache"
        self._keep_states(len(pos))
        return ""

    def _keep_states(self, n: int) -> None:
        """Make the restored cells their own source, so that the next computation goes on from what they hold."""
        part = slice(self.cache.head, self.cache.head + n)
        self.cache.cells.src[part] = np.arange(self.cache.size)[part]


class MemoryPlaces(RecurrentPlaces):
    """The recurrent memory of mid-2025, which knows no bound for ids but what a set of sequences can hold."""

    @property
    def rules(self) -> CellRules:
        """What the cells of a whole stream must keep to."""
        return CellRules(MAX_SEQ, self.lowest_pos, self.one_cell_each)
