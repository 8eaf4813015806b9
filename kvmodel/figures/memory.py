"""Where the memory of a plan goes: stacked bars by layer, by cache or by type, and plans side by side."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from kvmodel.errors import ParamError
from kvmodel.figures.base import SMALL, axis, figure
from kvmodel.figures.grid import PLOT_WIDTH
from kvmodel.figures.memory_lines import axis_title, budget_line, budget_words
from kvmodel.figures.memory_looks import WORDS, Look, looks
from kvmodel.figures.palette import Theme, ThemeName
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.texts import MIB
from kvmodel.memory import MemoryPlan, mib_words

By = Literal["layer", "cache", "type"]

HEIGHT, ROW = 170, 34
"""Pixels of the plot of layers, and of a bar that lies."""

MARGIN = {"l": 52, "r": 12, "t": 14, "b": 44}
LYING = {"l": 104, "r": 110, "t": 22, "b": 38}
MOST_PLANS = 4
SPARE = 1.06
"""Room of an axis behind the longest bar."""


def memory_figure(plan: MemoryPlan, *, by: By = "layer", theme: ThemeName = "light") -> go.Figure:
    """What the caches take, K and V stacked.

    Args:
        plan: the caches.
        by: a bar for each layer, for each cache (kv; base and swa; recurrent) or for each element type of K and of V.
        theme: light or dark.

    Returns:
        A figure with one trace for K and one for V of each cache, in MiB; the bytes are in `customdata`.

    Raises:
        ParamError: another way to stack.
    """
    page = page_of(theme)
    if by == "layer":
        return _standing(plan, page)
    if by == "cache":
        return _rows(_of_caches(plan), looks(plan), page, None)
    if by == "type":
        return _rows(_of_types(plan), looks(plan), page, None)
    raise ParamError("by", by, "layer, cache or type")


def plans_figure(
    plans: Mapping[str, MemoryPlan], *, budget: int | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """Plans below each other, K and V of every cache stacked.

    Args:
        plans: what to call each, and the caches; at most four.
        budget: bytes, a line if given.
        theme: light or dark.

    Raises:
        ParamError: no plan, or more than four.
    """
    if not 1 <= len(plans) <= MOST_PLANS:
        raise ParamError("number of plans", len(plans), f"a number from 1 to {MOST_PLANS}")
    rows = {
        name: {look: look.of(part) for look in looks(plan) if (part := plan.part(look.part))}
        for name, plan in plans.items()
    }
    return _rows(rows, looks(*plans.values()), page_of(theme), budget)


def _of_caches(plan: MemoryPlan) -> dict[str, dict[Look, int]]:
    shown = looks(plan)
    return {
        WORDS[part.name] or "K and V": {look: look.of(part) for look in shown if look.part == part.name}
        for part in plan.parts
    }


def _of_types(plan: MemoryPlan) -> dict[str, dict[Look, int]]:
    rows: dict[str, dict[Look, int]] = {}
    for look in looks(plan):
        if part := plan.part(look.part):
            rows.setdefault(f"{look.letter} in {look.type_of(part)}", {})[look] = look.of(part)
    return rows


def _standing(plan: MemoryPlan, page: Theme) -> go.Figure:
    shown = looks(plan)
    return figure(
        page,
        [_layer_bars(plan, look) for look in shown],
        height=HEIGHT,
        margin=MARGIN,
        entries=[look.entry(page) for look in shown],
        barmode="stack",
        bargap=0.18,
        xaxis=axis(page, title=axis_title("layer", page), rangemode="tozero"),
        yaxis=axis(page, title=axis_title("MiB", page), showgrid=True, gridcolor=page.line, tickformat=",~r"),
    )


def _layer_bars(plan: MemoryPlan, look: Look) -> go.Bar:
    part = plan.part(look.part)
    layers = part.layers if part else ()
    sizes = np.array([layer.k_bytes if look.half == "k" else layer.v_bytes for layer in layers], np.float64)
    indices = np.array([layer.il for layer in layers], np.int32)
    told = f"layer %{{x}}: {look.name}<br>%{{y:,.2f}} MiB (%{{customdata:,d}} bytes)<extra></extra>"
    return go.Bar(x=indices, y=sizes / MIB, customdata=sizes, name=look.name, marker=look.marker, hovertemplate=told)


def _rows(rows: Mapping[str, Mapping[Look, int]], shown: Sequence[Look], page: Theme, budget: int | None) -> go.Figure:
    """One lying bar a row, its sum at the right."""
    sums = {name: sum(sizes.values()) for name, sizes in rows.items()}
    most = max(chain(sums.values(), [budget or 0, 1])) / MIB
    return figure(
        page,
        [_row_bars(rows, look) for look in shown],
        height=ROW * max(len(rows), 1),
        margin=LYING,
        width=PLOT_WIDTH,
        entries=[look.entry(page) for look in shown],
        annotations=[
            *(_sum(name, size, page) for name, size in sums.items()),
            *([budget_words(budget, page)] if budget else []),
        ],
        shapes=[budget_line(budget, page)] if budget else [],
        barmode="stack",
        bargap=0.25,
        uniformtext={"minsize": SMALL, "mode": "hide"},
        xaxis=axis(
            page,
            range=[0, most * SPARE],
            showgrid=True,
            gridcolor=page.line,
            ticksuffix=" MiB",
            tickformat=",~f",
            nticks=6,
        ),
        yaxis=axis(page, type="category", autorange="reversed", tickfont={"size": 13, "color": page.ink}),
    )


def _row_bars(rows: Mapping[str, Mapping[Look, int]], look: Look) -> go.Bar:
    sizes = np.array([row.get(look, 0) for row in rows.values()], np.float64)
    told = f"%{{y}}: {look.name}<br>%{{x:,.2f}} MiB (%{{customdata:,d}} bytes)<extra></extra>"
    return go.Bar(
        x=sizes / MIB,
        y=list(rows),
        customdata=sizes,
        orientation="h",
        name=look.name,
        marker=look.marker,
        text=[f"{look.letter} {mib_words(int(size)).removesuffix(' MiB')}" if size else "" for size in sizes],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"color": look.ink, "size": SMALL},
        hovertemplate=told,
    )


def _sum(name: str, size: int, page: Theme) -> dict[str, Any]:
    return {
        "text": mib_words(size),
        "x": 1,
        "xref": "paper",
        "xanchor": "left",
        "xshift": 6,
        "y": name,
        "yref": "y",
        "showarrow": False,
        "font": {"size": 13, "color": page.ink},
    }
