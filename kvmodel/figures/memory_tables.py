"""The pictures of memory as tables, with the exact bytes."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from kvmodel.errors import ParamError
from kvmodel.figures.memory import By
from kvmodel.figures.memory_growth import columns
from kvmodel.figures.memory_looks import looks
from kvmodel.formats.memlog import Reconciliation
from kvmodel.formats.memlog_checks import LineCheck
from kvmodel.memory import Growth, MemoryPlan, Saving, mib, model_name

CHECK_COLUMNS = ("context", "line", "cache", "printed MiB", "computed MiB", "difference MiB", "explanation")


def memory_table(plan: MemoryPlan, *, by: By = "layer") -> pd.DataFrame:
    """What the caches take; columns of bytes are exact, those of MiB as llama.cpp prints them.

    Args:
        plan: the caches.
        by: one row for each layer of a cache, for each cache, or for each of K and V of a cache with its type.

    Raises:
        ParamError: another way to stack.
    """
    if by == "layer":
        rows = plan.by_layer()
        table = pd.DataFrame(rows, columns=["layer", "cache", "K bytes", "V bytes"])
        return _in_mib(table)
    if by == "cache":
        return _by_cache(plan)
    if by == "type":
        found = [(look, part) for look in looks(plan) if (part := plan.part(look.part))]
        named = [(look.letter, look.type_of(part), part.name, look.of(part)) for look, part in found]
        table = pd.DataFrame(named, columns=["tensor", "type", "cache", "bytes"])
        return table.assign(MiB=_mibs(table["bytes"]))
    raise ParamError("by", by, "layer, cache or type")


def growth_table(growth: Growth) -> pd.DataFrame:
    """One row a value: the setting, K and V of each cache and all buffers in bytes, all buffers in MiB."""
    return pd.DataFrame(columns(growth)).assign(MiB=_mibs(growth.buffer))


def savings_table(savings: Sequence[Saving]) -> pd.DataFrame:
    """One row a choice: what it is, what all buffers take with it, what it saves, what llama.cpp has against it."""
    total = np.array([saving.total for saving in savings], np.int64)
    saved = np.array([saving.saved for saving in savings], np.int64)
    return pd.DataFrame(
        {
            "other choice": [saving.label for saving in savings],
            "MiB": _mibs(total),
            "saves MiB": _mibs(saved),
            "bytes": total,
            "saves bytes": saved,
            "llama.cpp": [" ".join(refusal.reason for refusal in saving.refusals) for saving in savings],
        }
    )


def plans_table(plans: Mapping[str, MemoryPlan], *, budget: int | None = None) -> pd.DataFrame:
    """One row a plan: its name, model and settings, what it takes, and what is left of a budget."""
    rows = [_plan_row(name, plan) for name, plan in plans.items()]
    table = pd.DataFrame(rows)
    if budget is not None:
        table["left MiB"] = _mibs(budget - table["bytes"])
    return table


def checks_table(found: Sequence[Reconciliation]) -> pd.DataFrame:
    """One row a cache of a start-up log: its context, counted from 1, its line, sizes, and the finding in a sentence.

    A size that cannot be computed is missing, as is its difference.
    """
    rows = [_check_row(number, check) for number, one in enumerate(found, 1) for check in one.checks]
    return pd.DataFrame(rows, columns=CHECK_COLUMNS)


def _check_row(context: int, check: LineCheck) -> tuple[object, ...]:
    printed = float(check.printed.total)
    computed = float(check.computed.total) if check.computed else np.nan
    return (context, check.line, check.name, printed, computed, round(printed - computed, 2), check.told)


def _plan_row(name: str, plan: MemoryPlan) -> dict[str, object]:
    asked, sizes = plan.settings, plan.context
    return {
        "name": name,
        "model": model_name(plan.geometry),
        "n_ctx": sizes.n_ctx,
        "slots": asked.n_seq_max,
        "K type": asked.type_k,
        "V type": asked.type_v,
        "flash attention": sizes.flash_attn,
        "version": asked.rules.words,
        "K MiB": float(mib(plan.k_bytes)),
        "V MiB": float(mib(plan.v_bytes)),
        "MiB": float(mib(plan.buffer_bytes)),
        "bytes": plan.buffer_bytes,
    }


def _by_cache(plan: MemoryPlan) -> pd.DataFrame:
    rows = [
        (part.name, part.cells, part.n_stream, len(part.layers), part.type_k, part.type_v, part.k_bytes, part.v_bytes)
        for part in plan.parts
    ]
    names = ["cache", "cells", "streams", "layers", "K type", "V type", "K bytes", "V bytes"]
    return _in_mib(pd.DataFrame(rows, columns=names))


def _in_mib(table: pd.DataFrame) -> pd.DataFrame:
    total = table["K bytes"] + table["V bytes"]
    return table.assign(
        bytes=total,
        **{"K MiB": _mibs(table["K bytes"]), "V MiB": _mibs(table["V bytes"]), "MiB": _mibs(total)},
    )


def _mibs(sizes: Iterable[int]) -> list[float]:
    return [float(mib(int(size))) for size in sizes]
