"""The map of the mask: which token of a ubatch sees which cell, and why not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.cells import EMPTY
from kvmodel.figures.base import axis, discrete_scale, figure
from kvmodel.figures.codes import PATTERN_PIXELS, PATTERN_SIZE
from kvmodel.figures.entries import Entry, swatch
from kvmodel.figures.grid import ticks
from kvmodel.figures.palette import PATTERNS, REASON_PATTERNS, Theme, ThemeName
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.texts import owner_texts, reason_words, safe, token_texts
from kvmodel.mask import KQ_MASK_PAD, MaskReason, mask_reasons
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Token
from kvmodel.types import pad

MARGIN = {"l": 50, "r": 8, "t": 22, "b": 14}
WIDTH, ROW_HEIGHT, MAX_HEIGHT, MIN_HEIGHT = 600, 17, 168, 34
MAX_SQUARES = 1 << 14
"""Squares drawn at most, each with its reason in words: more than that a panel's pixels do not show."""

MAX_ROWS = 32
MAX_PATTERNED = 2048
"""Squares up to which each is large enough for lines between them and a pattern inside."""

PRIORITY = np.array(
    [
        MaskReason.EMPTY,
        MaskReason.PADDING,
        MaskReason.OTHER_SEQ,
        MaskReason.FUTURE,
        MaskReason.OUTSIDE,
        MaskReason.VISIBLE,
    ],
    np.uint8,
)
"""Which reason speaks for a block of cells: the last of these that occurs in it."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """The squares that are drawn.

    Attributes:
        codes: uint8 [rows, columns], MaskReason.
        rows: intp [rows], rows of the mask; all of them, or as many evenly spaced ones as are drawn.
        pool: cells a column stands for.
        counts: unsigned [rows, columns, reasons], cells of a square by reason, where a column stands for several.
    """

    codes: NDArray[np.uint8]
    rows: NDArray[np.intp]
    pool: int
    counts: NDArray[np.unsignedinteger] | None = None


def mask_figure(
    part: PartSnapshot,
    ubatch: UBatch,
    *,
    causal: bool = True,
    padding: bool = False,
    tokens: Sequence[Token] = (),
    theme: ThemeName = "light",
) -> go.Figure:
    """One row a token of the ubatch, one column a cell up to n_kv, the reason as colour and pattern.

    Args:
        part: the cells after the ubatch was stored.
        ubatch: the tokens that ask.
        causal: later positions are hidden.
        padding: show the rows that fill the mask up to a multiple of 64.
        tokens: the timeline's tokens, for the hover text.
        theme: light or dark.

    Returns:
        A figure whose first trace, `reasons`, holds MaskReason codes (uint8 [tokens, cells]) and the reasons as text.
        A mask beyond 16,384 squares shows evenly spaced rows and pools neighbouring cells; on hover a square then
        counts its cells by reason.
    """
    page, words = page_of(theme), reason_words(part.params.swa_type)
    drawn = _drawn(part, ubatch, causal, pad(len(ubatch), KQ_MASK_PAD) if padding else len(ubatch))
    return figure(
        page,
        [_squares(part, ubatch, drawn, tokens, page, words), *_pattern(drawn, page)],
        height=_height(len(drawn.rows)),
        margin=MARGIN,
        width=WIDTH,
        entries=_legend(drawn, page, words),
        **_axes(ubatch, drawn, page),
    )


def _height(rows: int) -> int:
    return max(MIN_HEIGHT, min(MAX_HEIGHT, ROW_HEIGHT * rows))


def _drawn(part: PartSnapshot, ubatch: UBatch, causal: bool, n: int) -> Drawn:
    """The squares of a mask of `n` rows, or as many as can be seen; only rows that are drawn are worked out."""
    size = n * part.n_kv
    rows = np.arange(n) if size <= MAX_SQUARES else np.linspace(0, n - 1, min(n, MAX_ROWS)).astype(np.intp)
    asking = rows[rows < len(ubatch)]
    shown = np.full((len(rows), part.n_kv), MaskReason.PADDING, np.uint8)
    shown[: len(asking)] = mask_reasons(
        part.pos[: part.n_kv],
        part.seqs[: part.n_kv],
        ubatch.pos[asking],
        ubatch.first_seq[asking],
        causal=causal,
        swa_type=part.params.swa_type,
        n_swa=part.params.n_swa,
    )
    pool = max(1, -(-shown.size // MAX_SQUARES))
    return Drawn(shown, rows, pool) if pool == 1 else _pooled(shown, rows, pool)


def _pooled(shown: NDArray[np.uint8], rows: NDArray[np.intp], pool: int) -> Drawn:
    """`pool` neighbouring cells a square."""
    begins = np.arange(0, shown.shape[1], pool)
    rank = np.argsort(PRIORITY).astype(np.uint8)
    codes = PRIORITY[np.maximum.reduceat(rank[shown], begins, axis=1)]
    unit = np.min_scalar_type(pool)
    counts = [np.add.reduceat(shown == reason, begins, axis=1, dtype=unit) for reason in MaskReason]
    return Drawn(codes, rows, pool, np.stack(counts, axis=-1))


def _squares(
    part: PartSnapshot, ubatch: UBatch, drawn: Drawn, tokens: Sequence[Token], page: Theme, words: tuple[str, ...]
) -> go.Heatmap:
    gap = 1 if drawn.codes.size <= MAX_PATTERNED else 0
    return go.Heatmap(
        z=drawn.codes,
        x=_cell_words(part, drawn.pool),
        y=_query_words(ubatch, drawn.rows, tokens),
        xgap=gap,
        ygap=gap,
        name="reasons",
        **_told(drawn, words),
        **discrete_scale(page.reasons),
    )


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


def _axes(ubatch: UBatch, drawn: Drawn, page: Theme) -> dict[str, Any]:
    """Cell numbers above, positions of the tokens at the left."""
    n, n_columns = drawn.codes.shape
    n_tokens = int(np.count_nonzero(drawn.rows < len(ubatch)))
    rows = ticks(n_tokens, min(8, max(1, int(n_tokens * _height(n) / n // 15))))
    columns = ticks(n_columns, 8 if drawn.codes.size <= MAX_PATTERNED else 4)
    labels = [f"pos {ubatch.pos[drawn.rows[0]]:,}", *(f"{ubatch.pos[drawn.rows[row]]:,}" for row in rows[1:])]
    end = [(n_tokens, "padding")] if n_tokens < n else []
    return {
        "xaxis": axis(
            page,
            type="category",
            side="top",
            tickangle=0,
            range=[-0.5, n_columns - 0.5],
            tickvals=columns,
            ticktext=["cell 0", *(f"{column * drawn.pool:,}" for column in columns[1:])],
        ),
        "yaxis": axis(
            page,
            type="category",
            range=[n - 0.5, -0.5],
            tickvals=rows + [row for row, _ in end],
            ticktext=labels + [word for _, word in end],
        ),
        "xaxis2": {"overlaying": "x", "visible": False, "range": [-0.5, n_columns - 0.5], "fixedrange": True},
        "yaxis2": {"overlaying": "y", "visible": False, "range": [n - 0.5, -0.5], "fixedrange": True},
    }
