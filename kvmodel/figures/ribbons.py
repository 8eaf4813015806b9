"""Ribbons between two rows of cells: which block of a defrag goes where, and which have gone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvmodel.defrag import DefragPlan
from kvmodel.figures.marks import path
from kvmodel.figures.palette import Theme, mix

BAND = 0.26
"""Height of a row of cells; the plot has height 1 and the moves run between the two rows."""

MAX_RIBBONS = 500
"""Moves drawn at most, from those around the next one; the hover text knows all."""


def ribbons(plan: DefragPlan, n_moved: int | None, page: Theme) -> list[dict[str, Any]]:
    """From each block's place above to its place below: those made full, the next outlined, those to come faint.

    Args:
        plan: the moves.
        n_moved: how many are made; None for a plan as a whole, all alike.
        page: the colours.
    """
    if n_moved is None:
        return _ribbon(plan.moves[:MAX_RIBBONS], page.accent, 1, page.accent, 0.4)
    begin = max(0, min(n_moved - MAX_RIBBONS // 2, len(plan.moves) - MAX_RIBBONS))
    end = begin + MAX_RIBBONS
    return [
        *_ribbon(plan.moves[n_moved + 1 : end], page.accent, 1, page.accent, 0.15, dash="dot"),
        *_ribbon(plan.moves[begin:n_moved], page.accent, 1, page.accent, 0.75),
        *_ribbon(plan.moves[n_moved : n_moved + 1], page.ink, 2.5, mix(page.paper, page.accent, 0.5), 1),
    ]


def _ribbon(
    moves: NDArray[np.int64], line: str, width: float, fill: str, opacity: float, dash: str = "solid"
) -> list[dict[str, Any]]:
    """One shape of many moves (source, destination, length); the fill lets through what lies below."""
    top, bottom = 1 - BAND, BAND
    points = "".join(
        f"M{src - 0.5},{top}L{src + n - 0.5},{top}L{dst + n - 0.5},{bottom}L{dst - 0.5},{bottom}Z"
        for src, dst, n in moves.tolist()
    )
    style = {"fillcolor": fill, "opacity": opacity, "fillrule": "nonzero"}
    return [path(points, line, width, dash=dash) | style] if points else []
