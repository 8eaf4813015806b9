"""What a window shows to a query, in words."""

from kvmodel.limits import INT32_MAX
from kvmodel.snapshot import PartSnapshot
from kvmodel.types import SWAType
from kvmodel.words import positions


def window_of(part: PartSnapshot) -> tuple[SWAType, int]:
    """Type and length of the window of a part; recurrent caches have none."""
    return getattr(part.params, "swa_type", SWAType.NONE), getattr(part.params, "n_swa", 0)


def shown(part: PartSnapshot, query_pos: int, *, causal: bool = True) -> str:
    """The window and the positions that it shows to a query, if causal up to its own."""
    swa_type, n_swa = window_of(part)
    end = query_pos + 1 if causal else INT32_MAX
    if swa_type is SWAType.CHUNKED:
        return f"the chunk of {n_swa:,} shows {positions(query_pos // n_swa * n_swa, end)}"
    return f"the window of {n_swa:,} shows {positions(max(query_pos - n_swa + 1, 0), end)}"
