"""What can be looked at: read-only state of every cells array at one moment, and the deltas between moments."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvmodel.caches.base import Part
from kvmodel.caches.unified import UnifiedCache
from kvmodel.limits import MAX_SEQ
from kvmodel.show import Card, Shown, cells_card
from kvmodel.spans import members, owns, union
from kvmodel.types import CacheParams

Arrays = Mapping[str, NDArray[Any]]
Index = NDArray[np.intp]
Spans = NDArray[np.int32]
Counters = Mapping[str, int | float | bool]


@dataclass(frozen=True, eq=False, repr=False)
class PartSnapshot(Shown):
    """One set of cells at one moment; arrays are read-only.

    Attributes:
        name: `kv`, `base` or `swa`.
        params: what the cache was made of.
        arrays: one entry a cell: pos, shift (older caches: delta), seqs, token; of a recurrent one also src and tail.
        counters: head, used, used_max_p1, n_kv, has_shift, fragmentation; of the older caches also do_defrag.
        spans: int32 [64, 2], smallest and largest position of every sequence, -1 for none.
        size_k_bytes, size_v_bytes: bytes of all K and all V tensors.
    """

    name: str
    params: CacheParams
    arrays: Arrays
    counters: Counters
    spans: Spans
    size_k_bytes: int
    size_v_bytes: int

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.params.kv_size

    @property
    def pos(self) -> NDArray[np.int32]:
        """Position of every cell, -1 for empty, int32 [n]."""
        return self.arrays["pos"]

    @property
    def shift(self) -> NDArray[np.int32]:
        """Pending shift of every cell, which the older caches call delta, int32 [n]."""
        return self.arrays["shift" if "shift" in self.arrays else "delta"]

    @property
    def src(self) -> NDArray[np.int32]:
        """Of a recurrent cache: the cell that each state is taken from next time, -1 for zero, int32 [n]."""
        return self.arrays["src"]

    @property
    def tail(self) -> NDArray[np.int32]:
        """Of a recurrent cache: entry s is the cell with the state of sequence s, -1 for none, int32 [n]."""
        return self.arrays["tail"]

    @property
    def is_recurrent(self) -> bool:
        """Whether the cells hold whole states instead of one token each."""
        return "tail" in self.arrays

    @property
    def seqs(self) -> NDArray[np.uint64]:
        """Owners of every cell as bit sets, uint64 [n]."""
        return self.arrays["seqs"]

    @property
    def token(self) -> NDArray[np.int32]:
        """Serial number of the token every cell holds, -1 for none, int32 [n]."""
        return self.arrays["token"]

    @property
    def head(self) -> int:
        """Cell at which the next search starts."""
        return int(self.counters["head"])

    @property
    def used(self) -> int:
        """Number of non-empty cells."""
        return int(self.counters["used"])

    @property
    def n_kv(self) -> int:
        """Leading cells that attention looks at."""
        return int(self.counters["n_kv"])

    def card(self) -> Card:
        """The cells and their sequences, to be shown in Jupyter or printed."""
        size = self.size_k_bytes + self.size_v_bytes
        return cells_card(f"Cells of {self.name}", self.arrays, self.counters, self._span, size)

    def _span(self, seq: int) -> tuple[int, int]:
        return int(self.spans[seq, 0]), int(self.spans[seq, 1])

    def owners(self, cell: int) -> tuple[int, ...]:
        """Sequences of one cell, ascending."""
        bits = int(self.seqs[cell])
        return tuple(s for s in range(MAX_SEQ) if bits >> s & 1)


@dataclass(frozen=True, eq=False)
class Delta:
    """What changed in one set of cells.

    Attributes:
        cells: intp [k], indices of the changed cells, ascending.
        before, after: the old and new values of every array at those cells, [k] each.
    """

    cells: Index
    before: Arrays
    after: Arrays

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        sides = (*self.before.values(), *self.after.values())
        return self.cells.nbytes + sum(values.nbytes for values in sides)


@dataclass(frozen=True, eq=False)
class PartMoment:
    """The figures of one set of cells after a frame, and the delta that led to it."""

    delta: Delta
    counters: Counters
    spans: Spans


def copy_arrays(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Writable copies of every array."""
    return {name: array.copy() for name, array in arrays.items()}


def frozen(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Read-only copies of every array."""
    copies = copy_arrays(arrays)
    for array in copies.values():
        array.flags.writeable = False
    return copies


def difference(before: Arrays, now: Arrays) -> Delta:
    """The cells in which any array differs, with old and new values."""
    changed = np.zeros(len(next(iter(now.values()))), np.bool_)
    for name, array in now.items():
        changed |= array != before[name]
    cells = np.flatnonzero(changed)
    return Delta(
        cells,
        {name: array[cells] for name, array in before.items()},
        {name: array[cells] for name, array in now.items()},
    )


def spans_of(part: Part, known: Spans | None = None, delta: Delta | None = None) -> Spans:
    """Smallest and largest position of every sequence of a live cache, int32 [64, 2], read-only; -1 for none.

    A unified cache answers itself, since its echoes count (quirk cp-double-count). The older caches say 0 for a
    sequence without cells, so there the cells are asked.

    Args:
        part: the cache.
        known: what it was before a change; of an older cache only the sequences in that change are recounted then.
        delta: the change.
    """
    if isinstance(part, UnifiedCache):
        spans = part.cells.spans.table()
    else:
        spans = _recounted(part.arrays["pos"], part.arrays["seqs"], known, delta)
    spans.flags.writeable = False
    return spans


def _recounted(pos: NDArray[np.int32], seqs: NDArray[np.uint64], known: Spans | None, delta: Delta | None) -> Spans:
    if known is None or delta is None:
        spans, touched = np.full((MAX_SEQ, 2), -1, np.int32), union(seqs)
    else:
        spans, touched = known.copy(), union(delta.before["seqs"]) | union(delta.after["seqs"])
    for seq in members(touched):
        owned = pos[owns(seqs, seq)]
        spans[seq] = (owned.min(), owned.max()) if len(owned) else -1
    return spans


def snapshot(part: Part) -> PartSnapshot:
    """A live cache as it is now."""
    return PartSnapshot(
        part.name,
        part.params,
        frozen(part.arrays),
        dict(part.counters),
        spans_of(part),
        part.size_k_bytes,
        part.size_v_bytes,
    )
