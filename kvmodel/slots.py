"""The search for a run of usable cells, with every probe and the reason it was refused.

Counterpart of `llama_kv_cache_unified::find_slot`. The search only reads.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import EMPTY, Cells, seq_bit, single_owners
from kvmodel.mask import masked_swa
from kvmodel.types import SWAType

Int64 = NDArray[np.int64]

UINT32 = 2**32


class Blocked(IntEnum):
    """Why a cell, or the end of the cache, stopped a probe."""

    SHARED = 1
    """The cell belongs to several sequences."""
    VISIBLE = 2
    """Its only sequence can still see it: no window, or inside the window."""
    NO_OWNER = 3
    """The cell is used but no sequence owns it (quirk no-seq)."""
    END = 4
    """The run would reach past the last cell; the search goes on at cell 0."""
    OCCUPIED = 5
    """It holds a token; the older cache overwrites none."""


class Start(IntEnum):
    """Where a search begins."""

    HEAD = 0
    """At head."""
    EARLY = 1
    """At cell 0, since head is more than used + 2 x tokens: enough cells may be free before it."""


@dataclass(frozen=True, eq=False)
class SlotSearch:
    """A search and its result.

    Attributes:
        n_tokens: cells asked for in a row.
        n_cells: cells of the cache.
        head: head before the search.
        start, start_reason: first cell tried and why.
        cell: first cell of the slot, -1 if there is none.
        probe_start: int64 [p], first cell of every refused run, in order.
        probe_end: int64 [p], the cell that stopped it (n_cells at the end of the cache, before which no cell of
            the run was looked at).
        probe_reason: uint8 [p], a Blocked code each.
        free, reusable, longest: set on failure: empty cells, window-expired cells that could be
            overwritten, and the longest run of either; -1 otherwise.
        longest_start: first cell of that longest run, -1 if there is none.
        too_many: the batch part is larger than the whole cache; nothing was tried.
    """

    n_tokens: int
    n_cells: int
    head: int
    start: int
    start_reason: Start
    cell: int
    probe_start: Int64
    probe_end: Int64
    probe_reason: NDArray[np.uint8]
    free: int = -1
    reusable: int = -1
    longest: int = -1
    longest_start: int = -1
    too_many: bool = False

    @property
    def found(self) -> bool:
        """Whether there is a slot."""
        return self.cell >= 0

    @property
    def n_tested(self) -> int:
        """Cells that the search counts as tested: those of refused runs, the cell that stopped each included."""
        return int((self.probe_end - self.probe_start + (self.probe_reason != Blocked.END)).sum())


def block_reasons(
    cells: Cells, swa_type: SWAType, n_swa: int, begin: int = 0, end: int | None = None
) -> NDArray[np.uint8]:
    """Why each of the cells [begin, end) cannot be used, uint8: 0 for usable, else a Blocked code.

    Usable are empty cells and cells whose only sequence has moved past them: its next position, newest plus 1,
    would no longer see the cell through the window.
    """
    reasons = np.zeros((len(cells) if end is None else end) - begin, np.uint8)
    stop = min(begin + len(reasons), max(begin, cells.used_max_p1))
    pos, seqs = cells.pos[begin:stop], cells.seqs[begin:stop]
    used = reasons[: stop - begin]
    filled = pos != EMPTY
    used[filled] = Blocked.VISIBLE
    used[filled & (seqs == 0)] = Blocked.NO_OWNER
    used[(seqs & (seqs - np.uint64(1))) != 0] = Blocked.SHARED
    if swa_type is not SWAType.NONE:
        for seq in np.unique(single_owners(seqs[used == Blocked.VISIBLE])).tolist():
            expired = masked_swa(pos, cells.seq_pos_max(seq) + 1, swa_type, n_swa)
            used[(seqs == seq_bit(seq)) & expired] = 0
    return reasons


def find_slot(cells: Cells, head: int, n_tokens: int, swa_type: SWAType, n_swa: int) -> SlotSearch:
    """Look for `n_tokens` usable cells in a row, from head on, once around the cache.

    Args:
        cells: read only.
        head: cell at which the search starts, unless it lies beyond used + 2 x tokens.
        n_tokens: length of the run.
        swa_type: window type; expired cells may be overwritten.
        n_swa: its length in positions.
    """
    early = head > cells.used + 2 * n_tokens
    start = (0, Start.EARLY) if early else (head, Start.HEAD)

    def reasons(begin: int, end: int) -> NDArray[np.uint8]:
        return block_reasons(cells, swa_type, n_swa, begin, end)

    return search_run(reasons, len(cells), head, start, n_tokens, cells.used)


def search_run(
    reasons_of: Callable[[int, int], NDArray[np.uint8]],
    size: int,
    head: int,
    start: tuple[int, Start],
    n_tokens: int,
    used: int | None = None,
) -> SlotSearch:
    """Walk the gaps between blocked cells, as every generation does.

    Args:
        reasons_of: asked for the Blocked codes of the cells [begin, end): of the first run, then of all.
        size: number of cells.
        head: head before the search.
        start: first cell tried, and why; a cell beyond the end wraps.
        n_tokens: length of the run.
        used: cells in use, for the figures of a failure; None where every used cell is blocked.
    """
    first, why = start
    none = np.empty(0, np.int64)
    search = SlotSearch(n_tokens, size, head, first, why, -1, none, none, none.astype(np.uint8))
    if n_tokens > size:
        return replace(search, too_many=True)
    if first + n_tokens <= size and not reasons_of(first, first + n_tokens).any():
        return replace(search, cell=first)
    reasons = reasons_of(0, size)
    cell, begins, ends = _probe(np.flatnonzero(reasons).astype(np.int64), size, first, n_tokens)
    codes = np.append(reasons, np.uint8(Blocked.END))[ends]
    search = replace(search, cell=cell, probe_start=begins, probe_end=ends, probe_reason=codes)
    if search.found:
        return search
    return _with_failure(search, int(np.count_nonzero(reasons == 0)) if used is None else size - used, reasons)


def _probe(blocked: Int64, size: int, start: int, n: int) -> tuple[int, Int64, Int64]:
    """Walk the gaps between blocked cells as the search does: to the end, then from cell 0 on.

    A third pass happens when the second one wraps as well; its first blocked cell ends the search.

    Returns:
        the slot or -1, and first cell and stopping cell of every refused run.
    """
    begins: list[Int64] = []
    ends: list[Int64] = []
    tested = 0
    while True:
        cell, first, last = _probe_pass(blocked, size, start, n, tested)
        begins.append(first)
        ends.append(last)
        if cell is not None:
            return cell, np.concatenate(begins), np.concatenate(ends)
        tested = (tested + size - start) % UINT32
        start = 0


def _probe_pass(blocked: Int64, size: int, start: int, n: int, tested: int) -> tuple[int | None, Int64, Int64]:
    """One pass from `start` on, with `tested` cells behind it.

    A refused run costs its length and the cell that stopped it, in unsigned 32-bit arithmetic. Whether every cell has
    been tested is asked after a blocked cell only, so a run that cannot fit before the end of the cache wraps first.

    Returns:
        the slot, -1 for giving up or None for wrapping; the refused runs.
    """
    ends = np.append(blocked[np.searchsorted(blocked, start) :], size)
    begins = np.concatenate([[start], ends[:-1] + 1])
    wraps = begins + n > size
    fits = ends - begins >= n
    gives_up = (tested + ends + 1 - start) % UINT32 >= size
    k = int((wraps | fits | gives_up).argmax())
    if wraps[k]:
        return None, begins[: k + 1], np.append(ends[:k], size)
    if fits[k]:
        return int(begins[k]), begins[:k], ends[:k]
    return -1, begins[: k + 1], ends[: k + 1]


def _with_failure(search: SlotSearch, free: int, reasons: NDArray[np.uint8]) -> SlotSearch:
    usable = reasons == 0
    edges = np.flatnonzero(np.diff(np.concatenate([[0], usable.view(np.int8), [0]])))
    begins, lengths = edges[::2], edges[1::2] - edges[::2]
    best = int(lengths.argmax()) if len(lengths) else -1
    return replace(
        search,
        free=free,
        reusable=int(np.count_nonzero(usable)) - free,
        longest=int(lengths[best]) if best >= 0 else 0,
        longest_start=int(begins[best]) if best >= 0 else -1,
    )
