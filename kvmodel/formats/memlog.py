"""A start-up log against the planner: every printed size computed again, and what explains it where the two differ."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations

from kvmodel.errors import KVModelError, ParamError
from kvmodel.formats.memlog_change import Assumed, Change, Term
from kvmodel.formats.memlog_checks import LineCheck, check, same, twin_of, unknown
from kvmodel.formats.memlog_lines import read_contexts
from kvmodel.formats.memlog_model import Told, told_by
from kvmodel.formats.memlog_parts import LoggedContext, PrintedPart
from kvmodel.formats.memlog_per_state import per_state
from kvmodel.formats.memlog_terms import changes
from kvmodel.geometry import Geometry
from kvmodel.memory import MemoryPlan, Settings, plan

MAX_TERMS = 4
"""Terms that are tried together; a difference with more causes is told as not explained."""

MAX_EFFORT = 100_000
"""Layers that are planned to explain one log: two thousand plans of an ordinary model, some seconds at most."""


@dataclass(frozen=True)
class Reconciliation:
    """One context of a log.

    Attributes:
        geometry: what the sizes were computed from; None if neither the log nor the caller describes a model.
        settings: the same for the context.
        logged: the context as printed.
        plan: what the planner makes of them; None if there is no geometry or no plan.
        checks: one for each printed cache.
        missing: what keeps sizes from being computed, a sentence each.
    """

    geometry: Geometry | None
    settings: Settings | None
    logged: LoggedContext
    plan: MemoryPlan | None
    checks: tuple[LineCheck, ...]
    missing: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether every printed figure is the computed one."""
        return all(check.agrees for check in self.checks)


def reconcile(
    source: str | bytes, geometry: Geometry | None = None, settings: Settings | None = None
) -> tuple[Reconciliation, ...]:
    """Compute the memory lines of a log again.

    Args:
        source: a log, or the part of it from the start of the model's loading on.
        geometry: what the model is taken to be; left out, what the log says of it.
        settings: what the context was taken to be asked for; left out, what the log says.

    Returns:
        One for each context in the log, in order.

    Raises:
        ParamError: the log is too large, or there is no line about memory in it.
    """
    contexts = read_contexts(source)
    if not contexts:
        raise ParamError("log", "without a line about the size of a cache", "a log that llama.cpp wrote at its start")
    effort = _Effort()
    return tuple(_reconciled(context, geometry, settings, effort) for context in contexts)


@dataclass
class _Effort:
    """What is left of the layers that may be planned for a log's explanations."""

    left: int = MAX_EFFORT

    def spend(self, n_layer: int) -> bool:
        """Take one plan's layers; False if they are not left."""
        self.left -= n_layer
        return self.left >= 0


def _reconciled(
    context: LoggedContext, geometry: Geometry | None, settings: Settings | None, effort: _Effort
) -> Reconciliation:
    told = told_by(context)
    shape, asked = geometry or told.geometry, settings or told.settings
    missing = list(_missing(told, geometry, settings))
    if shape is None or asked is None:
        checks = tuple(unknown(part) for part in context.parts)
        return Reconciliation(shape, asked, context, None, checks, tuple(missing))
    assumed = Assumed(shape, asked)
    planned = _planned(assumed)
    if planned is None:
        missing.append("These settings cannot be planned for this model: a row is no whole number of blocks.")
    stateless = told.stateless if geometry is None else None
    checks = tuple(_checked(assumed, planned, context, part, stateless, effort) for part in context.parts)
    return Reconciliation(shape, asked, context, planned, checks, tuple(missing))


def _checked(
    assumed: Assumed,
    planned: MemoryPlan | None,
    context: LoggedContext,
    part: PrintedPart,
    stateless: str | None,
    effort: _Effort,
) -> LineCheck:
    if part.name == "state":
        return per_state(context, part, planned)
    if stateless is not None and _holds_states(assumed.geometry, part):
        return unknown(part, f"The size of a state is not known: {stateless}.")
    return check(planned, part, _explanation(assumed, planned, context, part, effort))


def _holds_states(geometry: Geometry, part: PrintedPart) -> bool:
    """Whether a printed cache is that of the recurrent layers; in January 2025 it goes by no other name."""
    return part.name == "recurrent" or (part.name == "kv" and geometry.kind == "recurrent")


def _missing(told: Told, geometry: Geometry | None, settings: Settings | None) -> Iterator[str]:
    given = {"model": geometry is not None, "context": settings is not None}
    yield from (words for words in told.missing if not any(f"the {what}" in words for what in given if given[what]))


def _planned(assumed: Assumed) -> MemoryPlan | None:
    try:
        return plan(assumed.geometry, assumed.settings)
    except KVModelError:
        return None


def _explanation(
    assumed: Assumed, planned: MemoryPlan | None, context: LoggedContext, part: PrintedPart, effort: _Effort
) -> tuple[Term, ...]:
    """The fewest changes, the likeliest of them, after which the planned cache is the printed one."""
    twin = twin_of(planned, part)
    if effort.left <= 0 or (twin is not None and same(twin, part)):
        return ()
    possible = changes(assumed, context, part)
    for chosen in chain.from_iterable(combinations(possible, n) for n in range(1, MAX_TERMS + 1)):
        if len({change.term.name for change in chosen}) < len(chosen):
            continue
        if not effort.spend(assumed.geometry.n_layer):
            return ()
        if _explains(assumed, chosen, part):
            return tuple(change.term for change in chosen)
    return ()


def _explains(assumed: Assumed, chosen: tuple[Change, ...], part: PrintedPart) -> bool:
    try:
        for change in chosen:
            assumed = change.made(assumed)
    except KVModelError:
        return False
    cells = next((change.cells for change in chosen if change.cells is not None), None)
    twin = twin_of(_planned(assumed), part, cells)
    return twin is not None and same(twin, part)
