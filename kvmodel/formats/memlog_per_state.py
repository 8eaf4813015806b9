"""The "MB per state" of 2023: what a version of llama.cpp said of a cache before it made one."""

from kvmodel.formats.memlog_checks import LineCheck
from kvmodel.formats.memlog_fields import number
from kvmodel.formats.memlog_parts import LoggedContext, Printed, PrintedPart
from kvmodel.memory import MemoryPlan, mib

PER_STATE = {26: 682, 32: 1026, 40: 1608, 60: 3124, 80: 5120}
"""MiB by the model's layers until July 2023 (MEM_REQ_KV_SELF in llama.cpp): 2,048 cells of f16, and a margin."""


def per_state_type(context: LoggedContext) -> str:
    """The element type where no line names it: f32 if a state is given twice the size that f16 has, else f16."""
    found = _factor(context)
    return "f32" if found == 2 else "f16"


def per_state(context: LoggedContext, part: PrintedPart, planned: MemoryPlan | None) -> LineCheck:
    """The check of a line about a state.

    Args:
        context: the log.
        part: the line as printed.
        planned: the planned caches, None if there are none.
    """
    printed, own = part.printed.total, mib(planned.total) if planned else None
    factor, n_layer = _factor(context), number(context.model, "n_layer") or 0
    agrees = printed == own or factor is not None
    if printed != own and factor is not None:
        own = f"{PER_STATE[n_layer] * factor:.2f}"
        twice = ", twice as they are f32" if factor == 2 else ""
        told = (
            f"{own} MiB as computed: that version's fixed figure for {n_layer} layers and 2,048 cells{twice}, "
            "whatever n_ctx is."
        )
    elif agrees:
        told = f"{printed} MiB as computed."
    else:
        computed = f"{own} MiB computed" if own else "no size computed"
        told = f"{printed} MiB printed, {computed}. It is neither that nor a fixed figure of its version."
    figures = Printed(own) if own else None
    return LineCheck(part.line, part.name, part.printed, figures, agrees, buffers_agree=None, terms=(), told=told)


def _factor(context: LoggedContext) -> int | None:
    """How many times its table's figure a version prints: 1 for f16, 2 for f32, None if it is not that figure."""
    table = PER_STATE.get(number(context.model, "n_layer") or 0)
    printed = next((float(part.printed.total) for part in context.parts if part.name == "state"), None)
    return next((factor for factor in (1, 2) if table is not None and printed == table * factor), None)
