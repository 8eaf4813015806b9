"""The map of owners in a log: one symbol a cell, two where a sequence has two digits."""

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kvmodel.formats.debuglog_cut import Budget, Option, cut
from kvmodel.formats.debuglog_lines import EMPTY, SEVERAL, UNCLEAR, BadMap, Spans
from kvmodel.limits import INT32_MAX, MAX_SEQ

Codes = NDArray[np.int8]
Int32 = NDArray[np.int32]

SEGMENTS = re.compile(r"\.+|[M0-9]+")


def owners(texts: list[str], sizes: list[int], pos: Int32, spans: Spans, budget: Budget) -> Codes:
    """Codes for the owners of all cells, int8 [size]: a sequence, EMPTY, SEVERAL or UNCLEAR.

    Args:
        texts: the lines of the map.
        sizes: cells of each.
        pos: positions of all cells.
        spans: smallest and largest position of every sequence; where there are any, an owner must be among them.
        budget: of the log.

    Raises:
        BadMap: the two maps do not fit.
        TooManyReadings: the budget is spent.
    """
    codes, at = np.empty(len(pos), np.int8), 0
    for text, n in zip(texts, sizes, strict=True):
        part = slice(at, at + n)
        codes[part] = _single(text) if len(text) == n else _wide_owners(text, pos[part], spans, budget)
        at += n
    if ((codes == EMPTY) != (pos == EMPTY)).any():
        cell = int(((codes == EMPTY) != (pos == EMPTY)).argmax())
        raise BadMap(f"the two maps do not agree on whether cell {cell} is empty")
    return codes


def _single(text: str) -> Codes:
    """Symbols of one character each."""
    symbols = np.frombuffer(text.encode(), np.uint8)
    digits = symbols.astype(np.int16) - ord("0")
    return np.where(symbols == ord("."), EMPTY, np.where(symbols == ord("M"), SEVERAL, digits)).astype(np.int8)


def _wide_owners(text: str, pos: Int32, spans: Spans, budget: Budget) -> Codes:
    """A line with sequences of two digits: empty cells cut it, what lies between them is told apart."""
    begins = np.flatnonzero(np.diff(pos == EMPTY, prepend=pos[0] != EMPTY))
    runs = np.split(pos, begins[1:])
    segments = SEGMENTS.findall(text)
    if len(segments) != len(runs):
        raise BadMap("the two maps do not agree on which cells are empty")
    return np.concatenate([_segment(*both, spans, budget) for both in zip(segments, runs, strict=True)])


def _segment(text: str, pos: Int32, spans: Spans, budget: Budget) -> Codes:
    n, length = len(pos), len(text)
    if (text[0] == ".") != (pos[0] == EMPTY) or not n <= length <= (n if text[0] == "." else 2 * n):
        raise BadMap(f"{n} cells in a row have {length} characters in the map of owners")
    if length == n:
        return _single(text)

    def options(cell: int, at: int) -> Iterator[Option]:
        for width in (1, 2):
            piece, left = text[at : at + width], length - at - width
            if not n - cell - 1 <= left <= 2 * (n - cell - 1):
                continue
            if piece == "M":
                yield 1, SEVERAL
            elif piece.isdigit() and str(int(piece)) == piece and _may_own(int(piece), int(pos[cell]), spans):
                yield width, int(piece)

    follows = np.diff(pos, prepend=pos[0]) == 1
    found = cut(n, length, options, lambda cell, before, owner: bool(follows[cell]) and before != owner, budget)
    if not found.values:
        raise BadMap(f"{n} cells in a row cannot belong to the sequences {text}")
    codes = np.array(found.values, np.int8)
    codes[list(found.unclear)] = UNCLEAR
    return codes


def _may_own(seq: int, pos: int, spans: Spans) -> bool:
    if seq >= MAX_SEQ or (spans and seq not in spans):
        return False
    first, last = spans.get(seq, (0, INT32_MAX))
    return first <= pos <= last
