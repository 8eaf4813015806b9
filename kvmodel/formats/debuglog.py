"""Debug logs of llama.cpp: what LLAMA_KV_CACHE_DEBUG prints before every slot search, and the settings around it.

Level 1 prints a summary and the range of every sequence, level 2 adds two maps of the cells for window caches, level 3
for all. Lines of others in between, prefixes, colours and a log that is cut off anywhere are put up with: what cannot
be read is listed as a fault.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kvmodel.errors import ParamError
from kvmodel.formats.debuglog_cut import Budget
from kvmodel.formats.debuglog_lines import EMPTY, SEVERAL, UNCLEAR, BadMap, MapLines
from kvmodel.formats.debuglog_search import (
    LoggedSearch,
    owner_codes,
    read_cells,
    read_prefix,
    read_spans,
    read_summary,
)
from kvmodel.formats.debuglog_settings import MemoryLine, SettingsReader
from kvmodel.formats.debuglog_text import lines_of
from kvmodel.limits import MAX_LOG_BYTES
from kvmodel.show import Card, Shown, Table
from kvmodel.words import count

__all__ = [
    "EMPTY",
    "SEVERAL",
    "UNCLEAR",
    "DebugLog",
    "Fault",
    "LoggedSearch",
    "MemoryLine",
    "Notice",
    "open_log",
    "owner_codes",
    "read_log",
]

SET_LEVEL = "set LLAMA_KV_CACHE_DEBUG=3"
NOTICES = {
    "shift": r"update: applying K-shift",
    "defrag": r"update: defragmenting KV cache",
    "retry": r"decode: retrying batch size \d+ after cache optimization",
    "no_slot": r"decode: failed to find a memory slot for batch of size \d+",
    "failed": r"llama_decode: failed to decode, ret = -?\d+",
}
NOTICE = re.compile("|".join(rf"\b(?P<{kind}>{words})" for kind, words in NOTICES.items()), re.ASCII)
TELLING = re.compile(" = |creating|loaded meta|update:|decode:")
"""What every line that is no part of a map, and of use here, has in it."""


@dataclass(frozen=True)
class Fault:
    """What of a log could not be read: the search at `line`, and why."""

    line: int
    message: str


@dataclass(frozen=True)
class Notice:
    """A line that tells what llama.cpp did: `kind` is shift, defrag, retry, no_slot or failed."""

    line: int
    kind: str
    text: str


@dataclass(frozen=True, eq=False, repr=False)
class DebugLog(Shown):
    """What a log says.

    Attributes:
        searches: the slot searches in order; those of a pair of caches are the full half's, then the window half's.
        settings: of every setting that is printed as `name = value` the first value, as words.
        window_layers: whether each layer of the model has a window; empty where the log does not say.
        memory: the caches as the memory lines describe them.
        notices: lines that tell what was done.
        faults: searches whose summary or maps could not be read.
    """

    searches: tuple[LoggedSearch, ...]
    settings: Mapping[str, str]
    window_layers: tuple[bool, ...]
    memory: tuple[MemoryLine, ...]
    notices: tuple[Notice, ...]
    faults: tuple[Fault, ...]

    @property
    def maps(self) -> tuple[LoggedSearch, ...]:
        """The searches with a map of the cells."""
        return tuple(search for search in self.searches if search.has_map)

    @property
    def level(self) -> int:
        """The level of LLAMA_KV_CACHE_DEBUG that the log needs at least: 0 to 3."""
        if not self.searches:
            return 0
        return max((1, *(2 if search.n_swa else 3 for search in self.maps)))

    @property
    def missing(self) -> str:
        """What to do for more maps, as a sentence; empty if every search has its own."""
        n = count(len(self.searches), "search")
        if not self.searches:
            kinds = {line.kind for line in self.memory}
            if kinds and kinds <= {"legacy", "memory_recurrent"}:
                return "the log has no searches: only the unified cache of mid-2025 prints them"
            return f"the log has no searches: {SET_LEVEL} and let debug messages through (--verbose)"
        bare = [search for search in self.searches if not search.has_map]
        if not bare:
            return ""
        if self.faults:
            return f"the log has {n}, and the maps of {len(bare)} cannot be read: see its faults"
        if self.maps:
            return f"the log has {n}, but maps of window caches only: {SET_LEVEL} for the others"
        return f"the log has {n} but no maps: {SET_LEVEL}; window caches print them at 2"

    def number(self, name: str) -> int:
        """A setting that is a whole number.

        Raises:
            ParamError: the log does not print it, or as something else.
        """
        value = self.settings.get(name, "nothing")
        if not re.fullmatch(r"-?\d{1,12}", value, re.ASCII):
            raise ParamError(name, value, "a whole number in the log")
        return int(value)

    def card(self) -> Card:
        """The searches, to be shown in Jupyter or printed."""
        facts = f"{count(len(self.searches), 'search')}, {count(len(self.maps), 'map')}, level {self.level}"
        rows = [
            (search.line, search.part, search.used, search.size, search.head, "yes" if search.has_map else "no")
            for search in self.searches
        ]
        faults = [(fault.line, fault.message) for fault in self.faults]
        tables = (
            Table.of(("line", "cache", "used", "cells", "head", "map"), rows),
            Table.of(("line", "fault"), faults),
        )
        return Card("Debug log", ". ".join(filter(None, (facts, self.missing))), tables=tables)


def open_log(path: str | os.PathLike[str]) -> DebugLog:
    """Read a log file.

    Raises:
        ParamError: it exceeds MAX_LOG_BYTES.
        OSError: it cannot be read.
    """
    file = Path(path)
    size = file.stat().st_size
    if size > MAX_LOG_BYTES:
        raise ParamError("log", f"{size:,} bytes", f"{MAX_LOG_BYTES:,} bytes at most")
    return read_log(file.read_bytes())


def read_log(source: str | bytes) -> DebugLog:
    """Read the text of a log. Whatever it holds, nothing but its size can be refused.

    Raises:
        ParamError: it exceeds MAX_LOG_BYTES.
    """
    lines = lines_of(source)
    settings, notices, faults = SettingsReader(), [], []
    found: list[LoggedSearch] = []
    for number, text in enumerate(lines, 1):
        if not TELLING.search(text):
            continue
        if "find_slot:" in text:
            try:
                search = read_summary(text, number)
            except BadMap as fault:
                faults.append(Fault(number, str(fault)))
            else:
                found += [search] if search else []
        elif notice := NOTICE.search(text):
            notices.append(Notice(number, str(notice.lastgroup), text.strip()))
        else:
            settings.take(text, number)
    searches = tuple(_named(list(_completed(found, lines, faults))))
    faults += _without_map(searches, {fault.line for fault in faults})
    n_layer = settings.values.get("n_layer", "")
    window_layers = tuple(settings.window_layers[: int(n_layer) if re.fullmatch(r"[0-9]{1,6}", n_layer) else -1])
    faults.sort(key=lambda fault: fault.line)
    return DebugLog(searches, settings.values, window_layers, tuple(settings.memory), tuple(notices), tuple(faults))


def _completed(found: Sequence[LoggedSearch], lines: list[str], faults: list[Fault]) -> Iterator[LoggedSearch]:
    """The searches with what follows their summaries; adds to `faults`."""
    budget = Budget()
    ends = [*(search.line - 1 for search in found[1:]), len(lines)][: len(found)]
    for search, end in zip(found, ends, strict=True):
        body, prefix = lines[search.line : end], read_prefix(lines[search.line - 1])
        maps = MapLines.gather(body, search.size, prefix)
        whole = replace(search, spans=read_spans(body, maps, prefix))
        try:
            yield read_cells(whole, maps, budget)
        except BadMap as fault:
            faults.append(Fault(search.line, str(fault)))
            yield whole


def _without_map(searches: Sequence[LoggedSearch], known: set[int]) -> Iterator[Fault]:
    """Searches that lack their map in a log that has those of full caches, and so of all."""
    if any(search.has_map and not search.n_swa for search in searches):
        for search in searches:
            if not search.has_map and search.line not in known:
                yield Fault(search.line, "no map follows the summary, though the log has maps of other searches")


def _named(searches: Sequence[LoggedSearch]) -> Iterator[LoggedSearch]:
    """Tell the halves of a pair apart: only one of them has a window."""
    windows = {search.n_swa > 0 for search in searches}
    for search in searches:
        part = "kv" if len(windows) < 2 else "swa" if search.n_swa else "base"
        yield replace(search, part=part)
