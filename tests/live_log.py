"""Debug logs of llama.cpp: settings as it prints them, and the maps of the cells before every slot search.

With LLAMA_KV_CACHE_DEBUG=3 a search of mid-2025 prints a summary, a map of the owners, a map of the positions and the
ranges of the sequences. The searches of a pair of caches are those of the full half, then those of the window half.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PRINTERS = "llama_context|print_info|llama_init_from_model|llama_kv_cache_init"
IS_SWA = re.compile(r"^load_tensors: layer +(\d+) assigned to device \w+, is_swa = ([01])$", re.MULTILINE)


def printed(log: str, name: str) -> int:
    """A whole number that a log prints as `name = value`, the first one of that name.

    Raises:
        ValueError: there is none.
    """
    found = re.search(rf"^(?:{PRINTERS}): {name} += (\d+)\b", log, re.MULTILINE)
    if not found:
        raise ValueError(f"the log prints no {name}")
    return int(found[1])


def window_layers(log: str) -> tuple[bool, ...]:
    """Which layers of the model have a window; the last line of the list is the output."""
    found = IS_SWA.findall(log)
    return tuple(word == "1" for _, word in found[:-1])


@dataclass(frozen=True, eq=False)
class CellMap:
    """The cache as the log shows it before a slot search.

    Attributes:
        n, used, head, size, n_swa: the summary line; `n` is the last used cell plus 1.
        owners: one symbol a cell: `.` empty, a digit for its only sequence, `M` for several.
        pos: int64 [size], positions, -1 for empty.
        ranges: first and last position of every sequence that has any.
    """

    n: int
    used: int
    head: int
    size: int
    n_swa: int
    owners: str
    pos: NDArray[np.int64]
    ranges: dict[int, tuple[int, int]]


SUMMARY = re.compile(
    r"^find_slot: n = +(\d+), used = +(\d+), head = +(\d+), size = +(\d+), n_swa = +(\d+)$", re.MULTILINE
)
RANGE = re.compile(r"^find_slot: min\[(\d+)\] = +(-?\d+), max\[\1\] = +(-?\d+)$", re.MULTILINE)


def cell_maps(log: str) -> list[CellMap]:
    """Every slot search of a log, in order. Sequences above 9 would make the map of owners ambiguous."""
    found = list(SUMMARY.finditer(log))
    ends = [match.start() for match in found[1:]] + [len(log)]
    return [_cell_map(match, log[match.end() : end]) for match, end in zip(found, ends, strict=True)]


def _cell_map(summary: re.Match[str], text: str) -> CellMap:
    n, used, head, size, n_swa = (int(part) for part in summary.groups())
    maps = text.partition("find_slot:")[0]
    owners, rest = _take(maps, size, 1)
    positions, _ = _take(rest, size, 5)
    words = [positions[i : i + 5].strip() for i in range(0, 5 * size, 5)]
    pos = np.array([-1 if word == "." else int(word) for word in words])
    ranges = {int(seq): (int(low), int(high)) for seq, low, high in RANGE.findall(text)}
    return CellMap(n, used, head, size, n_swa, owners, pos, ranges)


def _take(text: str, size: int, width: int) -> tuple[str, str]:
    """The next map of `size` cells, `width` characters each: its symbols, and the text behind it."""
    symbols, at = "", 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        symbols += line.rstrip("\n").removesuffix(" *")
        if len(symbols) >= size * width:
            break
    if len(symbols) != size * width:
        raise ValueError(f"a map of {size} cells has {len(symbols)} characters; allowed: {size * width}")
    return symbols, text[at:]
