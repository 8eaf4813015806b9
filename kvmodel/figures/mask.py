"""The map of the mask: which token of a ubatch sees which cell, and why not."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.cells import EMPTY
from kvmodel.figures.base import axis, discrete_scale, figure
from kvmodel.figures.clicks import MAX_MASK_CLICKABLE, NEAREST, click_layer, clickable_mask
from kvmodel.figures.codes import PATTERN_PIXELS, PATTERN_SIZE
from kvmodel.figures.entries import Entry, outline, swatch
from kvmodel.figures.grid import Grid, ticks
from kvmodel.figures.marks import selected_mark
from kvmodel.figures.mask_squares import Drawn, drawn_mask
from kvmodel.figures.palette import PATTERNS, REASON_PATTERNS, Theme, ThemeName
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.texts import owner_texts, reason_words, safe, token_texts
from kvmodel.mask import MaskReason
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Token

MARGIN = {"l": 50, "r": 20, "t": 22, "b": 14}
WIDTH, ROW_HEIGHT, MAX_HEIGHT, MIN_HEIGHT = 600, 17, 168, 34
MAX_PATTERNED = MAX_MASK_CLICKABLE
"""Squares up to which each is large enough for lines between them and a pattern inside."""

Said = tuple[Sequence[str], Sequence[str]]
"""Every column and every row in words."""


def mask_figure(
    part: PartSnapshot,
    ubatch: UBatch,
    *,
    causal: bool = True,
    padding: bool = False,
    tokens: Sequence[Token] = (),
    theme: ThemeName = "light",
    clickable: bool = True,
    selected: tuple[int, int] | None = None,
) -> go.Figure:
    """One row a token of the ubatch, one column a cell up to n_kv, the reason as colour and pattern.

    Args:
        part: the cells after the ubatch was stored.
        ubatch: the tokens that ask.
        causal: later positions are hidden.
        padding: show the rows that fill the mask up to a multiple of 64.
        tokens: the timeline's tokens, for the hover text.
        theme: light or dark.
        clickable: whether each of at most 2,048 squares is a point that can be clicked (`clicks.mask_clicked`).
        selected: row and cell of a square to outline, if each square is one cell.

    Returns:
        A figure whose first trace, `reasons`, holds MaskReason codes (uint8 [tokens, cells]). In a mask of up to 2,048
        squares the second, `squares`, has a point for each, with its reason as hover text; otherwise the first has the
        reasons as text. A mask beyond 16,384 squares shows evenly spaced rows and pools neighbouring cells; on hover a
        square then counts its cells by reason.
    """
    page, words = page_of(theme), reason_words(part.params.swa_type)
    drawn = drawn_mask(part, ubatch, causal=causal, padding=padding)
    said = _cell_words(part, drawn.pool), _query_words(ubatch, drawn.rows, tokens)
    points = clickable and clickable_mask(*drawn.codes.shape)
    layers = [_squares(drawn, page), _points(drawn, words)] if points else [_told_squares(drawn, said, page, words)]
    mark = _selected_mark(drawn, selected, page)
    return figure(
        page,
        [*layers, *_pattern(drawn, page)],
        height=_height(len(drawn.rows)),
        margin=MARGIN,
        width=WIDTH,
        entries=[*_legend(drawn, page, words), *([outline("selected", page.accent)] if mark else [])],
        shapes=mark,
        **(NEAREST if points else {}),
        **_axes(ubatch, drawn, page, "linear" if points else "category"),
        **_overlay(drawn, said if points else ((), ()), page),
    )


def _height(rows: int) -> int:
    return max(MIN_HEIGHT, min(MAX_HEIGHT, ROW_HEIGHT * rows))


def _squares(drawn: Drawn, page: Theme, **more: Any) -> go.Heatmap:
    """The reasons as colours."""
    gap = 1 if drawn.codes.size <= MAX_PATTERNED else 0
    settings = {"hoverinfo": "skip"} | more
    return go.Heatmap(z=drawn.codes, xgap=gap, ygap=gap, name="reasons", **settings, **discrete_scale(page.reasons))


def _points(drawn: Drawn, words: tuple[str, ...]) -> go.Scatter:
    """A point a square, row by row; what token and cell are is said by the labels of the axes above."""
    row, column = np.divmod(np.arange(drawn.codes.size, dtype=np.int16), drawn.codes.shape[1])
    told = "<b>%{hovertext}</b><br>%{y}<br>%{x}<extra></extra>"
    reasons = np.array(words)[drawn.codes.ravel()].tolist()
    return click_layer(column, row, reasons, "squares", xaxis="x2", yaxis="y2", hovertemplate=told)


def _told_squares(drawn: Drawn, said: Said, page: Theme, words: tuple[str, ...]) -> go.Heatmap:
    """The reasons as colours and, on hover, in words."""
    cells, queries = said
    return _squares(drawn, page, x=cells, y=queries, hoverinfo=None, **_told(drawn, words))


def _selected_mark(drawn: Drawn, selected: tuple[int, int] | None, page: Theme) -> list[dict[str, Any]]:
    """Lines around one square, on the axes that count squares."""
    rows, columns = drawn.codes.shape
    if selected is None or drawn.codes.size > MAX_PATTERNED:
        return []
    row, cell = selected
    inside = 0 <= row < rows and 0 <= cell < columns
    marks = selected_mark(Grid(rows * columns, columns), row * columns + cell, page) if inside else []
    return [mark | {"xref": "x2", "yref": "y2"} for mark in marks]


def _told(drawn: Drawn, words: tuple[str, ...]) -> dict[str, Any]:
    """What a square says: its reason, or the number of its cells by reason. Numbers, since words are long as JSON."""
    where = "<br>%{y}<br>%{x}<extra></extra>"
    if drawn.counts is None:
        return {"text": np.array(words)[drawn.codes], "hovertemplate": f"<b>%{{text}}</b>{where}"}
    present = np.flatnonzero(drawn.counts.any(axis=(0, 1)))
    told = ", ".join(f"{words[code]} %{{customdata[{i}]}}" for i, code in enumerate(present))
    return {"customdata": drawn.counts[:, :, present], "hovertemplate": f"<b>{told}</b>{where}"}


def _pattern(drawn: Drawn, page: Theme) -> list[go.Heatmap]:
    """Lines over the squares that tell the reasons apart without colour, where squares are large enough."""
    if drawn.codes.size > MAX_PATTERNED:
        return []
    shape = np.array([PATTERNS.index(REASON_PATTERNS[reason]) for reason in MaskReason])
    blocks = PATTERN_PIXELS[shape[drawn.codes]]
    rows, columns = drawn.codes.shape
    return [
        go.Heatmap(
            z=blocks.swapaxes(1, 2).reshape(rows * PATTERN_SIZE, columns * PATTERN_SIZE),
            x0=-0.5 + 0.5 / PATTERN_SIZE,
            dx=1 / PATTERN_SIZE,
            y0=-0.5 + 0.5 / PATTERN_SIZE,
            dy=1 / PATTERN_SIZE,
            opacity=0.35,
            xaxis="x2",
            yaxis="y2",
            name="patterns",
            hoverinfo="skip",
            **discrete_scale(["rgba(0,0,0,0)", page.paper]),
        )
    ]


def _legend(drawn: Drawn, page: Theme, words: tuple[str, ...]) -> list[Entry]:
    """The reasons that occur, in words."""
    lined = drawn.codes.size <= MAX_PATTERNED
    return [
        swatch(words[code], page.reasons[code], page, pattern=REASON_PATTERNS[MaskReason(code)] if lined else "")
        for code in np.unique(drawn.codes).tolist()
    ]


def _query_words(ubatch: UBatch, rows: NDArray[np.intp], tokens: Sequence[Token]) -> list[str]:
    """Each drawn row in words; different for every row, since they are the categories of an axis."""
    texts = [f" “{safe(text)}”" if text else "" for text in token_texts(ubatch.token, tokens).tolist()]
    told = [
        f"token {i}{text}: position {pos}, sequence {seq}"
        for i, (text, pos, seq) in enumerate(zip(texts, ubatch.pos.tolist(), ubatch.first_seq.tolist(), strict=True))
    ]
    return [told[row] if row < len(told) else f"padding row {row}" for row in rows.tolist()]


def _cell_words(part: PartSnapshot, pool: int) -> list[str]:
    """Each column in words; a block of cells is visible if any of its cells is."""
    if pool > 1:
        return [f"cells {i} to {min(i + pool, part.n_kv) - 1}" for i in range(0, part.n_kv, pool)]
    owners = owner_texts(part.seqs[: part.n_kv]).tolist()
    return [
        f"cell {i}: position {pos}, of {owner or 'no sequence'}" if pos != EMPTY else f"cell {i}: empty"
        for i, (pos, owner) in enumerate(zip(part.pos[: part.n_kv].tolist(), owners, strict=True))
    ]


def _axes(ubatch: UBatch, drawn: Drawn, page: Theme, kind: str) -> dict[str, Any]:
    """Cell numbers above, positions of the tokens at the left."""
    n, n_columns = drawn.codes.shape
    n_tokens = int(np.count_nonzero(drawn.rows < len(ubatch)))
    rows = ticks(n_tokens, min(8, max(1, int(n_tokens * _height(n) / n // 15))))
    columns = ticks(n_columns, 8 if drawn.codes.size <= MAX_PATTERNED else 4)
    numbers = [f"{ubatch.pos[drawn.rows[row]]:,}" for row in rows]
    labels = [f"pos {number}" if i == 0 and len(number) < 5 else number for i, number in enumerate(numbers)]
    end = [(n_tokens, "padding")] if n_tokens < n else []
    return {
        "xaxis": axis(
            page,
            type=kind,
            side="top",
            tickangle=0,
            range=[-0.5, n_columns - 0.5],
            tickvals=columns,
            ticktext=["cell 0", *(f"{column * drawn.pool:,}" for column in columns[1:])],
        ),
        "yaxis": axis(
            page,
            type=kind,
            range=[n - 0.5, -0.5],
            tickvals=rows + [row for row, _ in end],
            ticktext=labels + [word for _, word in end],
        ),
    }


def _overlay(drawn: Drawn, said: Said, page: Theme) -> dict[str, Any]:
    """Axes that count squares; their labels are not shown but said on hover."""
    rows, columns = drawn.codes.shape
    shared = {"showticklabels": False, "tickmode": "array"}
    return {
        "xaxis2": axis(
            page,
            overlaying="x",
            range=[-0.5, columns - 0.5],
            tickvals=list(range(len(said[0]))),
            ticktext=said[0],
            **shared,
        ),
        "yaxis2": axis(
            page,
            overlaying="y",
            range=[rows - 0.5, -0.5],
            tickvals=list(range(len(said[1]))),
            ticktext=said[1],
            **shared,
        ),
    }
