"""The pictures of memory in one sentence each, for those who do not see them."""

from collections.abc import Mapping, Sequence

from kvmodel.figures.memory_choices import saving_words
from kvmodel.memory import Growth, MemoryPlan, Saving, bytes_words, mib_words, model_name
from kvmodel.words import count


def describe_memory(plan: MemoryPlan) -> str:
    """What the caches take, in one sentence."""
    if not plan.parts:
        return f"{model_name(plan.geometry)} has no cache."
    parts = ", ".join(
        f"{part.name} {mib_words(part.total)} in {count(len(part.layers), 'layer')}" for part in plan.parts
    )
    return f"Stacked bars of what the caches of {model_name(plan.geometry)} take: {parts}."


def describe_savings(savings: Sequence[Saving]) -> str:
    """What the choice that saves most does, in one sentence."""
    allowed = [saving for saving in savings if not saving.refusals and saving.saved > 0]
    bars = f"Bars of {count(len(savings), 'other choice')}"
    if not allowed:
        return f"{bars}, none of which saves memory."
    best = max(allowed, key=lambda saving: saving.saved)
    return f"{bars}, of which {best.label} saves most: it {saving_words(best)}."


def describe_growth(growth: Growth) -> str:
    """From where to where the caches grow, in one sentence."""
    first, last = int(growth.values[0]), int(growth.values[-1])
    sizes = [bytes_words(int(growth.buffer[at])) for at in (0, -1)]
    return f"A curve from {sizes[0]} at {growth.field} {first:,} to {sizes[1]} at {last:,}."


def describe_plans(plans: Mapping[str, MemoryPlan]) -> str:
    """What each plan takes, in one sentence."""
    told = ", ".join(f"{name} takes {bytes_words(plan.buffer_bytes)}" for name, plan in plans.items())
    return f"Stacked bars of {count(len(plans), 'plan')}: {told}."
