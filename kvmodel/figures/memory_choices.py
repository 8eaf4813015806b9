"""What each other choice would take, against what is taken now."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.figures.base import SMALL, axis, figure
from kvmodel.figures.entries import Entry, swatch
from kvmodel.figures.memory_lines import budget_line, budget_words, now_line, now_words
from kvmodel.figures.memory_looks import filled, patterned
from kvmodel.figures.palette import Theme, ThemeName, mix, seq_colour
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.texts import MIB
from kvmodel.memory import Saving

ROW = 22
MARGIN = {"l": 244, "r": 176, "t": 22, "b": 30}
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
    total = np.array([saving.total for saving in savings], np.float64)
    saved = np.array([saving.saved for saving in savings], np.float64)
    now = float(total[0] + saved[0]) if savings else 0.0
    labels = [saving.label for saving in savings]
    traces = [
        _bars("takes", np.minimum(total, now), labels, filled(TAKES)),
        _bars("saves", np.maximum(saved, 0), labels, patterned(page.empty, page.muted, ".")),
        _bars("takes more", np.maximum(-saved, 0), labels, filled(MORE, "/")),
    ]
    shown = [trace for trace in traces if np.any(trace.x)]
    most = max([*total.tolist(), now, 1.0]) / MIB * SPARE
    near = budget if budget is not None and budget / MIB <= most else None
    return figure(
        page,
        shown,
        height=ROW * max(len(savings), 1),
        margin=MARGIN,
        entries=_entries({trace.name for trace in shown}, page),
        annotations=[
            now_words(now / MIB, "now", page),
            *(_told(saving, page) for saving in savings),
            *([budget_words(near, page)] if near else []),
        ],
        shapes=[now_line(now / MIB, page), *([budget_line(near, page)] if near else [])],
        barmode="stack",
        bargap=0.3,
        xaxis=axis(
            page, range=[0, most], showgrid=True, gridcolor=page.line, ticksuffix=" MiB", tickformat=",~f", nticks=4
        ),
        yaxis=axis(page, type="category", autorange="reversed", tickfont={"size": 12, "color": page.ink}),
    )


def saving_words(saving: Saving) -> str:
    """What a choice changes, for a label: MiB with two decimals, and whether llama.cpp refuses it."""
    size = f"{abs(saving.saved) / MIB:,.2f} MiB"
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
