"""Words of the picture of a recurrent cache: in the cells, under them, and for the mouse."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.figures.base import SMALL
from kvmodel.figures.clicks import click_layer
from kvmodel.figures.codes import TALL, Coded
from kvmodel.figures.palette import Theme, ink_on
from kvmodel.figures.state_rows import WIDE, Rows
from kvmodel.figures.texts import owner_texts, owners_of, safe, source_texts
from kvmodel.snapshot import PartSnapshot

FOOT = 2
"""Pixels of 8 at the lower end of a shared cell that show its owners."""

CHAR_WIDTH, FULL = 6.5, 56
"""Pixels of a character in a cell, and of a column from which on the number under it has its word."""

WITH_WORD = 6
"""Characters from which on an owner has its word."""

DROP = 3
"""Pixels that text is set lower, since lines reach higher than they hang."""


def words(part: PartSnapshot, coded: Coded, rows: Rows, texts: NDArray[np.str_]) -> go.Scatter:
    """In the cells: position, owners and the text of the last token; in low rows only what fits of the first two."""
    cells = np.flatnonzero(part.seqs[: rows.n] != 0)
    chars = int(rows.pixels // CHAR_WIDTH)
    owners = short_owners(part.seqs[cells], chars)
    places = [str(pos) for pos in part.pos[cells].tolist()]
    if rows.is_low:
        places = [place if len(place) <= chars else "" for place in places]
    size = SMALL if rows.is_low else SMALL - 1
    tokens = [f"<br>{_short(text, chars)}" if text else "" for text in _tokens(rows, texts[cells])]
    told = [
        f"<b>{place}</b><br><span style='font-size:{size}px'>{seqs}{token}</span>"
        for place, seqs, token in zip(places, owners, tokens, strict=True)
    ]
    box = rows.high.box
    shared = (np.bitwise_count(part.seqs[cells]) > 1) * box * FOOT / TALL / 2
    inks = np.array([ink_on(fill) for fill in coded.colours])[coded.fill[cells]].tolist()
    return go.Scatter(
        x=rows.x(cells),
        y=rows.box_top(cells) + box / 2 + DROP - shared,
        mode="text",
        text=told,
        textfont={"size": SMALL + 1, "color": inks},
        name="text in cells",
        hoverinfo="skip",
        showlegend=False,
    )


def short_owners(seqs: NDArray[np.uint64], room: int) -> list[str]:
    """Owners of every cell by number, with the word where it fits, or how many they are where the numbers do not."""
    texts, counts = owner_texts(seqs).tolist(), np.bitwise_count(seqs).tolist()
    if room >= WITH_WORD:
        told = zip((f"seq {text}" for text in texts), (f"{n} seqs" for n in counts), strict=True)
    else:
        firsts = [owners_of(int(bits))[0] for bits in seqs]
        told = zip(texts, (f"{first} +{n - 1}" for first, n in zip(firsts, counts, strict=True)), strict=True)
    return [full if n == 1 or len(full) <= room else short for (full, short), n in zip(told, counts, strict=True)]


def _tokens(rows: Rows, texts: NDArray[np.str_]) -> list[str]:
    """The text of the last token, where there is a line for it."""
    return [""] * len(texts) if rows.is_low else texts.tolist()


def _short(text: str, room: int) -> str:
    word = text.strip()
    return safe(word if len(word) <= room else word[: room - 1] + "…")


def labels(part: PartSnapshot, rows: Rows, page: Theme) -> go.Scatter:
    """Under the cells: their numbers, and where a state comes from if not from its own cell."""
    cells = np.arange(rows.n)
    return go.Scatter(
        x=rows.x(cells),
        y=rows.box_bottom(cells) + rows.high.arc,
        mode="text",
        text=_numbers(source_texts(part)[: rows.n].tolist(), rows),
        textposition="bottom center",
        textfont={"size": SMALL - 1 if rows.is_low else SMALL, "color": page.muted},
        name="numbers",
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )


def _numbers(sources: list[str], rows: Rows) -> list[str]:
    """The number of every cell and its source; of low rows in one short line."""
    if rows.is_low:
        short = [source.replace("from cell ", "←").replace("from ", " ") for source in sources]
        return [f"{cell}<b>{source}</b>" if source else str(cell) for cell, source in enumerate(short)]
    if rows.pixels < WIDE:
        sources = [source.replace("from cell", "from") for source in sources]
    word = "cell " if rows.pixels >= FULL else ""
    return [f"{word}{cell}{f'<br><b>{source}</b>' if source else ''}" for cell, source in enumerate(sources)]


def far_tails(part: PartSnapshot, rows: Rows, seqs: NDArray[np.intp], page: Theme) -> go.Scatter:
    """Under sequences whose state is in another row: its cell."""
    return go.Scatter(
        x=rows.x(seqs),
        y=rows.top(seqs) + rows.high.chip + 1,
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
    middle = rows.box_top(cells) + rows.high.box / 2
    return click_layer(rows.x(cells), middle, words, "cells", customdata=cells[:, None], hovertemplate=told)


def _cell_words(part: PartSnapshot, cell: int, owners: str, source: str, token: str) -> str:
    if not owners:
        return "empty"
    held = f"position {part.pos[cell]}, {'sequences' if int(part.seqs[cell]).bit_count() > 1 else 'sequence'} {owners}"
    last = f"<br>last token “{safe(token)}”" if token else ""
    return f"{held}{last}<br>next: {source or 'as it is'}"
