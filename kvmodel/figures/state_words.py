"""Words of the picture of a recurrent cache: in the cells, under them, and for the mouse."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.figures.base import SMALL
from kvmodel.figures.clicks import click_layer
from kvmodel.figures.codes import TALL, Coded
from kvmodel.figures.palette import Theme, ink_on
from kvmodel.figures.state_rows import ARC, BOX, CHIP, WIDE, Rows
from kvmodel.figures.texts import owner_texts, safe, source_texts
from kvmodel.snapshot import PartSnapshot

FOOT = 2
"""Pixels of 8 at the lower end of a shared cell that show its owners."""

CHAR_WIDTH, FULL = 6.5, 56
"""Pixels of a character in a cell, and of a column from which on the number under it has its word."""

DROP = 3
"""Pixels that text is set lower, since lines reach higher than they hang."""


def words(part: PartSnapshot, coded: Coded, rows: Rows, texts: NDArray[np.str_]) -> go.Scatter:
    """In the cells: position, owners and the text of the last token."""
    cells = np.flatnonzero(part.seqs[: rows.n] != 0)
    chars = int(rows.pixels // CHAR_WIDTH)
    owners = short_owners(part.seqs[cells], chars - 4)
    told = [
        f"<b>{pos}</b><br><span style='font-size:10px'>{seqs}{f'<br>{_short(text, chars)}' if text else ''}</span>"
        for pos, seqs, text in zip(part.pos[cells].tolist(), owners, texts[cells].tolist(), strict=True)
    ]
    shared = (np.bitwise_count(part.seqs[cells]) > 1) * BOX * FOOT / TALL / 2
    inks = np.array([ink_on(fill) for fill in coded.colours])[coded.fill[cells]].tolist()
    return go.Scatter(
        x=rows.x(cells),
        y=rows.box_top(cells) + BOX / 2 + DROP - shared,
        mode="text",
        text=told,
        textfont={"size": SMALL + 1, "color": inks},
        name="text in cells",
        hoverinfo="skip",
        showlegend=False,
    )


def short_owners(seqs: NDArray[np.uint64], room: int) -> list[str]:
    """Owners of every cell by number, or how many they are where the numbers do not fit."""
    texts, counts = owner_texts(seqs).tolist(), np.bitwise_count(seqs).tolist()
    return [f"seq {text}" if len(text) <= room else f"{n} seqs" for text, n in zip(texts, counts, strict=True)]


def _short(text: str, room: int) -> str:
    word = text.strip()
    return safe(word if len(word) <= room else word[: room - 1] + "…")


def labels(part: PartSnapshot, rows: Rows, page: Theme) -> go.Scatter:
    """Under the cells: their numbers, and where a state comes from if not from its own cell."""
    cells = np.arange(rows.n)
    sources = source_texts(part)[: rows.n].tolist()
    if rows.pixels < WIDE:
        sources = [source.replace("from cell", "from") for source in sources]
    cell_word = "cell " if rows.pixels >= FULL else ""
    text = [f"{cell_word}{cell}{f'<br><b>{source}</b>' if source else ''}" for cell, source in enumerate(sources)]
    return go.Scatter(
        x=rows.x(cells),
        y=rows.box_bottom(cells) + ARC,
        mode="text",
        text=text,
        textposition="bottom center",
        textfont={"size": SMALL, "color": page.muted},
        name="numbers",
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )


def far_tails(part: PartSnapshot, rows: Rows, seqs: NDArray[np.intp], page: Theme) -> go.Scatter:
    """Under sequences whose state is in another row: its cell."""
    return go.Scatter(
        x=rows.x(seqs),
        y=rows.top(seqs) + CHIP + 1,
        mode="text",
        text=[f"→ {cell}" for cell in part.tail[seqs].tolist()],
        textposition="bottom center",
        textfont={"size": SMALL, "color": page.muted},
        name="far tails",
        hoverinfo="skip",
        showlegend=False,
    )


def hover(part: PartSnapshot, rows: Rows, texts: NDArray[np.str_]) -> go.Scatter:
    """Points over the cells that answer mouse and clicks."""
    cells = np.arange(rows.n, dtype=np.int32)
    owners, sources = owner_texts(part.seqs).tolist(), source_texts(part).tolist()
    words = [_cell_words(part, cell, owners[cell], sources[cell], str(texts[cell])) for cell in range(rows.n)]
    told = "<b>cell %{customdata[0]}</b><br>%{hovertext}<extra></extra>"
    middle = rows.box_top(cells) + BOX / 2
    return click_layer(rows.x(cells), middle, words, "cells", customdata=cells[:, None], hovertemplate=told)


def _cell_words(part: PartSnapshot, cell: int, owners: str, source: str, token: str) -> str:
    if not owners:
        return "empty"
    held = f"position {part.pos[cell]}, {'sequences' if int(part.seqs[cell]).bit_count() > 1 else 'sequence'} {owners}"
    last = f"<br>last token “{safe(token)}”" if token else ""
    return f"{held}{last}<br>next: {source or 'as it is'}"
