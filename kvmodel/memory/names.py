"""What to call a model where there is room for a few words: files name themselves as they like."""

from kvmodel.geometry import Geometry
from kvmodel.markdown import cut, one_line

MOST_NAME = 80
"""Characters of a name that are shown: the longest known model has half as many."""


def shown(words: str) -> str:
    """Words out of a file on one line, without signs that do not print, and no longer than a label may be."""
    return cut(one_line(words[: 8 * MOST_NAME]), MOST_NAME)


def model_name(geometry: Geometry) -> str:
    """A model's name for a label, a sentence or a table."""
    return shown(geometry.name)
