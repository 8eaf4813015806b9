"""Which choices llama.cpp refuses, for which reason, and what becomes of those that it does not check."""

from collections.abc import Iterator
from dataclasses import dataclass

from kvmodel.geometry import Geometry
from kvmodel.ggml import GGMLType
from kvmodel.memory.architectures import KNOWN
from kvmodel.memory.context import UINT32, ContextSizes, context_sizes, stays_on
from kvmodel.memory.plan import widths
from kvmodel.memory.settings import KeptMLA, Rules, Settings

REFUSED, ABORTS, WRONG = "refused", "aborts", "wrong"
"""No context is made; the process ends; nothing is checked and the results are wrong."""


@dataclass(frozen=True)
class Refusal:
    """One choice that does not work.

    Attributes:
        kind: v_needs_flash, block, too_many_sequences, unknown_arch, overflow or shift.
        outcome: refused, aborts or wrong.
        field: the setting at fault.
        reason: the rule and how it is broken, a sentence.
        where: upstream's function that holds the rule.
    """

    kind: str
    outcome: str
    field: str
    reason: str
    where: str


def refusals(geometry: Geometry, settings: Settings) -> tuple[Refusal, ...]:
    """Everything that keeps these settings from working with this model, in the order in which llama.cpp meets it."""
    rules = (_unknown_arch, _v_needs_flash, _too_many_sequences, _blocks, _overflow)
    return tuple(found for rule in rules for found in rule(geometry, settings))


def shift_refusal(geometry: Geometry, settings: Settings) -> Refusal | None:
    """Why positions cannot be shifted with these settings, None if they can.

    Upstream: `can_shift` in `llama_kv_cache_init` (0.3.7), `get_can_shift` of the caches (0.3.11).
    """
    reason = _shift_reason(geometry, settings)
    where = "llama_kv_cache_init" if settings.rules is Rules.JANUARY_2025 else "get_can_shift"
    return Refusal("shift", ABORTS, "rules", reason, where) if reason else None


def _shift_reason(geometry: Geometry, settings: Settings) -> str:
    if geometry.kind == "none":
        return "An encoder has no cache, so there is nothing to shift."
    if settings.rules is Rules.JANUARY_2025:
        return _in_january(geometry)
    if settings.rules is Rules.STREAMS and geometry.kind != "recurrent":
        if geometry.mrope:
            return f"Positions of {geometry.arch} have several dimensions, and only one can be shifted."
        if geometry.arch == "step35":
            return "Layers of step35 rotate different numbers of elements, and a shift knows only one."
    return _uneven_pair(context_sizes(geometry, settings))


def _in_january(geometry: Geometry) -> str:
    if geometry.kind != "attention":
        return "The cache of a recurrent model cannot be shifted in 0.3.7."
    return "Keys of latent attention (deepseek2) cannot be shifted in 0.3.7." if geometry.arch == "deepseek2" else ""


def _uneven_pair(sizes: ContextSizes) -> str:
    if sizes.cells == sizes.window_cells:
        return ""
    return (
        f"The window half has {sizes.window_cells:,} cells and the other {sizes.cells:,}; a pair is shifted only if "
        "both have as many: with swa_full, or with a context no longer than the window."
    )


def _unknown_arch(geometry: Geometry, settings: Settings) -> Iterator[Refusal]:
    known = KNOWN.get(settings.rules)
    if known is not None and geometry.arch not in known:
        reason = f"llama.cpp of {settings.rules.words} does not know the architecture {geometry.arch}."
        yield Refusal("unknown_arch", REFUSED, "rules", reason, "llama_model::load_arch")


def _v_needs_flash(geometry: Geometry, settings: Settings) -> Iterator[Refusal]:
    if geometry.kind == "none" or not settings.ggml_v.is_quantized or stays_on(geometry, settings):
        return
    why = "which is off"
    if settings.flash_attn and geometry.arch == "grok":
        why = "which grok does not allow"
    elif settings.flash_attn:
        why = "which 0.3.7 turns off where K and V heads differ in size"
    reason = f"A quantised V ({settings.type_v}) needs flash attention, {why}."
    yield Refusal("v_needs_flash", REFUSED, "type_v", reason, "llama_init_from_model")


def _too_many_sequences(_: Geometry, settings: Settings) -> Iterator[Refusal]:
    most = settings.rules.max_seq
    if most is not None and settings.n_seq_max > most:
        reason = f"A context has {most} sequences at most (LLAMA_MAX_SEQ); {settings.n_seq_max} are asked for."
        yield Refusal("too_many_sequences", REFUSED, "n_seq_max", reason, "llama_context")


def _blocks(geometry: Geometry, settings: Settings) -> Iterator[Refusal]:
    if geometry.kind not in {"attention", "hybrid"}:
        return
    for which, kind in (("k", settings.ggml_k), ("v", settings.ggml_v)):
        odd = next((size for size in _heads(geometry, settings, which) if size % kind.block), None)
        if odd is not None:
            yield _block_refusal(settings, which, kind, odd)


def _heads(geometry: Geometry, settings: Settings, which: str) -> tuple[int, ...]:
    """Head sizes of the layers with K and V, as these settings keep them."""
    if geometry.mla is not None and settings.kept_mla is not KeptMLA.HEADS:
        if which == "k":
            return (geometry.mla.n_embd_k,)
        return (geometry.mla.n_embd_v,) if settings.kept_mla is KeptMLA.LATENT_TWICE else ()
    sizes = geometry.head_sizes_k if which == "k" else geometry.head_sizes_v
    return tuple(size for size, heads in zip(sizes, geometry.heads, strict=True) if heads)


def _block_refusal(settings: Settings, which: str, kind: GGMLType, size: int) -> Refusal:
    rule = f"A {which.upper()} head has {size} elements, and {kind.name} stores blocks of {kind.block}"
    checked = settings.rules is Rules.STREAMS and settings.flash_attn
    outcome, told = WRONG, "; this version does not check that, and reads heads from the wrong place."
    if settings.rules is Rules.JANUARY_2025:
        outcome, told = ABORTS, ": the head has to be a whole number of blocks."
    elif checked:
        outcome, told = REFUSED, ": the head has to be a whole number of blocks."
    return Refusal("block", outcome, f"type_{which}", rule + told, "llama_init_from_model")


def _overflow(geometry: Geometry, settings: Settings) -> Iterator[Refusal]:
    """In 0.3.7 the elements of a layer are counted in 32 bits."""
    if settings.rules is not Rules.JANUARY_2025 or geometry.kind not in {"attention", "hybrid"}:
        return
    sizes = context_sizes(geometry, settings)
    elements = max(max(pair) for pair in widths(geometry, settings, flash_attn=sizes.flash_attn)) * sizes.cells
    if elements > UINT32:
        reason = f"A layer would have {elements:,} elements; 0.3.7 counts them in 32 bits and takes the rest of that."
        yield Refusal("overflow", WRONG, "n_ctx", reason, "llama_kv_cache_init")
