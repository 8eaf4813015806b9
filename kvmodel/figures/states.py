"""The picture of a recurrent cache: states in their cells, which sequence keeps its state where, and sources."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kvmodel.cells import EMPTY
from kvmodel.figures.base import SMALL, axis, discrete_scale, figure
from kvmodel.figures.clicks import NEAREST, undimmed
from kvmodel.figures.codes import Coded, by_sequence
from kvmodel.figures.entries import DOTS, LINE, Entry, outline, swatch
from kvmodel.figures.grid import PLOT_WIDTH
from kvmodel.figures.marks import path
from kvmodel.figures.palette import Theme, ThemeName, ink_on, seq_colour
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.state_rows import Lines, Rows, in_one_row, owned_tails, source_lines, tail_lines
from kvmodel.figures.state_words import FOOT, far_tails, hover, labels, words
from kvmodel.figures.texts import tail_texts, token_texts
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Token

MARGIN = {"l": 72, "r": 82, "t": 10, "b": 10}
STATE = ("pos", "seqs", "src", "token")
"""What belongs to a cell; its tail belongs to the sequence of the same number."""


def states_figure(
    part: PartSnapshot,
    *,
    before: PartSnapshot | None = None,
    tokens: Sequence[Token] = (),
    selected: int | None = None,
    width: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """The cells in a row, above them the sequences with a line to their state, below them where states come from.

    Args:
        part: a recurrent cache at one moment.
        before: an earlier moment; what changed since is outlined.
        tokens: the timeline's tokens, for the text of the last one that a state took in.
        selected: a cell to outline as selected.
        width: pixels of the place for the whole figure; left out, a wide panel of the page.
        theme: light or dark.

    Returns:
        A figure with the traces `states` (colours, uint8, the first one for the first row of cells), `sequences` (one
        point each, the first 64), `cells` (answers mouse and clicks, customdata the cell) and the ends of the lines,
        `tails` and `sources`. Of more than 64 cells the rest is counted.
    """
    page = page_of(theme)
    plot = PLOT_WIDTH if width is None else max(1, width - MARGIN["l"] - MARGIN["r"])
    rows = Rows.of(part, plot)
    owned = np.where(part.seqs != 0, 0, EMPTY).astype(np.int32)
    coded = by_sequence(owned, part.seqs, page, 12, foot=FOOT)
    seqs, has = owned_tails(part, rows.n)
    near = in_one_row(part, rows, seqs)
    tails, lost = (tail_lines(part, rows, seqs[which & near]) for which in (has, ~has))
    sources = source_lines(part, rows)
    texts = token_texts(part.token, tokens)
    boxes = _boxes(coded, rows)
    traces = [
        boxes[0],
        hover(part, rows, texts),
        *boxes[1:],
        _chips(part, rows, page),
        _heads("tails", tails, page.muted, "triangle-down"),
        _heads("lost tails", lost, page.ink, "triangle-down"),
        _heads("sources", sources, page.accent, "triangle-up"),
        words(part, coded, rows, texts),
        far_tails(part, rows, seqs[~near], page),
        labels(part, rows, page),
    ]
    undimmed(traces)
    entries = [
        *_lines_legend(tails, lost, sources, page),
        *_legend(part, page, rows, changed=before is not None, selected=selected is not None),
    ]
    shapes = [
        *_grid_lines(rows, page),
        *tails.shape(page.muted, 1.5),
        *lost.shape(page.ink, 1.5, "dot"),
        *sources.shape(page.accent, 2),
        *_outlines(part, before, rows, page),
        *_selected(selected, rows, page),
        _head_mark(rows, part.head, page),
    ]
    return figure(
        page,
        traces,
        height=rows.height,
        margin=MARGIN,
        width=plot,
        entries=entries,
        shapes=shapes,
        annotations=_side_words(part, rows, page),
        **NEAREST,
        **_axes(rows, page),
    )


def _boxes(coded: Coded, rows: Rows) -> list[go.Heatmap]:
    """The cells, one heatmap for each row."""
    drawn = []
    for begin in range(0, rows.n, rows.columns):
        codes = coded.codes[begin : min(begin + rows.columns, rows.n)]
        n, high, wide = codes.shape
        drawn.append(
            go.Heatmap(
                z=codes.swapaxes(0, 1).reshape(high, n * wide),
                x0=-0.5 + 0.5 / wide,
                dx=1 / wide,
                y0=rows.box_top(begin) + rows.high.box / high / 2,
                dy=rows.high.box / high,
                name="states" if not begin else f"states from {begin}",
                hoverinfo="skip",
                showlegend=False,
                **discrete_scale(list(coded.colours)),
            )
        )
    return drawn


def _chips(part: PartSnapshot, rows: Rows, page: Theme) -> go.Scatter:
    """The sequences, filled if they have a state."""
    seqs = np.arange(rows.n)
    has = part.tail[: rows.n] >= 0
    fills = [seq_colour(seq) if one else page.paper for seq, one in enumerate(has.tolist())]
    inks = [ink_on(fill) if one else page.muted for fill, one in zip(fills, has.tolist(), strict=True)]
    edges = [fill if one else page.line for fill, one in zip(fills, has.tolist(), strict=True)]
    return go.Scatter(
        x=rows.x(seqs),
        y=rows.top(seqs) + rows.high.chip / 2,
        mode="markers+text",
        marker={"symbol": "square", "size": rows.high.chip - 4, "color": fills, "line": {"width": 1.5, "color": edges}},
        text=[str(seq) for seq in seqs.tolist()],
        textfont={"size": SMALL if rows.is_low else SMALL + 1, "color": inks},
        hovertext=tail_texts(part)[: rows.n].tolist(),
        hovertemplate="%{hovertext}<extra></extra>",
        name="sequences",
        cliponaxis=False,
        showlegend=False,
    )


def _heads(name: str, lines: Lines, colour: str, symbol: str) -> go.Scatter:
    """The arrows at the ends of lines."""
    marker = {"symbol": symbol, "size": 9, "color": colour}
    return go.Scatter(
        x=lines.end[:, 0],
        y=lines.end[:, 1],
        mode="markers",
        marker=marker,
        name=name,
        hoverinfo="skip",
        showlegend=False,
    )


def _grid_lines(rows: Rows, page: Theme) -> list[dict[str, Any]]:
    """Lines of the page's colour between the cells."""
    inner = (cell for cell in range(rows.n) if rows.x(cell))
    lines = [f"M{rows.x(cell) - 0.5},{rows.box_top(cell)}V{rows.box_bottom(cell)}" for cell in inner]
    return [path("".join(lines), page.paper, 3)] if lines else []


