"""How a cache, a timeline and a plan show themselves: plain HTML for Jupyter, and the same as text.

Both are made from one card of words, a map and tables. Every word is escaped in the HTML, since titles and notes of a
scenario are a user's text.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import EMPTY, single_owners
from kvmodel.limits import MAX_SEQ
from kvmodel.words import count, run

MOST_CELLS = 1024
MOST_ROWS = 24
CELLS_A_LINE = 64
MOST_CHARACTERS = 60

SYMBOLS = np.array([".", "?", "M", *map(str, range(MAX_SEQ))])
"""Empty, used by no sequence, used by several, and the number of the only one."""


@dataclass(frozen=True)
class Table:
    """Columns and rows of words; `left_out` rows follow that are only counted."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0

    @classmethod
    def of(cls, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]], most: int = MOST_ROWS) -> "Table":
        """The first `most` rows, long words cut."""
        told = [tuple(_cut(str(word)) for word in row) for row in rows]
        return cls(columns, tuple(told[:most]), max(0, len(told) - most))

    def text(self) -> str:
        """Aligned columns: numbers right, words left."""
        lines = [self.columns, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        left = [any(not _is_number(row[i]) for row in self.rows) for i in range(len(self.columns))]
        told = [
            "  ".join(
                word.ljust(width) if is_left else word.rjust(width)
                for word, width, is_left in zip(line, widths, left, strict=True)
            ).rstrip()
            for line in lines
        ]
        return "\n".join([*told, *self._rest()])

    def html(self) -> str:
        """A table element."""
        head = "".join(f"<th>{escape(column)}</th>" for column in self.columns)
        body = "".join(f"<tr>{''.join(f'<td>{escape(word)}</td>' for word in row)}</tr>" for row in self.rows)
        rest = "".join(f"<p>{escape(line)}</p>" for line in self._rest())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"

    def _rest(self) -> list[str]:
        return [f"and {count(self.left_out, 'more row')}"] if self.left_out else []


@dataclass(frozen=True)
class Card:
    """What an object shows of itself: a title, a line of facts, a map of cells, tables."""

    title: str
    facts: str
    map: str = ""
    tables: tuple[Table, ...] = ()

    def text(self) -> str:
        """As plain text."""
        tables = [table.text() for table in self.tables if table.rows]
        return "\n".join(part for part in (self.title, self.facts, self.map, *tables) if part)

    def html(self) -> str:
        """As HTML without any style or script."""
        cell_map = f"<pre>{escape(self.map)}</pre>" if self.map else ""
        tables = "".join(table.html() for table in self.tables if table.rows)
        return f"<div><p><b>{escape(self.title)}</b></p><p>{escape(self.facts)}</p>{cell_map}{tables}</div>"


class Printer(Protocol):
    """The part of IPython's pretty printer that is used here."""

    def text(self, words: str) -> None:
        """Print words."""


class Shown:
    """An object that shows itself in Jupyter and as text."""

    def card(self) -> Card:
        """What to show."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.card().text()

    def _repr_html_(self) -> str:
        return self.card().html()

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        printer.text("..." if cycle else str(self))


def cells_card(
    title: str,
    arrays: Mapping[str, NDArray[Any]],
    counters: Mapping[str, int | float | bool],
    span: Callable[[int], tuple[int, int]],
    n_bytes: int,
) -> Card:
    """The card of one set of cells.

    Args:
        title: what it is.
        arrays: one entry a cell, `pos` and `seqs` among them.
        counters: `used`, `head`, `n_kv` and `has_shift`.
        span: smallest and largest position of a sequence, -1 for none.
        n_bytes: bytes of all K and V tensors.
    """
    pos, seqs = arrays["pos"], arrays["seqs"]
    shift = "a shift is pending" if counters["has_shift"] else "no shift pending"
    facts = (
        f"{count(len(pos), 'cell')}, {counters['used']:,} used, head {counters['head']}, n_kv {counters['n_kv']:,},"
        f" {shift}, K and V {n_bytes / 2**20:,.2f} MiB"
    )
    return Card(title, facts, cell_map(pos, seqs), (_sequences(seqs, span),))


def _sequences(seqs: NDArray[np.uint64], span: Callable[[int], tuple[int, int]]) -> Table:
    rows = []
    for seq in range(MAX_SEQ):
        first, last = span(seq)
        if last >= 0:
            n = np.count_nonzero(seqs >> np.uint64(seq) & np.uint64(1))
            rows.append((seq, run(first, last), n))
    return Table.of(("sequence", "positions", "cells"), rows, most=MAX_SEQ)


def cell_map(pos: NDArray[np.int32], seqs: NDArray[np.uint64]) -> str:
    """One symbol a cell as in llama.cpp's debug log: `.` empty, its sequence, `M` several, `?` used by none.

    Lines begin with the number of their first cell; from sequence 10 on every symbol is two characters wide. Cells
    behind the first 1,024 are only counted.
    """
    shown = min(len(pos), MOST_CELLS)
    symbols = _symbols(pos[:shown], seqs[:shown])
    width = int(np.char.str_len(symbols).max(initial=1))
    cells, between = (np.char.rjust(symbols, width), " ") if width > 1 else (symbols, "")
    digits = len(str(max(shown - 1, 0)))
    begins = range(0, shown, CELLS_A_LINE)
    lines = [f"{begin:>{digits}} {between.join(cells[begin : begin + CELLS_A_LINE])}" for begin in begins]
    rest = len(pos) - shown
    return "\n".join([*lines, f"and {count(rest, 'more cell')}"] if rest else lines)


def _symbols(pos: NDArray[np.int32], seqs: NDArray[np.uint64]) -> NDArray[np.str_]:
    single = np.bitwise_count(seqs) == 1
    owner = single_owners(np.where(single, seqs, np.uint64(1)))
    code = np.where(single, owner + 3, np.where(seqs == 0, 1, 2))
    return SYMBOLS[np.where(pos == EMPTY, 0, code)]


def plan_card(moves: NDArray[np.int64], n_moves: int, n_holes: int, max_moves: int) -> Card:
    """The card of a defrag plan; its arguments are those of the plan."""
    if not len(moves):
        return Card("Defrag plan", "nothing moves: there are no holes")
    limit = f"at most {count(max_moves, 'move')}" if max_moves else "no limit"
    filled = int(moves[:, 2].sum())
    facts = f"{filled:,} of {count(n_holes, 'empty cell')} filled in {count(n_moves, 'block move')} ({limit})"
    rows = [(run(src, src + n - 1), run(dst, dst + n - 1), n) for src, dst, n in moves.tolist()]
    return Card("Defrag plan", facts, tables=(Table.of(("from cells", "to cells", "number"), rows),))


def _cut(words: str) -> str:
    return words if len(words) <= MOST_CHARACTERS else f"{words[: MOST_CHARACTERS - 3].rstrip()}..."


def _is_number(word: str) -> bool:
    return not word or word.lstrip("-").replace(",", "").isdigit()
