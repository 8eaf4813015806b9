"""The search for a run of usable cells, with every probe and the reason it was refused.

Counterpart of `llama_kv_cache_unified::find_slot`. The search only reads.
"""

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import EMPTY, Cells, seq_bit
from kvmodel.mask import masked_swa
from kvmodel.types import SWAType

Int64 = NDArray[np.int64]


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
        probe_end: int64 [p], the cell that stopped it (n_cells at the end of the cache).
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
        """Cells looked at in refused runs, the cell that stopped each included."""
        return int((self.probe_end - self.probe_start + (self.probe_reason != Blocked.END)).sum())


def block_reasons(cells: Cells, swa_type: SWAType, n_swa: int) -> NDArray[np.uint8]:
    """Why each cell cannot be used, uint8 [n]: 0 for usable, else a Blocked code.

    Usable are empty cells and cells whose only sequence has moved past them: its next position, newest plus 1,
    would no longer see the cell through the window.
    """
    reasons = np.zeros(len(cells), np.uint8)
    n = cells.used_max_p1
    pos, seqs = cells.pos[:n], cells.seqs[:n]
    single = (seqs & (seqs - np.uint64(1))) == 0
    filled = pos != EMPTY
    part = reasons[:n]
    np.putmask(part, filled, np.uint8(Blocked.VISIBLE))
    np.putmask(part, filled & ~single, np.uint8(Blocked.SHARED))
    np.putmask(part, filled & (seqs == 0), np.uint8(Blocked.NO_OWNER))
    if swa_type is not SWAType.NONE:
        _release_expired(part, cells, swa_type, n_swa)
    return reasons


def _release_expired(part: NDArray[np.uint8], cells: Cells, swa_type: SWAType, n_swa: int) -> None:
    n = len(part)
    pos, seqs = cells.pos[:n], cells.seqs[:n]
    owners = np.unique(seqs[part == Blocked.VISIBLE]).tolist()
    for seq in (int(bits).bit_length() - 1 for bits in owners):
        expired = masked_swa(pos, cells.seq_pos_max(seq) + 1, swa_type, n_swa)
        part[(seqs == seq_bit(seq)) & expired] = 0


def find_slot(cells: Cells, head: int, n_tokens: int, swa_type: SWAType, n_swa: int) -> SlotSearch:
    """Look for `n_tokens` usable cells in a row, from head on, once around the cache.

    Args:
        cells: read only.
        head: cell at which the search starts, unless it lies beyond used + 2 x tokens.
        n_tokens: length of the run.
        swa_type: window type; expired cells may be overwritten.
        n_swa: its length in positions.
    """
    size = len(cells)
    early = head > cells.used + 2 * n_tokens
    start = 0 if early else head
    reason = Start.EARLY if early else Start.HEAD
    none = np.empty(0, np.int64)
    if n_tokens > size:
        return SlotSearch(n_tokens, size, head, start, reason, -1, none, none, none.astype(np.uint8), too_many=True)
    reasons = block_reasons(cells, swa_type, n_swa)
    cell, begins, ends = _probe(np.flatnonzero(reasons).astype(np.int64), size, start, n_tokens)
    codes = np.full(len(ends), Blocked.END, np.uint8)
    inside = ends < size
    codes[inside] = reasons[ends[inside]]
    search = SlotSearch(n_tokens, size, head, start, reason, cell, begins, ends, codes)
    return search if cell >= 0 else _with_failure(search, cells, reasons)


def _probe(blocked: Int64, size: int, start: int, n: int) -> tuple[int, Int64, Int64]:
    """Walk the gaps between blocked cells as the search does.

    Returns:
        the slot or -1, and first cell and stopping cell of every refused run.
    """
    cell, begins, ends = _probe_pass(blocked, size, start, n, tested=0)
    if cell is not None:
        return cell, begins, ends
    again, begins2, ends2 = _probe_pass(blocked, size, 0, n, tested=size - start)
    return (-1 if again is None else again), np.concatenate([begins, begins2]), np.concatenate([ends, ends2])


def _probe_pass(blocked: Int64, size: int, start: int, n: int, tested: int) -> tuple[int | None, Int64, Int64]:
    """One pass from `start` to the end; stops when every cell has been tested.

    A refused run costs its length and the blocked cell. The check for having tested everything follows a blocked
    cell only, so a run that ends the cache wraps first.
    """
    stops = np.append(blocked[np.searchsorted(blocked, start) :], size)
    begins = np.concatenate([[start], stops[:-1] + 1])
    fits = (stops - begins >= n) & (begins + n <= size)
    first_fit = int(fits.argmax()) if fits.any() else len(stops)
    gave_up = np.flatnonzero(tested + stops[:-1] + 1 - start >= size)
    if len(gave_up) and gave_up[0] < first_fit:
        last = int(gave_up[0]) + 1
        return -1, begins[:last], stops[:last]
    found = int(begins[first_fit]) if first_fit < len(stops) else None
    return found, begins[:first_fit], stops[:first_fit]


def _with_failure(search: SlotSearch, cells: Cells, reasons: NDArray[np.uint8]) -> SlotSearch:
    usable = reasons == 0
    edges = np.flatnonzero(np.diff(np.concatenate([[0], usable.view(np.int8), [0]])))
    begins, lengths = edges[::2], edges[1::2] - edges[::2]
    best = int(lengths.argmax()) if len(lengths) else -1
    free = len(cells) - cells.used
    return replace(
        search,
        free=free,
        reusable=int(np.count_nonzero(usable)) - free,
        longest=int(lengths[best]) if best >= 0 else 0,
        longest_start=int(begins[best]) if best >= 0 else -1,
    )
