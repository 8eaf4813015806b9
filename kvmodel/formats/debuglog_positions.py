"""The map of positions in a log: five characters a cell, more where a position has more digits."""

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kvmodel.formats.debuglog_cut import Budget, Option, cut
from kvmodel.formats.debuglog_lines import EMPTY, MOST_DIGITS, WIDTH, BadMap, Spans
from kvmodel.limits import INT32_MAX

Int32 = NDArray[np.int32]

DIGITS = re.compile(f"[0-9]{{1,{MOST_DIGITS}}}")


def positions(texts: list[str], sizes: list[int], spans: Spans, budget: Budget) -> Int32:
    """Positions of all cells, EMPTY for none, int32 [size].

    Raises:
        BadMap: a line is no list of positions, or can be read in several ways.
        TooManyReadings: the budget is spent.
    """
    highest = max((last for _, last in spans.values()), default=INT32_MAX)
    lines = list(zip(texts, sizes, strict=True))
    if highest < 10**WIDTH:
        return _fixed("".join(text.rstrip().ljust(WIDTH * n) for text, n in lines), sum(sizes), WIDTH)
    return np.concatenate([_line(text, n, highest, budget) for text, n in lines])


def _line(text: str, n: int, highest: int, budget: Budget) -> Int32:
    """One line, in which some positions may have more digits."""
    if len(text) == WIDTH * n:
        try:
            return _fixed(text, n, WIDTH)
        except BadMap:  # trailing spaces may be gone, and its length be the usual one by chance
            pass
    bare, most = text.rstrip(), len(str(highest))
    return _fixed(bare, n, most) if len(bare) == most * n else _wide(text, n, highest, budget)


def _fixed(text: str, n: int, width: int) -> Int32:
    """Fields of one width, each a point or a number, then spaces."""
    if len(text) != n * width:
        raise BadMap(f"the map of positions has {len(text):,} characters for {n:,} cells")
    fields = np.frombuffer(text.encode(), np.uint8).reshape(n, width)
    is_digit = (fields >= ord("0")) & (fields <= ord("9"))
    n_digits = is_digit.sum(axis=1)
    empty = fields[:, 0] == ord(".")
    leading = np.arange(width) < n_digits[:, None]
    rest = fields == ord(" ")
    rest[:, 0] |= empty
    zero_first = (fields[:, 0] == ord("0")) & (n_digits > 1)
    if not np.where(leading, is_digit, rest).all() or (empty != (n_digits == 0)).any() or zero_first.any():
        raise BadMap("the map of positions has a cell that is neither a number nor a point")
    values = np.zeros(n, np.int64)
    for column in range(width):
        values = np.where(leading[:, column], 10 * values + fields[:, column] - ord("0"), values)
    values[empty] = EMPTY
    if (values > INT32_MAX).any():
        raise BadMap("the map of positions has a number that no position can be")
    return values.astype(np.int32)


def _wide(text: str, n: int, highest: int, budget: Budget) -> Int32:
    """A line in which some position has six digits or more, or whose trailing spaces are gone."""
    found = cut(
        n,
        len(text),
        lambda _, at: _fields(text, at, highest),
        lambda _, before, value: value not in (before + 1, EMPTY),
        budget,
    )
    if not found.values:
        raise BadMap(f"a line of the map of positions has no {n} positions up to {highest:,}")
    if found.unclear:
        raise BadMap(f"a line of the map of positions has several readings, first for its cell {found.unclear[0]}")
    return np.array(found.values, np.int32)


def _fields(text: str, at: int, highest: int) -> Iterator[Option]:
    """What may begin at a character: a point or a number with its spaces, or as many digits as there are."""
    if text[at : at + 1] == ".":
        yield min(WIDTH, len(text) - at), EMPTY
        return
    whole = DIGITS.match(text, at)
    for digits in range(1, len(whole[0]) + 1 if whole else 0):
        width = max(WIDTH, digits)
        value, behind = int(text[at : at + digits]), text[at + digits : at + width]
        if value > highest or (digits > 1 and text[at] == "0"):
            return
        if not behind.strip(" ") and (digits >= WIDTH or behind or at + digits == len(text)):
            yield min(width, len(text) - at), value
