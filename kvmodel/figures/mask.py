"""The map of the mask: which token of a ubatch sees which cell, and why not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.cells import EMPTY
from kvmodel.figures.base import SMALL, discrete_scale, figure, swatch
from kvmodel.figures.palette import Theme, ThemeName
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.words import owner_texts, reason_words, safe, token_texts
from kvmodel.mask import MaskReason, mask_reasons
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Token

MARGIN = {"l": 46, "r": 8, "t": 20, "b": 38}
MAX_SQUARES = 1 << 15
"""Squares drawn at most, each with its reason in words: more than that a panel's pixels do not show."""

MAX_ROWS = 64
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
    """

    codes: NDArray[np.uint8]
    rows: NDArray[np.intp]
    pool: int


def mask_figure(
    part: PartSnapshot,
    ubatch: UBatch,
    *,
    causal: bool = True,
    padding: bool = False,
    tokens: Sequence[Token] = (),
    theme: ThemeName = "light",
) -> go.Figure:
    """One row a token of the ubatch, one column a cell up to n_kv, the reason as colour.

    Args:
        part: the cells after the ubatch was stored.
        ubatch: the tokens that ask.
        causal: later positions are hidden.
        padding: show the rows that fill the mask up to a multiple of 64.
        tokens: the timeline's tokens, for the hover text.
        theme: light or dark.

    Returns:
        A figure whose first trace, `reasons`, holds MaskReason codes (uint8 [tokens, cells]) and the reasons as text.
        A mask beyond 32,768 squares shows evenly spaced rows and pools neighbouring cells; it says so on hover.
    """
    page = page_of(theme)
    codes = mask_reasons(
        part.pos[: part.n_kv],
        part.seqs[: part.n_kv],
        ubatch.pos,
        ubatch.first_seq,
        causal=causal,
        swa_type=part.params.swa_type,
        n_swa=part.params.n_swa,
        padding=padding,
    )
    drawn = _drawn(codes)
    words = reason_words(part.params.swa_type)
    present = np.unique(drawn.codes).tolist()
    legend = [swatch(words[code], page.reasons[code]) for code in present]
    height = max(60.0, min(168.0, 16.0 * len(drawn.rows)))
    return figure(
        page,
        [_squares(part, ubatch, drawn, tokens, page, words), *legend],
        height=height,
        margin=MARGIN,
        **_axes(ubatch, drawn, page),
    )


def _drawn(codes: NDArray[np.uint8]) -> Drawn:
    n, n_kv = codes.shape
    rows = np.arange(n) if n * n_kv <= MAX_SQUARES or n <= MAX_ROWS else np.linspace(0, n - 1, MAX_ROWS).astype(np.intp)
    pool = -(-n_kv * len(rows) // MAX_SQUARES)
    shown = codes[rows]
    if pool > 1:
        rank = np.argsort(PRIORITY).astype(np.uint8)
        shown = PRIORITY[np.maximum.reduceat(rank[shown], np.arange(0, n_kv, pool), axis=1)]
    return Drawn(shown, rows, pool)


def _squares(
    part: PartSnapshot, ubatch: UBatch, drawn: Drawn, tokens: Sequence[Token], page: Theme, words: tuple[str, ...]
) -> go.Heatmap:
    small = drawn.codes.size <= 2048
    return go.Heatmap(
        z=drawn.codes,
        name="reasons",
        x=_cell_words(part, drawn.pool),
        y=_query_words(ubatch, drawn.rows, tokens),
        text=np.array(words, object)[drawn.codes].tolist(),
        xgap=1 if small else 0,
        ygap=1 if small else 0,
        hovertemplate="<b>%{text}</b><br>%{y}<br>%{x}<extra></extra>",
        showlegend=False,
        **discrete_scale(page.reasons),
    )


def _query_words(ubatch: UBatch, rows: NDArray[np.intp], tokens: Sequence[Token]) -> list[str]:
    """Each drawn row in words; different for every row, since they are the categories of an axis."""
    texts = [f" “{safe(text)}”" if text else "" for text in token_texts(ubatch.token, tokens).tolist()]
    told = [
        f"token {i}{text}: position {pos}, sequence {seq}"
        for i, (text, pos, seq) in enumerate(zip(texts, ubatch.pos.tolist(), ubatch.first_seq.tolist(), strict=True))
    ]
    return [told[row] if row < len(told) else f"padding row {row}" for row in rows.tolist()]


def _cell_words(part: PartSnapshot, pool: int) -> list[str]:
    """Each column in words."""
    if pool > 1:
        return [f"cells {i} to {min(i + pool, part.n_kv) - 1}" for i in range(0, part.n_kv, pool)]
    owners = owner_texts(part.seqs[: part.n_kv]).tolist()
    return [
        f"cell {i}: position {pos}, of {owner or 'no sequence'}" if pos != EMPTY else f"cell {i}: empty"
        for i, (pos, owner) in enumerate(zip(part.pos[: part.n_kv].tolist(), owners, strict=True))
    ]


def _axes(ubatch: UBatch, drawn: Drawn, page: Theme) -> dict[str, Any]:
    """Cell numbers above, positions of the tokens at the left."""
    shared = {
        "type": "category",
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "fixedrange": True,
        "tickfont": {"size": SMALL, "color": page.muted},
        "tickangle": 0,
    }
    n, n_columns = drawn.codes.shape
    columns = list(range(0, n_columns, max(1, n_columns // 8)))
    rows = list(range(0, n, max(1, -(-n // 12))))
    pos = ubatch.pos.tolist()
    labels = [f"{pos[i]:,}" if (i := int(drawn.rows[row])) < len(pos) else "padding" for row in rows]
    return {
        "xaxis": {
            **shared,
            "side": "top",
            "range": [-0.5, n_columns - 0.5],
            "tickvals": columns,
            "ticktext": [f"{column * drawn.pool:,}" for column in columns],
        },
        "yaxis": {**shared, "range": [n - 0.5, -0.5], "tickvals": rows, "ticktext": labels},
    }
