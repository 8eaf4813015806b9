"""A slot search in words: where it started and why, every refused run and what stopped it, the result."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    for first, last in _groups(search).tolist():
        yield _refusal(search, first, last)


def _groups(search: SlotSearch) -> NDArray[np.int64]:
    """First and last probe of every refusal, int64 [k, 2]."""
    n = len(search.probe_start)
    goes_on = np.zeros(n, np.bool_)
    goes_on[1:] = (
        (search.probe_start[1:] == search.probe_end[1:])
        & (search.probe_start[1:] == search.probe_end[:-1] + 1)
        & (search.probe_reason[1:] == search.probe_reason[:-1])
    )
    firsts = np.flatnonzero(~goes_on)
    lasts = np.append(firsts[1:], n)[: len(firsts)] - 1
    return np.stack([firsts, lasts], axis=1)


def _refusal(search: SlotSearch, first: int, last: int) -> Refusal:
    return Refusal(
        int(search.probe_start[first]),
        int(search.probe_end[first]),
        int(search.probe_end[last]),
        Blocked(int(search.probe_reason[first])),
        last - first + 1,
    )


class SearchSteps:
    """A search as steps: where it starts, its refusals, how many more there are, and what it comes to.

    Args:
        search: what `find_slot` returned.
        most: refusals that are steps of their own; one more step counts the runs behind them.
    """

    def __init__(self, search: SlotSearch, most: int = MOST_REFUSALS) -> None:
        self.search = search
        self._groups = _groups(search)
        self._told = min(len(self._groups), most)
        self._cut = len(self._groups) > most

    def __len__(self) -> int:
        return 1 + self._told + self._cut + 1

    def refusal(self, k: int) -> Refusal | None:
        """The refusal that step `k` tells, None for the other steps."""
        if not 1 <= k <= self._told:
            return None
        first, last = self._groups[k - 1].tolist()
        return _refusal(self.search, first, last)

    def words(self, k: int) -> str:
        """Step `k` in words, as a part of a sentence."""
        if k == 0:
            return start(self.search)
        if k == len(self) - 1:
            return result(self.search)
        refusal = self.refusal(k)
        rest = len(self.search.probe_start) - int(self._groups[self._told, 0]) if refusal is None else 0
        return str(refusal) if refusal else f"{count(rest, 'more run')} refused"

    def sentence(self, k: int) -> str:
        """Step `k` as a sentence."""
        return f"{upper_first(self.words(k))}."


def explain_search(search: SlotSearch, most: int = MOST_REFUSALS) -> list[str]:
    """Every step of a search as a sentence: the start, the refused runs, the result.

    Args:
        search: what `find_slot` returned.
        most: refusals to spell out; a last sentence counts the runs behind them.
    """
    steps = SearchSteps(search, most)
    return [steps.sentence(k) for k in range(len(steps))]


def search_sentence(search: SlotSearch, most: int = 3) -> str:
    """The whole search in one sentence, with at most `most` refusals."""
    steps = SearchSteps(search, most)
    return f"{upper_first('; '.join(steps.words(k) for k in range(len(steps))))}."


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
