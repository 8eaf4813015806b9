"""A defragmentation: the cells before, the blocks that move, the cells after."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.cells import EMPTY
from kvmodel.defrag import DefragPlan
from kvmodel.figures.base import axis, discrete_scale, figure
from kvmodel.figures.codes import WIDTHS, by_sequence
from kvmodel.figures.entries import swatch
from kvmodel.figures.grid import ticks
from kvmodel.figures.hover import CLEAR, MAX_TEXT_CELLS
from kvmodel.figures.legend import sequence_entries
from kvmodel.figures.marks import path
from kvmodel.figures.palette import Theme, ThemeName
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.texts import Strings, owner_texts
from kvmodel.snapshot import PartSnapshot
from kvmodel.words import count

MARGIN = {"l": 50, "r": 8, "t": 22, "b": 14}
WIDTH, HEIGHT = 600, 150
BAND = 0.26
"""Height of a row of cells; the plot has height 1 and the moves run between the two rows."""

MAX_RIBBONS = 500
"""Moves drawn at most; the hover text knows all."""

MAX_LINED = 128
"""Cells up to which lines set them apart."""


def defrag_figure(part: PartSnapshot, plan: DefragPlan, *, theme: ThemeName = "light") -> go.Figure:
    """Two rows of cells, before and after, and a ribbon for every block that moves.

    Args:
        part: the cells before.
        plan: the moves.
        theme: light or dark.

    Returns:
        A figure with the traces `before` and `after`: colour codes as in `cells_figure`, one column a cell.
    """
    page = page_of(theme)
    n = len(plan.ids) or int(part.counters["used_max_p1"]) or part.n_cells
    pos, seqs = part.pos[:n], part.seqs[:n]
    after = _moved(pos, plan, EMPTY), _moved(seqs, plan, 0)
    rows = (("before", pos, seqs, 1 - BAND, plan.src, plan.dst), ("after", *after, 0.0, plan.dst, plan.src))
    traces: list[Any] = []
    for name, row_pos, row_seqs, base, here, there in rows:
        traces.append(_colours(name, row_pos, row_seqs, base, page))
        if n <= MAX_TEXT_CELLS:
            traces.append(_hover(_words(row_pos, row_seqs, here, there, name), base))
    entries = [*sequence_entries(seqs, page), swatch("empty", page.empty, page), swatch(_told(plan), page.accent, page)]
    shapes = [*_ribbons(plan, page), *_lines(n, page)]
    return figure(
        page, traces, height=HEIGHT, margin=MARGIN, width=WIDTH, entries=entries, shapes=shapes, **_axes(n, page)
    )


def _moved(values: NDArray[Any], plan: DefragPlan, empty: Any) -> NDArray[Any]:
    """An array of the cells as the plan leaves it."""
    after = values.copy()
    after[plan.dst] = values[plan.src]
    after[plan.src] = empty
    return after


def _told(plan: DefragPlan) -> str:
    if plan.empty:
        return "nothing moves"
    return count(plan.n_moves, "block move") + (f" of at most {plan.max_moves:,}" if plan.max_moves else "")


def _colours(name: str, pos: NDArray[np.int32], seqs: NDArray[np.uint64], base: float, page: Theme) -> go.Heatmap:
    coded = by_sequence(pos, seqs, page, 1 if len(pos) > MAX_TEXT_CELLS else WIDTHS[-1])
    n, high, wide = coded.codes.shape
    return go.Heatmap(
        z=coded.codes.swapaxes(0, 1).reshape(high, n * wide),
        x0=-0.5 + 0.5 / wide,
        dx=1 / wide,
        y0=base + BAND * 0.5 / high,
        dy=BAND / high,
        name=name,
        hoverinfo="skip",
        **discrete_scale(coded.colours),
    )


def _hover(words: Strings, base: float) -> go.Heatmap:
    return go.Heatmap(
        z=np.zeros((1, len(words)), np.uint8),
        y0=base + BAND / 2,
        dy=BAND,
        text=words[None, :],
        colorscale=CLEAR,
        showscale=False,
        hovertemplate="%{text}<extra></extra>",
    )


def _words(
    pos: NDArray[np.int32], seqs: NDArray[np.uint64], here: NDArray[np.intp], there: NDArray[np.intp], name: str
) -> Strings:
    """What there is to say about every cell of a row, str [n]."""
    add = np.strings.add
    other = np.full(len(pos), -1)
    other[here] = there
    move = add("<br>goes to cell " if name == "before" else "<br>came from cell ", other.astype(np.str_))
    holds = add(add(add("position ", pos.astype(np.str_)), ", sequences "), owner_texts(seqs))
    cell = add(add(f"<b>{name}: cell ", np.arange(len(pos)).astype(np.str_)), "</b><br>")
    text = add(cell, np.where(pos == EMPTY, "empty", holds))
    return np.where(other < 0, text, add(text, move))


def _ribbons(plan: DefragPlan, page: Theme) -> list[dict[str, Any]]:
    """One shape of all moves: from the block's place above to its place below."""
    top, bottom = 1 - BAND, BAND
    moves = plan.moves[:MAX_RIBBONS].tolist()
    points = "".join(
        f"M{src - 0.5},{top}L{src + n - 0.5},{top}L{dst + n - 0.5},{bottom}L{dst - 0.5},{bottom}Z"
        for src, dst, n in moves
    )
    fill = {"fillcolor": page.accent, "opacity": 0.4, "fillrule": "nonzero"}
    return [path(points, page.accent, 1) | fill] if points else []


def _lines(n: int, page: Theme) -> list[dict[str, Any]]:
    """Lines of the page's colour between the cells of both rows."""
    if n > MAX_LINED:
        return []
    return [path("".join(f"M{c - 0.5},1V{1 - BAND}M{c - 0.5},{BAND}V0" for c in range(n + 1)), page.paper, 2)]


def _axes(n: int, page: Theme) -> dict[str, Any]:
    cells = ticks(n, 8)
    return {
        "xaxis": axis(
            page,
            side="top",
            range=[-0.5, n - 0.5],
            tickvals=cells,
            ticktext=["cell 0", *(f"{cell:,}" for cell in cells[1:])],
        ),
        "yaxis": axis(page, range=[0, 1], tickvals=[1 - BAND / 2, BAND / 2], ticktext=["before", "after"]),
    }
