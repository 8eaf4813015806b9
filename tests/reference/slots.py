"""The search for a slot, cell by cell (`llama_kv_cache_unified::find_slot`)."""

from dataclasses import dataclass, field

from tests.reference.cells import RefCells
from tests.reference.window import Window


@dataclass
class Search:
    """First cell tried, the slot or -1, every refused run (begin, stopping cell, reason), and cells tested."""

    start: int
    cell: int = -1
    probes: list[tuple[int, int, str]] = field(default_factory=list)
    tested: int = 0


def why_blocked(cells: RefCells, i: int, window: Window) -> str:
    """Why a cell cannot be used for a new token; empty if it can."""
    if cells.is_empty(i):
        return ""
    owners = cells.seqs[i]
    if len(owners) > 1:
        return "shared"
    if not owners:
        return "no_owner"
    [owner] = owners
    next_pos = cells.pos_max(owner) + 1
    return "" if window.hides(cells.pos[i], next_pos) else "visible"


def find_slot(cells: RefCells, head: int, n: int, window: Window) -> Search:
    at = 0 if head > len(cells.used) + 2 * n else head
    search = Search(at)
    if n > cells.n:
        return search
    while True:
        if at + n > cells.n:
            search.probes.append((at, cells.n, "end"))
            search.tested += cells.n - at
            at = 0
            continue
        stop = next((i for i in range(at, at + n) if why_blocked(cells, i, window)), None)
        if stop is None:
            search.cell = at
            return search
        search.probes.append((at, stop, why_blocked(cells, stop, window)))
        search.tested += stop - at + 1
        at = stop + 1
        if search.tested >= cells.n:
            return search


def failure_figures(cells: RefCells, window: Window) -> tuple[int, int, int, int]:
    """Empty cells, used but expired cells, and length and first cell of the longest run of either."""
    free = sum(cells.is_empty(i) for i in range(cells.n))
    usable = [not why_blocked(cells, i, window) for i in range(cells.n)]
    longest, longest_start = 0, -1
    for begin in range(cells.n):
        end = begin
        while end < cells.n and usable[end]:
            end += 1
        if end - begin > longest:
            longest, longest_start = end - begin, begin
    return free, sum(usable) - free, longest, longest_start
