"""A start-up log against the planner: every printed size computed again, and what explains it where the two differ."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations

from kvmodel.errors import KVModelError, ParamError
from kvmodel.formats.memlog_lines import LoggedContext, Printed, PrintedPart, read_contexts
from kvmodel.formats.memlog_model import Told, told_by
from kvmodel.formats.memlog_terms import Assumed, Change, Term, changes
from kvmodel.geometry import Geometry
from kvmodel.memory import MemoryPlan, PartMemory, Settings, mib, plan

MAX_TERMS = 4
"""Terms that are tried together; a difference with more causes is told as not explained."""

MAX_EFFORT = 100_000
"""Layers that are planned to explain one log: two thousand plans of an ordinary model, some seconds at most."""


@dataclass(frozen=True)
class LineCheck:
    """One printed cache and the same cache as planned.

    Attributes:
        line: number of the line with the sizes, from 1.
        name: kv, base, swa or recurrent.
        printed: what the log says, MiB.
        computed: what the planner says; None if it has no such cache.
        agrees: whether all printed figures are the computed ones.
        buffers_agree: whether the buffers' sizes add up to the planned one; None if the log names no buffer.
        terms: what explains a difference, each a change; empty if there is none or no explanation.
        told: the finding in a sentence.
    """

    line: int
    name: str
    printed: Printed
    computed: Printed | None
    agrees: bool
    buffers_agree: bool | None
    terms: tuple[Term, ...]
    told: str

    @property
    def explained(self) -> bool:
        """Whether the figures agree or the terms say why they do not."""
        return self.agrees or bool(self.terms)


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
        checks = tuple(_unknown(part) for part in context.parts)
        return Reconciliation(shape, asked, context, None, checks, tuple(missing))
    assumed = Assumed(shape, asked)
    planned = _planned(assumed)
    if planned is None:
        missing.append("These settings cannot be planned for this model: a row is no whole number of blocks.")
    checks = tuple(
        _check(planned, part, _explanation(assumed, planned, context, part, effort)) for part in context.parts
    )
    return Reconciliation(shape, asked, context, planned, checks, tuple(missing))


def _missing(told: Told, geometry: Geometry | None, settings: Settings | None) -> Iterator[str]:
    given = {"model": geometry is not None, "context": settings is not None}
    yield from (words for words in told.missing if not any(f"the {what}" in words for what in given if given[what]))


def _planned(assumed: Assumed) -> MemoryPlan | None:
    try:
        return plan(assumed.geometry, assumed.settings)
    except KVModelError:
        return None


def _unknown(part: PrintedPart) -> LineCheck:
    told = "The log does not say enough to compute this size; name the model."
    return LineCheck(part.line, part.name, part.printed, None, agrees=False, buffers_agree=None, terms=(), told=told)


def _check(planned: MemoryPlan | None, part: PrintedPart, terms: tuple[Term, ...]) -> LineCheck:
    twin = _twin(planned, part)
    agrees = twin is not None and _same(twin, part)
    buffers = _buffers_agree(twin, part) if twin and part.buffers else None
    return LineCheck(
        line=part.line,
        name=part.name,
        printed=part.printed,
        computed=_figures(twin) if twin else None,
        agrees=agrees,
        buffers_agree=buffers,
        terms=terms,
        told=_told(part, twin, terms, agrees=agrees) + (_other_buffers(part) if buffers is False else ""),
    )


def _twin(planned: MemoryPlan | None, part: PrintedPart) -> PartMemory | None:
    """The planned cache that a printed one stands for.

    In January 2025 a recurrent cache goes by no other name, and some forks print a pair as one.
    """
    if planned is None or part.name != "kv" or planned.part("kv") or not planned.parts:
        return planned.part(part.name) if planned else None
    if part.n_seqs is not None and len(planned.parts) > 1:
        return _same_shape(planned, part)
    layers = tuple(layer for each in planned.parts for layer in each.layers)
    return replace(planned.parts[0], name="kv", layers=layers)


def _same_shape(planned: MemoryPlan, part: PrintedPart) -> PartMemory | None:
    """The half with the cells and layers of a line whose log does not say which half it is, None if not one alone."""
    same = [each for each in planned.parts if (each.cells, len(each.layers)) == (part.cells, part.n_layer)]
    return same[0] if len(same) == 1 else None


def _figures(part: PartMemory) -> Printed:
    return Printed(mib(part.total), mib(part.k_bytes), mib(part.v_bytes))


def _same(twin: PartMemory, part: PrintedPart) -> bool:
    """Whether all that is printed of a cache is planned: MiB, cells and types."""
    have = _figures(twin)
    pairs = [
        (part.printed.total, have.total),
        (part.printed.k, have.k),
        (part.printed.v, have.v),
        (part.cells, twin.cells),
        (part.type_k, twin.type_k),
        (part.type_v, twin.type_v),
    ]
    return _layers_agree(twin, part) and all(printed is None or printed == planned for printed, planned in pairs)


def _layers_agree(twin: PartMemory, part: PrintedPart) -> bool:
    """Whether the layers are as many; those without heads may count or not, and of states all the model's layers do."""
    if part.name == "recurrent" or part.n_seqs is None:
        return True
    return part.n_layer in {len(twin.layers), sum(layer.total > 0 for layer in twin.layers)}


def _buffers_agree(twin: PartMemory, part: PrintedPart) -> bool:
    """Whether the buffers add up; each is printed with two decimals, and devices align more coarsely than a CPU."""
    rounding = 0.005 * len(part.buffers) + 256 * 2 * len(twin.layers) / (1 << 20)
    return abs(sum(float(size) for _, size in part.buffers) - twin.buffer_bytes / (1 << 20)) <= rounding


def _other_buffers(part: PrintedPart) -> str:
    return f" Its buffers add up to {sum(float(size) for _, size in part.buffers):.2f} MiB, which is another size."


def _explanation(
    assumed: Assumed, planned: MemoryPlan | None, context: LoggedContext, part: PrintedPart, effort: _Effort
) -> tuple[Term, ...]:
    """The fewest changes, the likeliest of them, after which the planned cache is the printed one."""
    twin = _twin(planned, part)
    if effort.left <= 0 or (twin is not None and _same(twin, part)):
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
    twin = _twin(_planned(assumed), part)
    return twin is not None and _same(twin, part)


def _told(part: PrintedPart, twin: PartMemory | None, terms: tuple[Term, ...], *, agrees: bool) -> str:
    if agrees:
        return f"{part.printed.total} MiB as computed."
    computed = f"{mib(twin.total)} MiB computed" if twin else "no such cache computed"
    reasons = (
        " ".join(term.told for term in terms) or "No term known here explains the difference, nor do several together."
    )
    return f"{part.printed.total} MiB printed, {computed}. {reasons}"
