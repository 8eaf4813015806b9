"""Bytes of the state of one sequence, as a stream and as a file."""

from kvmodel.errors import ParamError, check_int
from kvmodel.limits import MAX_PLAN_CTX
from kvmodel.memory.plan import MemoryPlan, PartMemory
from kvmodel.memory.settings import Rules

U32 = I32 = 4
U64 = 8


def state_bytes(plan: MemoryPlan, n_cells: int) -> int:
    """Bytes of `llama_state_seq_get_data` for a sequence that owns `n_cells` cells of a transformer cache.

    A window half is taken to hold as many of them as it has cells; a recurrent model has one cell a sequence.

    Upstream: `state_write` of the caches in either generation.

    Raises:
        ParamError: the streams rules, which write more than that; or more cells than the cache has.
    """
    if plan.settings.rules is Rules.STREAMS:
        raise ParamError("rules", plan.settings.rules.value, f"{Rules.JANUARY_2025} or {Rules.MID_2025}")
    check_int("n_cells", n_cells, 0, max((part.cells for part in plan.parts if part.name != "recurrent"), default=0))
    return sum(_part(plan, part, n_cells) for part in plan.parts)


def sequence_file_bytes(plan: MemoryPlan, n_cells: int, n_tokens: int) -> int:
    """Bytes of the file that `llama_state_seq_save_file` writes: the same after magic, version and the tokens."""
    check_int("n_tokens", n_tokens, 0, MAX_PLAN_CTX)
    return 3 * U32 + n_tokens * I32 + state_bytes(plan, n_cells)


def _part(plan: MemoryPlan, part: PartMemory, n_cells: int) -> int:
    recurrent = part.name == "recurrent"
    n = 1 if recurrent else min(n_cells, part.cells)
    # Since mid-2025 a transformer cell names its one sequence; before, and in recurrent caches, it names none.
    names_owner = plan.settings.rules is Rules.MID_2025 and not recurrent
    cell = 2 * I32 + I32 * names_owner
    v_head = I32 + (U64 if recurrent or plan.context.flash_attn else 2 * U32)
    return 3 * U32 + n * (cell + part.row_bytes) + len(part.layers) * (I32 + U64 + v_head)
