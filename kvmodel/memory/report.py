"""A plan as text: what each cache takes, what each choice would change, and what llama.cpp refuses."""

from collections.abc import Iterator, Sequence

from kvmodel.memory.lines import mib
from kvmodel.memory.plan import MemoryPlan
from kvmodel.memory.questions import Fit, savings
from kvmodel.memory.refusals import refusals, shift_refusal
from kvmodel.memory.units import bytes_words

Row = tuple[str, ...]


def report(plan: MemoryPlan) -> str:
    """A plan for a terminal: the context, a table of the caches, refusals, and a table of other choices."""
    geometry, settings = plan.geometry, plan.settings
    lines = [f"{geometry.name} ({geometry.arch}), {geometry.n_layer} layers", *_context(plan), ""]
    lines += _table(("cache", "cells", "layers", "K MiB", "V MiB", "all MiB"), _caches(plan))
    lines += ["", *_sums(plan)]
    against = [found.reason for found in refusals(geometry, settings)]
    lines += [f"llama.cpp: {reason}" for reason in against]
    shift = shift_refusal(geometry, settings)
    lines += [f"No shift: {shift.reason}"] if shift else []
    other = savings(geometry, settings)
    if other:
        rows = [(each.label, mib(each.total), mib(each.saved), "refused" if each.refusals else "") for each in other]
        lines += ["", *_table(("other choice", "all MiB", "saves MiB", ""), rows)]
    return "\n".join(lines)


def fit_report(fit: Fit) -> str:
    """What a budget allows, in a sentence or two."""
    if fit.plan is None:
        return f"Nothing fits in {bytes_words(fit.budget)}: {fit.next_n_ctx:,} takes {bytes_words(fit.next_bytes)}."
    told = f"In {bytes_words(fit.budget)} fits n_ctx {fit.n_ctx:,} ({bytes_words(fit.plan.buffer_bytes)})"
    if not fit.next_n_ctx:
        return f"{told}, the longest that is planned for."
    return f"{told}; {fit.next_n_ctx:,} takes {bytes_words(fit.next_bytes)}."


def _context(plan: MemoryPlan) -> Iterator[str]:
    sizes, settings = plan.context, plan.settings
    padded = "" if sizes.n_ctx == sizes.asked else f" (padded from {sizes.asked:,})"
    slots = f"{settings.n_seq_max} sequence{'s' if settings.n_seq_max > 1 else ''} of {sizes.n_ctx_seq:,}"
    flash = "on" if sizes.flash_attn else "off"
    yield f"n_ctx {sizes.n_ctx:,}{padded}, {slots}, n_ubatch {sizes.n_ubatch}, flash attention {flash}"
    yield f"rules of llama.cpp {settings.rules.words}"


def _caches(plan: MemoryPlan) -> list[Row]:
    return [
        (
            part.name,
            f"{part.cells:,}" + (f" x {part.n_stream}" if part.n_stream > 1 else ""),
            str(len(part.layers)),
            f"{mib(part.k_bytes)} {part.type_k}",
            f"{mib(part.v_bytes)} {part.type_v}",
            mib(part.total),
        )
        for part in plan.parts
    ]


def _sums(plan: MemoryPlan) -> Iterator[str]:
    if not plan.parts:
        yield "An encoder: llama.cpp gives it no cache."
        return
    yield f"Buffers: {bytes_words(plan.buffer_bytes)} ({plan.buffer_bytes:,} bytes)"
    yield f"A token: {plan.bytes_per_token:,} bytes; one more position of n_ctx: {plan.bytes_per_position:,} bytes"


def _table(head: Row, rows: Sequence[Row]) -> Iterator[str]:
    """Columns as wide as they need, the first one aligned left and numbers right."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        yield "  ".join(cells).rstrip()
