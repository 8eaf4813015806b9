"""One query and one cell at a time: visible or not, and why (`set_input_kq_mask`, `set_input_pos_bucket`)."""

import math

import numpy as np

from tests.reference.cells import RefCells
from tests.reference.window import Window

HIDDEN = -math.inf
MAX_DISTANCE = 128


def why_hidden(cells: RefCells, i: int, pos: int, seq: int, window: Window, causal: bool) -> str:
    """The first rule that hides cell i from a query; `visible` if none does."""
    if cells.is_empty(i):
        return "empty"
    if seq not in cells.seqs[i]:
        return "other_seq"
    if causal and cells.pos[i] > pos:
        return "future"
    if window.hides(cells.pos[i], pos):
        return "outside"
    return "visible"


def mask_value(cells: RefCells, i: int, pos: int, why: str, alibi: bool) -> float:
    """What is added to the attention score: 0, or minus the distance with ALiBi, or -inf."""
    if why != "visible":
        return HIDDEN
    return float(np.float32(-abs(cells.pos[i] - pos))) if alibi else 0.0


def bucket(cell_pos: int, pos: int, n_buckets: int) -> int:
    """The bucket of a distance, looking back only; single precision where the C++ has it."""
    exact = n_buckets // 2
    distance = -min(cell_pos - pos, 0)
    if distance < exact:
        return distance
    log_share = np.float32(math.log(float(np.float32(distance / exact))))
    far = exact + float(log_share * np.float32(n_buckets - exact)) / math.log(MAX_DISTANCE / exact)
    return min(math.floor(np.float32(far)), n_buckets - 1)
