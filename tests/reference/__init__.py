"""The unified cache once more, in slow literal loops over cells; imports nothing of the package under test.

Every function walks cells or tokens one at a time, as the C++ of llama-kv-cache-unified.cpp, llama-kv-cells.h and
llama-batch.cpp does in a release build, so that each line can be held against its counterpart there.
"""

from tests.reference.batch import Refusal, Token, complete, refusal, split_equal, split_seq, split_simple
from tests.reference.cache import Decode, Params, RefCache
from tests.reference.cells import INT32_MAX, INT32_MIN, RefCells
from tests.reference.defrag import fragmentation, move_plan
from tests.reference.mask import bucket, mask_value, why_hidden
from tests.reference.slots import Search, find_slot
from tests.reference.window import Window

__all__ = [
    "INT32_MAX",
    "INT32_MIN",
    "Decode",
    "Params",
    "RefCache",
    "RefCells",
    "Refusal",
    "Search",
    "Token",
    "Window",
    "bucket",
    "complete",
    "find_slot",
    "fragmentation",
    "mask_value",
    "move_plan",
    "refusal",
    "split_equal",
    "split_seq",
    "split_simple",
    "why_hidden",
]
