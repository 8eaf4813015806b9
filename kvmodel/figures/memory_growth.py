"""How the caches grow with the context, with the slots or with the ubatch."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kvmodel.figures.base import axis, figure
from kvmodel.figures.memory_lines import axis_title, budget_line, budget_words, now_line, now_words
from kvmodel.figures.memory_looks import Look
from kvmodel.figures.palette import ThemeName
from kvmodel.figures.palette import theme as page_of
from kvmodel.figures.texts import MIB
from kvmodel.memory import Growth

HEIGHT = 190
MARGIN = {"l": 62, "r": 16, "t": 22, "b": 44}
TITLES = {"n_ctx": "n_ctx", "n_seq_max": "slots (n_seq_max)", "n_ubatch": "n_ubatch"}
SPARE = 1.08
FEW_MIB = 5
"""An axis this short has ticks between whole numbers."""


def growth_figure(growth: Growth, *, now: int, budget: int | None = None, theme: ThemeName = "light") -> go.Figure:
    """K and V of every cache over one setting, stacked, with the present value and the budget as lines.

    Args:
        growth: what varies, and bytes.
        now: the present value of that setting.
        budget: bytes, a line if given and not far above the curve.
        theme: light or dark.

    Returns:
        A figure with one trace for K and one for V of each cache, in MiB; the bytes are in `customdata`.
    """
    page = page_of(theme)
    shown = [Look(part, half) for part in growth.k for half in ("k", "v") if np.any(_bytes(growth, part, half))]
    top = float(growth.buffer.max(initial=1))
    near = budget if budget and budget <= top * 4 else None
    most = max(top, near or 0) / MIB * SPARE
    return figure(
        page,
        [_area(growth, look) for look in shown],
        height=HEIGHT,
        margin=MARGIN,
        entries=[look.entry(page) for look in shown],
        annotations=[
            now_words(now, f"now {now:,}", page),
            *([budget_words(near, page, across=True)] if near else []),
        ],
        shapes=[now_line(now, page), *([budget_line(near, page, across=True)] if near else [])],
        hovermode="x",
        xaxis=axis(page, title=axis_title(TITLES[growth.field], page), tickformat=",d", nticks=8),
        yaxis=axis(
            page,
            title=axis_title("MiB", page),
            range=[0, most],
            showgrid=True,
            gridcolor=page.line,
            tickformat=ticks(most),
        ),
    )


def ticks(most: float) -> str:
    """How an axis of so many MiB writes its numbers: whole ones, unless few of them would be whole."""
    return ",d" if most > FEW_MIB else ",~r"


def columns(growth: Growth) -> dict[str, NDArray[np.int64]]:
    """The arrays under the names that a table gives them: the setting, K and V of each cache, all buffers."""
    found = {growth.field: growth.values}
    for name in growth.k:
        found |= {f"{name} K bytes": growth.k[name], f"{name} V bytes": growth.v[name]}
    return found | {"bytes": growth.buffer}


def _bytes(growth: Growth, part: str, half: str) -> NDArray[np.int64]:
    return growth.k[part] if half == "k" else growth.v[part]


def _area(growth: Growth, look: Look) -> go.Scatter:
    sizes = _bytes(growth, look.part, look.half).astype(np.float64)
    told = f"{growth.field} %{{x:,}}: {look.name}<br>%{{y:,.2f}} MiB (%{{customdata:,d}} bytes)<extra></extra>"
    return go.Scatter(
        x=growth.values.astype(np.float64),
        y=sizes / MIB,
        customdata=sizes,
        name=look.name,
        stackgroup="bytes",
        mode="lines+markers" if len(growth.values) == 1 else "lines",
        line={"color": look.colour, "width": 1},
        fillcolor=look.colour,
        fillpattern=look.marker["pattern"],
        hovertemplate=told,
    )
