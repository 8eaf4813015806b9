"""Bytes of the state of one sequence, as a stream and as a file."""

from kvmodel.errors import ParamError, check_int
from kvmodel.limits import MAX_PLAN_CTX
from kvmodel.memory.parts import PartMemory
from kvmodel.memory.plan import MemoryPlan
from kvmodel.memory.settings import Rules

U32 = I32 = 4
U64 = 8


def state_bytes(plan: MemoryPlan, n_cells: int, n_window: int | None = None) -> int:
    """Bytes of `llama_state_seq_get_data` for one sequence.

    Args:
        plan: the caches.
        n_cells: cells that the sequence owns; a recurrent cache has one for it whatever is given.
        n_window: those it owns in a window half; left out, as many as can be.

    Upstream: `state_write` of the caches in either generation.

    Raises:
        ParamError: the streams rules, which write more than that; or more cells than there are.
    """
    if plan.settings.rules is Rules.STREAMS:
        raise ParamError("rules", plan.settings.rules.value, f"{Rules.JANUARY_2025} or {Rules.MID_2025}")
    check_int("n_cells", n_cells, 0, plan.context.cells)
    owned = {"swa": n_cells if n_window is None else check_int("n_window", n_window, 0, n_cells), "recurrent": 1}
    return sum(_part(plan, part, min(owned.get(part.name, n_cells), part.cells)) for part in plan.parts)


def sequence_file_bytes(plan: MemoryPlan, n_cells: int, n_tokens: int, n_window: int | None = None) -> int:
    """Bytes of the file of `llama_state_seq_save_file`: magic, version, the tokens with their number, the state."""
    check_int("n_tokens", n_tokens, 0, MAX_PLAN_CTX)
    return 3 * U32 + n_tokens * I32 + state_bytes(plan, n_cells, n_window)


def _part(plan: MemoryPlan, part: PartMemory, n: int) -> int:
    recurrent = part.name == "recurrent"
    # Since mid-2025 a transformer cell names its one sequence; before, and in recurrent caches, it names none.
    names_owner = plan.settings.rules is Rules.MID_2025 and not recurrent
    cell = 2 * I32 + I32 * names_owner
    v_head = I32 + (U64 if recurrent or plan.context.flash_attn else 2 * U32)
    return 3 * U32 + n * (cell + part.row_bytes) + len(part.layers) * (I32 + U64 + v_head)
