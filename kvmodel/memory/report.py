"""A plan as text: what each cache takes, what each choice would change, and what llama.cpp refuses."""

from collections.abc import Iterator

from kvmodel.memory.plan import MemoryPlan
from kvmodel.memory.questions import Fit, savings
from kvmodel.memory.refusals import refusals, shift_refusal
from kvmodel.memory.units import bytes_words, mib
from kvmodel.show import Table

CHOICES = ("other choice", "all MiB", "saves MiB", "")


def report(plan: MemoryPlan) -> str:
    """A plan for a terminal: the context, a table of the caches, refusals, and a table of other choices."""
    return "\n".join([plan.card().text(), *_sums(plan), *_against(plan), *_choices(plan)])


def fit_report(fit: Fit) -> str:
    """What a budget allows, in a sentence or two; another one if that is beyond the model's training."""
    if fit.plan is None:
        return f"Nothing fits in {bytes_words(fit.budget)}: {fit.next_n_ctx:,} takes {bytes_words(fit.next_bytes)}."
    told = f"In {bytes_words(fit.budget)} fits n_ctx {fit.n_ctx:,} ({mib(fit.plan.buffer_bytes)} MiB)"
    if not fit.next_n_ctx:
        return f"{told}, the longest that is planned for.{beyond_training(fit)}"
    return f"{told}; {fit.next_n_ctx:,} takes {mib(fit.next_bytes)} MiB.{beyond_training(fit)}"


def beyond_training(fit: Fit) -> str:
    """A sentence, after a space, about a longest context that is beyond the model's training; else nothing."""
    trained = fit.plan.geometry.n_ctx_train if fit.plan else 0
    beyond = f" The longest that fits is beyond the {trained:,} positions that the model was trained on."
    return beyond if 0 < trained < fit.n_ctx else ""


def _sums(plan: MemoryPlan) -> Iterator[str]:
    if plan.parts:
        yield f"Buffers: {bytes_words(plan.buffer_bytes)} ({plan.buffer_bytes:,} bytes)"
        yield f"A token: {plan.bytes_per_token:,} bytes; one more position of n_ctx: {plan.bytes_per_position:,} bytes"


def _against(plan: MemoryPlan) -> Iterator[str]:
    """What llama.cpp has against these settings, and why positions could not be shifted."""
    for found in refusals(plan.geometry, plan.settings):
        yield f"llama.cpp: {found.reason}"
    shift = shift_refusal(plan.geometry, plan.settings)
    if shift is not None:
        yield f"No shift: {shift.reason}"


def _choices(plan: MemoryPlan) -> Iterator[str]:
    other = savings(plan.geometry, plan.settings) if plan.parts else ()
    rows = [(each.label, mib(each.total), mib(each.saved), "refused" if each.refusals else "") for each in other]
    if rows:
        yield "\n" + Table.of(CHOICES, rows).text()
