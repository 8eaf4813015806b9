"""A slot search in words: where it started and why, every refused run and what stopped it, the result."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from kvmodel.slots import Blocked, SlotSearch, Start
from kvmodel.words import cell_run, count, upper_first

MOST_REFUSALS = 50
"""Refusals that `explain_search` spells out before it only counts the rest."""

STOPPED = {
    Blocked.SHARED: ("belongs to several sequences", "belong to several sequences"),
    Blocked.VISIBLE: ("is still seen by its sequence", "are still seen by their sequences"),
    Blocked.NO_OWNER: ("is used without an owner", "are used without an owner"),
    Blocked.OCCUPIED: ("holds a token", "hold tokens"),
}
"""Why a cell, or several, cannot be used."""


@dataclass(frozen=True)
class Refusal:
    """Neighbouring probes that were stopped for one reason: usable cells, then cells that are not.

    Attributes:
        begin: first cell tried.
        stop: first cell that cannot be used; the number of cells of the cache at its end.
        last: last of the blocking cells that follow each other.
        reason: why they block.
        n_probes: how many runs of cells were tried and refused here.
    """

    begin: int
    stop: int
    last: int
    reason: Blocked
    n_probes: int

    def __str__(self) -> str:
        usable = self.stop - self.begin
        run = cell_run(self.begin, self.stop)
        too_few = f"{run} {'are too few' if usable > 1 else 'alone is not enough'}"
        if self.reason is Blocked.END:
            return f"{too_few} before the end of the cache" if usable else "the end of the cache is reached"
        blocked = f"{cell_run(self.stop, self.last + 1)} {STOPPED[self.reason][self.last > self.stop]}"
        return f"{too_few}, since {blocked}" if usable else blocked


def refusals(search: SlotSearch) -> Iterator[Refusal]:
    """The refused runs of a search in order, those without any usable cell joined to the one before."""
    n = len(search.probe_start)
    goes_on = np.zeros(n, np.bool_)
    goes_on[1:] = (
        (search.probe_start[1:] == search.probe_end[1:])
        & (search.probe_start[1:] == search.probe_end[:-1] + 1)
        & (search.probe_reason[1:] == search.probe_reason[:-1])
    )
    firsts = np.flatnonzero(~goes_on)
    lasts = np.append(firsts[1:], n)[: len(firsts)] - 1
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        yield Refusal(
            int(search.probe_start[first]),
            int(search.probe_end[first]),
            int(search.probe_end[last]),
            Blocked(int(search.probe_reason[first])),
            last - first + 1,
        )


def explain_search(search: SlotSearch, most: int = MOST_REFUSALS) -> list[str]:
    """Every step of a search as a sentence: the start, the refused runs, the result.

    Args:
        search: what `find_slot` returned.
        most: refusals to spell out; a last sentence counts the runs behind them.
    """
    return [_sentence(part) for part in (start(search), *_refused(search, most), result(search))]


def search_sentence(search: SlotSearch, most: int = 3) -> str:
    """The whole search in one sentence, with at most `most` refusals."""
    return _sentence("; ".join([start(search), *_refused(search, most), result(search)]))


def start(search: SlotSearch) -> str:
    """Where a search began, and why there."""
    wanted = f"{count(search.n_tokens, 'cell')} in a row"
    if search.start_reason is Start.EARLY:
        return (
            f"{wanted} sought from cell 0, since head {search.head} is more than"
            f" the used cells plus 2 x {search.n_tokens}"
        )
    return f"{wanted} sought from head, cell {search.start}"


def result(search: SlotSearch) -> str:
    """What a search found; on failure what is free, what could be overwritten, and the longest run."""
    if search.found:
        return f"found {cell_run(search.cell, search.cell + search.n_tokens)}"
    if search.too_many:
        return f"no slot: the whole cache has {count(search.n_cells, 'cell')}"
    usable = f"{count(search.free, 'cell')} free"
    if search.reusable:
        usable += f", {search.reusable:,} expired from the window"
    if not search.longest:
        return f"no slot: {usable}"
    longest = cell_run(search.longest_start, search.longest_start + search.longest)
    return f"no slot: {usable}, the longest run is {search.longest:,} ({longest})"


def _refused(search: SlotSearch, most: int) -> list[str]:
    told = list(islice(refusals(search), most))
    rest = len(search.probe_start) - sum(refusal.n_probes for refusal in told)
    words = [str(refusal) for refusal in told]
    return [*words, f"{count(rest, 'more run')} refused"] if rest else words


def _sentence(words: str) -> str:
    return f"{upper_first(words)}."