def _outlines(part: PartSnapshot, before: PartSnapshot | None, rows: Rows, page: Theme) -> list[dict[str, Any]]:
    """Boxes around the cells whose state changed, and around the sequences whose tail did."""
    if before is None:
        return []
    changed = np.logical_or.reduce([part.arrays[name] != before.arrays[name] for name in STATE])
    cells = np.flatnonzero(changed[: rows.n]).tolist()
    seqs = np.flatnonzero((part.tail != before.tail)[: rows.n]).tolist()
    boxes = [_box(rows.x(cell), rows.box_top(cell), 0.5, rows.high.box) for cell in cells]
    chip = rows.high.chip
    chips = [_box(rows.x(seq), rows.top(seq), chip / 2 / rows.pixels, chip) for seq in seqs]
    return [path("".join([*boxes, *chips]), page.ink, 1.5)] if boxes or chips else []


def _selected(cell: int | None, rows: Rows, page: Theme) -> list[dict[str, Any]]:
    if cell is None or cell >= rows.n:
        return []
    box = _box(rows.x(cell), rows.box_top(cell), 0.5, rows.high.box)
    return [path(box, page.ink, 5), path(box, page.accent, 2)]


def _box(x: float, top: float, half: float, height: float) -> str:
    return f"M{x - half},{top}H{x + half}V{top + height}H{x - half}Z"


def _head_mark(rows: Rows, head: int, page: Theme) -> dict[str, Any]:
    """A bracket before the cell from which the next search looks for an empty one."""
    cell = min(head, rows.n - 1)
    x, top = rows.x(cell) - 0.5 + (head - cell), rows.box_top(cell)
    return path(f"M{x + 0.08},{top}H{x}V{top + rows.high.box}H{x + 0.08}", page.accent, 3)


def _side_words(part: PartSnapshot, rows: Rows, page: Theme) -> list[dict[str, Any]]:
    """What the rows are, at the left; head and the length of the slot at the right."""
    shared = {"xref": "paper", "yref": "y", "showarrow": False, "font": {"size": SMALL, "color": page.muted}}
    left = shared | {"x": 0, "xanchor": "right", "xshift": -8}
    right = shared | {"x": rows.columns - 0.5, "xref": "x", "xanchor": "left", "xshift": 10}
    middle = rows.box_top(0) + rows.high.box / 2
    told = [
        left | {"y": rows.high.chip / 2, "text": "sequence"},
        left | {"y": middle, "text": "state"},
        right
        | {"y": middle - 8, "text": f"<b>head {part.head}</b>", "font": {"size": SMALL + 1, "color": page.accent}},
        right | {"y": middle + 8, "text": f"slot {part.n_kv} long", "font": {"size": SMALL + 1, "color": page.ink}},
    ]
    if part.n_cells > rows.n:
        more = f"and {part.n_cells - rows.n:,} more"
        told.append(right | {"y": rows.box_bottom(rows.n - 1) + rows.high.arc + SMALL, "text": more})
    return told


def _lines_legend(tails: Lines, lost: Lines, sources: Lines, page: Theme) -> list[Entry]:
    """What the lines mean, as far as there are any."""
    entries = [
        (tails, Entry("tail: sequence to cell", page.muted, LINE)),
        (lost, Entry("tail without a state", page.ink, DOTS)),
        (sources, Entry("source: cell to cell", page.accent, LINE)),
    ]
    return [entry for lines, entry in entries if len(lines.begin)]


def _legend(part: PartSnapshot, page: Theme, rows: Rows, *, changed: bool, selected: bool) -> list[Entry]:
    """What fills and outlines mean."""
    seqs = part.seqs[: rows.n]
    entries: list[Entry] = []
    if (np.bitwise_count(seqs) > 1).any():
        entries.append(swatch("shared", page.filled, page))
    if (seqs == 0).any():
        entries.append(swatch("empty", page.empty, page))
    if changed:
        entries.append(outline("changed", page.ink))
    if selected:
        entries.append(outline("selected", page.accent))
    return entries


def _axes(rows: Rows, page: Theme) -> dict[str, Any]:
    hidden = {"showticklabels": False}
    return {
        "xaxis": axis(page, range=[-0.55, rows.room - 0.45], **hidden),
        "yaxis": axis(page, range=[rows.height, -2], **hidden),
    }
