"""One printed cache beside the planned one: which it stands for, whether all figures agree, and what to say of it."""

from dataclasses import dataclass, replace

from kvmodel.formats.memlog_change import Term
from kvmodel.formats.memlog_parts import Printed, PrintedPart
from kvmodel.memory import MemoryPlan, PartMemory, mib

MIB = 1 << 20

ROUNDING = 0.0051
"""MiB by which a figure of two decimals may be off."""

UNKNOWN = "The log does not say enough to compute this size; name the model."


@dataclass(frozen=True)
class LineCheck:
    """One printed cache and the same cache as planned.

    Attributes:
        line: number of the line with the sizes, from 1.
        name: kv, base, swa or recurrent; state for an estimate that versions of 2023 print.
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


def unknown(part: PrintedPart, told: str = UNKNOWN) -> LineCheck:
    """The check of a cache that nothing can be computed for."""
    return LineCheck(part.line, part.name, part.printed, None, agrees=False, buffers_agree=None, terms=(), told=told)


def check(planned: MemoryPlan | None, part: PrintedPart, terms: tuple[Term, ...]) -> LineCheck:
    """A printed cache against the planned ones.

    Args:
        planned: the planned caches, None if there is no plan.
        part: the cache as printed.
        terms: what explains a difference.
    """
    twin = twin_of(planned, part)
    agrees = twin is not None and same(twin, part)
    buffers = _buffers_agree(twin, part) if twin and (part.buffers or part.vram) else None
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


def twin_of(planned: MemoryPlan | None, part: PrintedPart, cells: int | None = None) -> PartMemory | None:
    """The planned cache that a printed one stands for, None if there is none.

    In January 2025 a recurrent cache goes by no other name, and some forks print a pair as one.

    Args:
        planned: the planned caches, None if there is no plan.
        part: the cache as printed.
        cells: cells to give it in place of those planned.
    """
    twin = _named(planned, part)
    if twin is None or cells is None:
        return twin
    held = (replace(each, k_bytes=each.k_row * cells, v_bytes=each.v_row * cells) for each in twin.layers)
    return replace(twin, cells=cells, layers=tuple(held))


def _named(planned: MemoryPlan | None, part: PrintedPart) -> PartMemory | None:
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


def same(twin: PartMemory, part: PrintedPart) -> bool:
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
    if not part.buffers:
        return _whole_tensors(twin, float(part.vram or 0))
    rounding = ROUNDING * len(part.buffers) + 256 * 2 * len(twin.layers) / MIB
    return abs(sum(float(size) for _, size in part.buffers) - twin.buffer_bytes / MIB) <= rounding


def _whole_tensors(twin: PartMemory, vram: float) -> bool:
    """Whether a share on a GPU is that of some layers' K and V, all of them or only the halves of one kind."""
    k, v = (sum(sizes) / MIB for sizes in zip(*((each.k_bytes, each.v_bytes) for each in twin.layers), strict=True))
    n_layer = len(twin.layers)
    shares = [whole * n / n_layer for whole in (k, v, k + v) for n in range(n_layer + 1)]
    return any(abs(vram - share) <= ROUNDING for share in shares)


def _other_buffers(part: PrintedPart) -> str:
    if not part.buffers:
        return f" Of it {part.vram} MiB are on a GPU, which is not the size of whole layers."
    return f" Its buffers add up to {sum(float(size) for _, size in part.buffers):.2f} MiB, which is another size."


def _told(part: PrintedPart, twin: PartMemory | None, terms: tuple[Term, ...], *, agrees: bool) -> str:
    if agrees:
        return f"{part.printed.total} MiB as computed."
    computed = f"{mib(twin.total)} MiB computed" if twin else "no such cache computed"
    reasons = (
        " ".join(term.told for term in terms) or "No term known here explains the difference, nor do several together."
    )
    return f"{part.printed.total} MiB printed, {computed}. {reasons}"
