"""What each other choice would take, against what is taken now."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.figures.base import SMALL, axis, figure
from kvmodel.figures.entries import Entry, swatch
from kvmodel.figures.memory_lines import axis_title, budget_line, budget_words, now_line, now_words
from kvmodel.figures.memory_looks import filled, patterned
from kvmodel.figures.palette import Theme, ThemeName, mix, seq_colour
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.texts import MIB
from kvmodel.memory import Saving, mib_words

ROW = 22
MARGIN = {"l": 192, "r": 172, "t": 22, "b": 44}
TAKES, MORE = 0, 1
"""Places in the palette of sequences."""

SPARE = 1.04


def savings_figure(savings: Sequence[Saving], *, budget: int | None = None, theme: ThemeName = "light") -> go.Figure:
    """One lying bar a choice: what it takes, then what it saves, or what it takes beyond the present.

    Args:
        savings: the choices, drawn in this order.
        budget: bytes, a line if given.
        theme: light or dark.

    Returns:
        A figure with the traces `takes`, `saves` and `takes more`, in MiB of the buffers; `customdata` holds bytes.
    """
    page = page_of(theme)
    now = float(savings[0].total + savings[0].saved) if savings else 0.0
    most = max([*(saving.total for saving in savings), now, 1]) / MIB * SPARE
    traces = [trace for trace in _traces(savings, now, page) if np.any(trace.x)]
    shapes, words = _lines(now / MIB, budget if budget and budget / MIB <= most else None, page)
    return figure(
        page,
        traces,
        height=ROW * max(len(savings), 1),
        margin=MARGIN,
        entries=_entries({trace.name for trace in traces}, page),
        annotations=[*words, *(_told(saving, page) for saving in savings)],
        shapes=shapes,
        barmode="stack",
        bargap=0.3,
        xaxis=axis(
            page,
            range=[0, most],
            showgrid=True,
            gridcolor=page.line,
            tickformat=",~f",
            tickangle=0,
            nticks=4,
            title=axis_title("MiB", page),
        ),
        yaxis=_labels(savings, page),
    )


def _traces(savings: Sequence[Saving], now: float, page: Theme) -> list[go.Bar]:
    total = np.array([saving.total for saving in savings], np.float64)
    saved = np.array([saving.saved for saving in savings], np.float64)
    labels = [saving.label for saving in savings]
    return [
        _bars("takes", np.minimum(total, now), labels, filled(TAKES)),
        _bars("saves", np.maximum(saved, 0), labels, patterned(page.empty, page.muted, ".")),
        _bars("takes more", np.maximum(-saved, 0), labels, filled(MORE, "/")),
    ]


def _lines(now: float, budget: int | None, page: Theme) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The present and the budget as lines, with their words on the sides that face away from each other."""
    shapes, below = [now_line(now, page)], budget is not None and budget / MIB < now
    words = [now_words(now, "now", page, anchor="left" if below else "right")]
    if budget is not None:
        shapes.append(budget_line(budget, page))
        words.append(budget_words(budget, page, anchor="right" if below else "left"))
    return shapes, words


def _labels(savings: Sequence[Saving], page: Theme) -> dict[str, Any]:
    """The choices at the left, the long ones in fewer letters."""
    labels = [saving.label for saving in savings]
    short = [label.replace("flash attention", "flash attn") for label in labels]
    ticks = {"tickvals": labels, "ticktext": short, "tickfont": {"size": 12, "color": page.ink}}
    return axis(page, type="category", autorange="reversed", **ticks)


def saving_words(saving: Saving) -> str:
    """What a choice changes, for a label: how much, and whether llama.cpp refuses it."""
    size = mib_words(abs(saving.saved))
    told = f"saves {size}" if saving.saved > 0 else f"takes {size} more" if saving.saved else "changes nothing"
    return f"{told}, refused" if saving.refusals else told


def _bars(name: str, sizes: NDArray[np.float64], labels: list[str], marker: dict[str, Any]) -> go.Bar:
    told = f"%{{y}}: {name} %{{x:,.2f}} MiB (%{{customdata:,d}} bytes)<extra></extra>"
    return go.Bar(
        x=sizes / MIB, y=labels, customdata=sizes, orientation="h", name=name, marker=marker, hovertemplate=told
    )


def _entries(names: set[str], page: Theme) -> list[Entry]:
    entries = {
        "takes": swatch("takes", seq_colour(TAKES), page),
        "saves": Entry("saves", mix(page.empty, page.muted, 0.8), "▣"),
        "takes more": swatch("takes more than now", seq_colour(MORE), page, pattern="/"),
    }
    return [entry for name, entry in entries.items() if name in names]


def _told(saving: Saving, page: Theme) -> dict[str, Any]:
    return {
        "text": saving_words(saving),
        "x": 1,
        "xref": "paper",
        "xanchor": "left",
        "xshift": 6,
        "y": saving.label,
        "yref": "y",
        "showarrow": False,
        "font": {"size": SMALL, "color": page.muted if saving.refusals else page.ink},
    }
