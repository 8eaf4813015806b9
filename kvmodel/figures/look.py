"""What more a map of cells can show: clicks, a window, the marks of a beat, what differs."""

from dataclasses import dataclass
from typing import TypedDict

from numpy.typing import ArrayLike

from kvmodel.beats import Marks
from kvmodel.figures.window import Window


class Looks(TypedDict, total=False):
    """The further arguments of `cells_figure`, all optional.

    Attributes:
        clickable: whether each of at most 4,096 squares is a point that can be clicked (`clicks.cell_clicked`).
        window: draw only the cells [first, first + n), given as (first, n).
        marks: what a beat points at.
        differs: indices of cells to mark as different from another cache.
    """

    clickable: bool
    window: Window | None
    marks: Marks | None
    differs: ArrayLike | None


@dataclass(frozen=True, eq=False)
class Look:
    """The same with their defaults."""

    clickable: bool = True
    window: Window | None = None
    marks: Marks | None = None
    differs: ArrayLike | None = None
