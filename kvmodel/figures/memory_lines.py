"""Lines through pictures of memory: the budget, and what is set now."""

from typing import Any

from kvmodel.figures.base import SMALL
from kvmodel.figures.palette import Theme
from kvmodel.figures.texts import MIB
from kvmodel.memory import bytes_words


def budget_line(budget: int, page: Theme, *, across: bool = False) -> dict[str, Any]:
    """The budget as a dashed line at its MiB: upright, or across for a picture in which bytes grow upward."""
    at = budget / MIB
    ends = {"x0": 0, "x1": 1, "xref": "paper", "y0": at, "y1": at, "yref": "y"}
    if not across:
        ends = {"x0": at, "x1": at, "xref": "x", "y0": 0, "y1": 1, "yref": "paper"}
    return {"type": "line", "name": "budget", **ends, "line": {"color": page.ink, "width": 1.5, "dash": "dash"}}


def budget_words(budget: int, page: Theme, *, across: bool = False, anchor: str = "right") -> dict[str, Any]:
    """What the dashed line is; `anchor` is the end of the words that stands at an upright line."""
    at = budget / MIB
    place = {"x": 0, "xref": "paper", "xanchor": "left", "y": at, "yref": "y", "yanchor": "bottom"}
    if not across:
        place = {"x": at, "xref": "x", "xanchor": anchor, "y": 1, "yref": "paper", "yanchor": "bottom"}
    return _words(f"budget {bytes_words(budget)}", page, **place)


def now_line(at: float, page: Theme) -> dict[str, Any]:
    """The present value as a thin upright line."""
    ends = {"x0": at, "x1": at, "xref": "x", "y0": 0, "y1": 1, "yref": "paper"}
    return {"type": "line", "name": "now", **ends, "line": {"color": page.muted, "width": 1}}


def now_words(at: float, words: str, page: Theme, *, anchor: str = "center") -> dict[str, Any]:
    """What the thin line is; `anchor` is the place in the words that stands at it."""
    return _words(words, page, x=at, xref="x", xanchor=anchor, y=1, yref="paper", yanchor="bottom")


def _words(text: str, page: Theme, **place: Any) -> dict[str, Any]:
    return {"text": text, **place, "showarrow": False, "font": {"size": SMALL, "color": page.ink}}


def axis_title(words: str, page: Theme) -> dict[str, Any]:
    """What an axis counts, in small muted letters."""
    return {"text": words, "font": {"size": SMALL, "color": page.muted}, "standoff": 6}
