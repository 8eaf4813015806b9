"""A set of cells as a state stream sees it: which cells are written, and where restored ones go.

The layout is one for all caches. They differ in the cells they choose, in the ids that a single sequence carries and
in how a slot is found; each kind has its own subclass.
"""

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.cells import seq_bit
from kvmodel.events import Emit
from kvmodel.formats.state_table import CellRules, CellTable
from kvmodel.slots import SlotSearch
from kvmodel.tensors import Layout, Tensors

Index = NDArray[np.intp]
Seqs = NDArray[np.uint64]


class StoredCells(Protocol):
    """The arrays that every kind of cells has."""

    pos: NDArray[np.int32]
    seqs: NDArray[np.uint64]


class StoredParams(Protocol):
    """The parameter that every kind of cache has."""

    @property
    def n_seq_max(self) -> int:
        """Sequences the cache is made for."""
        ...


class StoredCache(Protocol):
    """What a stream needs of a cache of any kind."""

    emit: Emit
    head: int
    name: str
    tensors: Tensors | None

    @property
    def params(self) -> StoredParams:
        """What the cache was made of."""
        ...

    @property
    def cells(self) -> StoredCells:
        """The state."""
        ...

    @property
    def size(self) -> int:
        """Number of cells."""
        ...

    @property
    def layout(self) -> Layout:
        """How K and V lie."""
        ...

    def seq_rm(self, seq: int, p0: int, p1: int) -> bool:
        """Remove a sequence."""
        ...

    def clear(self, data: bool = True) -> None:
        """Empty every cell."""
        ...


class Places(ABC):
    """The cells of one cache, for writing and restoring.

    Attributes:
        cache: what is read or written.
        n_ids: owners that each cell of a single-sequence stream names.
        lowest_pos: smallest position that can be restored.
        one_cell_each: no sequence owns two cells.
    """

    cache: StoredCache
    n_ids = 1
    lowest_pos = 0
    one_cell_each = False

    @property
    def rules(self) -> CellRules:
        """What the cells of a whole stream must keep to."""
        return CellRules(self.cache.params.n_seq_max, self.lowest_pos, self.one_cell_each)

    @abstractmethod
    def chosen(self, seq: int) -> Index:
        """Cells that a stream of `seq` (-1: of everything) holds, ascending."""

    @abstractmethod
    def owners(self, cells: Index, seq: int) -> Seqs:
        """The owners of these cells that are written, uint64 [n]."""

    @abstractmethod
    def put_all(self, table: CellTable) -> None:
        """Replace everything by the cells of a table, from cell 0 on. Mutates."""

    @abstractmethod
    def put_sequence(self, pos: NDArray[np.int32], seq: int) -> str:
        """Seek a slot for a sequence and fill it; head is its first cell then. Mutates.

        Returns:
            what would have fitted, in words, if there is none; nothing if there is one.
        """

    def holds(self, pos: NDArray[np.int32], seq: int) -> bool:
        """Whether the slot at head begins and ends with what was just put there (upstream asserts it)."""
        cache, ends = self.cache, np.array([0, len(pos) - 1])
        at = cache.head + ends
        if at[-1] >= cache.size:
            return False
        return bool((cache.cells.pos[at] == pos[ends]).all() and (cache.cells.seqs[at] & seq_bit(seq)).all())


def ubatch_of(pos: NDArray[np.int32], seq: int) -> UBatch:
    """Restored cells of one sequence as the ubatch that fills a slot (`ubatch_reserve` in llama-batch.cpp)."""
    n = len(pos)
    seq_id, ones = np.full((n, 1), seq, np.int32), np.ones(n, np.int32)
    return UBatch(np.arange(n, dtype=np.int32), pos, seq_id, ones, no_tokens(n), True, 1, n)


def no_tokens(n: int) -> NDArray[np.int32]:
    """Serial numbers of restored cells: a stream does not say which tokens they hold."""
    return np.full(n, -1, np.int32)


def room(search: SlotSearch) -> str:
    """How much would have fitted where a search found no slot; nothing if it did."""
    if search.found:
        return ""
    if search.too_many:
        return f"at most {search.n_cells:,}, the cells of the cache"
    return f"at most {search.longest:,}, the longest run of usable cells"
