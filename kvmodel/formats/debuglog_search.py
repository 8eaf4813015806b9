"""One slot search in a log: the summary, the ranges of the sequences, and the maps of the cells if there are any."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import single_owners
from kvmodel.formats.debuglog_cut import Budget, TooManyReadings
from kvmodel.formats.debuglog_lines import EMPTY, SEVERAL, UNCLEAR, BadMap, MapLines
from kvmodel.formats.debuglog_owners import owners
from kvmodel.formats.debuglog_positions import positions
from kvmodel.formats.debuglog_text import Prefix
from kvmodel.limits import INT32_MAX, MAX_CELLS, MAX_SEQ
from kvmodel.show import Card, Shown, Table, cell_map
from kvmodel.words import count, run

SUMMARY = re.compile(
    r"(.*?)(?:\w+::)*find_slot: n = +(\d{1,10}), used = +(\d{1,10}), head = +(\d{1,10}), size = +(\d{1,10}),"
    r" n_swa = +(\d{1,10})\s*",
    re.ASCII,
)
RANGE = re.compile(
    r".*?find_slot: min\[(\d{1,2})\] = +(-?\d{1,10}), max\[(\d{1,2})\] = +(-?\d{1,10})\s*",
    re.ASCII,
)


@dataclass(frozen=True, eq=False, repr=False)
class LoggedSearch(Shown):
    """The cache as a log shows it before a slot search.

    Attributes:
        line: number of the summary line, from 1.
        part: kv, or base and swa where the log tells of a pair of caches.
        n: index of the last used cell plus 1.
        used: cells in use.
        head: cell at which the search starts.
        size: number of cells.
        n_swa: window, 0 for none.
        spans: smallest and largest position of every sequence that has any.
        owners: int8 [size], a code a cell: the only owner, EMPTY, SEVERAL or UNCLEAR; None without maps. Which
            sequences share a cell is not in a log.
        pos: int32 [size], positions, EMPTY for none; None without maps.
    """

    line: int
    part: str
    n: int
    used: int
    head: int
    size: int
    n_swa: int
    spans: Mapping[int, tuple[int, int]]
    owners: NDArray[np.int8] | None = None
    pos: NDArray[np.int32] | None = None

    @property
    def has_map(self) -> bool:
        """Whether the cells are known."""
        return self.owners is not None

    def differing(self, pos: NDArray[np.int32], seqs: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Cells of a cache that do not hold what the map shows; none without a map.

        Args:
            pos: int32 [size], positions.
            seqs: uint64 [size], owners.
        """
        if self.owners is None or self.pos is None:
            return np.empty(0, np.intp)
        codes = owner_codes(pos, seqs)
        same = (self.owners == codes) | ((self.owners == UNCLEAR) & (codes != EMPTY))
        return np.flatnonzero(~same | (self.pos != pos))

    def card(self) -> Card:
        """The summary, the cells and the sequences, to be shown in Jupyter or printed."""
        facts = f"{count(self.size, 'cell')}, {self.used:,} used, head {self.head}, n_swa {self.n_swa}"
        rows = [(seq, run(*span)) for seq, span in self.spans.items()]
        table = Table.of(("sequence", "positions"), rows, most=MAX_SEQ)
        return Card(f"Cells of {self.part} before a slot search (line {self.line:,})", facts, self._map(), (table,))

    def _map(self) -> str:
        if self.owners is None or self.pos is None:
            return ""
        single = self.owners >= 0
        sets = np.uint64(1) << np.where(single, self.owners, 0).astype(np.uint64)
        several = np.where(self.owners == SEVERAL, np.uint64(3), np.uint64(0))
        return cell_map(self.pos, np.where(single, sets, several))


def owner_codes(pos: NDArray[np.int32], seqs: NDArray[np.uint64]) -> NDArray[np.int8]:
    """The codes that a log would show for these cells, int8 [n]: a sequence, EMPTY or SEVERAL."""
    single = np.bitwise_count(seqs) == 1
    owner = single_owners(np.where(single, seqs, np.uint64(1)))
    return np.where(pos == EMPTY, EMPTY, np.where(single, owner, SEVERAL)).astype(np.int8)


def read_summary(text: str, line: int) -> LoggedSearch | None:
    """A summary line without what follows it; None if the line is another one.

    Raises:
        BadMap: its figures cannot be those of a cache.
    """
    match = SUMMARY.fullmatch(text)
    if not match:
        return None
    n, used, head, size, n_swa = map(int, match.groups()[1:])
    if not 1 <= size <= MAX_CELLS or used > n or n > size or head > size or n_swa > INT32_MAX:
        raise BadMap(f"the summary has n = {n}, used = {used}, head = {head}, size = {size}; no cache is like that")
    return LoggedSearch(line, "kv", n, used, head, size, n_swa, {})


def read_prefix(summary: str) -> Prefix:
    """What stands before a summary line."""
    match = SUMMARY.fullmatch(summary)
    return Prefix(match[1] if match else "")


def read_spans(body: Sequence[str], maps: MapLines, prefix: Prefix) -> dict[int, tuple[int, int]]:
    """The ranges of the sequences: they stand behind the maps, they ascend, and no other map is among them.

    Args:
        body: the lines up to the next summary.
        maps: the maps found among them.
        prefix: what may stand before each.
    """
    spans: dict[int, tuple[int, int]] = {}
    for text in body[maps.end if maps.complete else 0 :]:
        if "min[" in text and (match := RANGE.fullmatch(text)):
            seq, first, again, last = map(int, match.groups())
            if spans and seq <= max(spans):
                break
            if seq == again < MAX_SEQ and 0 <= first <= last <= INT32_MAX:
                spans[seq] = first, last
        elif (spans or maps.complete) and maps.begins(text, prefix):
            break
    return spans


def read_cells(search: LoggedSearch, maps: MapLines, budget: Budget) -> LoggedSearch:
    """The search with its cells, if the log shows any.

    Args:
        search: what the summary and the ranges say.
        maps: the maps that follow it.
        budget: of the log.

    Raises:
        BadMap: the maps are damaged, or are not those of this search.
    """
    if not maps.symbols:
        return search
    maps.check()
    try:
        pos = positions(maps.numbers, maps.position_cells, search.spans, budget)
        codes = owners(maps.symbols, maps.owner_cells, pos, search.spans, budget)
    except TooManyReadings:
        raise BadMap("the log has too many symbols that can be read in several ways") from None
    _check(search, codes, pos)
    for array in (codes, pos):
        array.flags.writeable = False
    return replace(search, owners=codes, pos=pos)


def _check(search: LoggedSearch, codes: NDArray[np.int8], pos: NDArray[np.int32]) -> None:
    """Maps and summary have to tell of the same cells."""
    filled = np.flatnonzero(pos != EMPTY)
    n = int(filled[-1]) + 1 if len(filled) else 0
    if (len(filled), n) != (search.used, search.n):
        told = f"{search.used:,} used cells up to {search.n:,}"
        raise BadMap(f"the maps show {len(filled):,} used cells up to {n:,}, the summary {told}")
    for seq, (first, last) in search.spans.items():
        owned = pos[codes == seq]
        if len(owned) and not first <= owned.min() <= owned.max() <= last:
            raise BadMap(f"the maps show sequence {seq} outside its range {first} to {last}")
