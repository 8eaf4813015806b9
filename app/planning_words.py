"""What the Memory page says: the answer, the facts of a model, and what to do about a refusal."""

from kvmodel.errors import KVModelError, ParamError
from kvmodel.geometry import Geometry
from kvmodel.markdown import cut
from kvmodel.memory import ContextSizes, Fit, MemoryPlan, Refusal, Rules, Settings, bytes_words, model_name
from kvmodel.types import SWAType
from kvmodel.words import count, joined

OUTCOMES = {
    "refused": "llama.cpp refuses this.",
    "aborts": "llama.cpp would end here.",
    "wrong": "llama.cpp would compute wrong results.",
}


MOST_VALUE = 120
"""Characters of a wrong value that are shown: files may hold thousands."""


def problem_words(problem: KVModelError) -> str:
    """What is wrong, a long value cut so that what is allowed stays in sight."""
    if isinstance(problem, ParamError) and isinstance(problem.value, str):
        return str(ParamError(cut(problem.field, MOST_VALUE), cut(problem.value, MOST_VALUE), problem.allowed))
    return str(problem)


def verdict(plan: MemoryPlan, budget: int, refused: tuple[Refusal, ...] = (), *, beside: bool = False) -> str:
    """Whether the caches fit, by how much, and whether llama.cpp makes them at all.

    Args:
        plan: the caches.
        budget: bytes that there are for them.
        refused: what llama.cpp has against them.
        beside: whether the budget is what other things leave.
    """
    size = plan.buffer_bytes
    if not plan.parts:
        return f"{model_name(plan.geometry)} is an encoder and has no cache"
    spare = budget - size
    room = f"they take {bytes_words(size)} of {bytes_words(budget)}{' beside the weights' if beside else ''}"
    answer = f"Yes, the caches fit: {room}, {bytes_words(spare)} are left"
    if spare < 0:
        answer = f"No, the caches do not fit: {room}, {bytes_words(-spare)} too much"
    return f"It does not run. {answer}" if refused else answer


def longest(fit: Fit) -> str:
    """The longest context that fits, for a metric."""
    if fit.plan is None:
        return "none"
    return f"{fit.n_ctx:,}" if fit.next_n_ctx else "any"


def remedy(refusal: Refusal, settings: Settings) -> str:
    """What to change so that a refusal goes away."""
    letter = refusal.field[-1].upper()
    return {
        "v_needs_flash": "Turn flash attention on, or keep V in f16.",
        "block": f"Choose f16 for {letter}.",
        "too_many_sequences": f"Ask for at most {settings.rules.max_seq} slots.",
        "unknown_arch": "Choose a later version.",
        "overflow": "Choose a later version or a shorter context.",
    }.get(refusal.kind, "")


def refusal_words(refusal: Refusal, settings: Settings) -> str:
    """What llama.cpp does, why, and what to change."""
    return f"{OUTCOMES[refusal.outcome]} {refusal.reason} {remedy(refusal, settings)}".strip()


def facts(geometry: Geometry) -> str:
    """The shape of a model in a line."""
    heads = {size for size in geometry.heads if size}
    shown = [geometry.arch, count(geometry.n_layer, "layer")]
    if len(heads) == 1:
        sizes = sorted(set(geometry.head_sizes_k) | set(geometry.head_sizes_v))
        shown.append(f"{count(heads.pop(), 'KV head')} of {joined([str(size) for size in sizes])}")
    if geometry.mla is not None:
        shown.append(f"latent attention of {geometry.mla.n_embd_k}")
    if geometry.swa_type is not SWAType.NONE:
        shown.append(f"{sum(geometry.windows)} layers with a window of {geometry.n_swa:,}")
    if any(geometry.recurrent):
        shown.append(f"{sum(geometry.recurrent)} recurrent")
    shared = geometry.n_layer - (geometry.n_layer_kv_from_start or geometry.n_layer)
    if shared:
        shown.append(f"{shared} that reuse K and V")
    if geometry.n_ctx_train:
        shown.append(f"trained on {geometry.n_ctx_train:,} positions")
    return ", ".join(shown) + "."


def share(sizes: ContextSizes, settings: Settings) -> str:
    """What each slot gets of n_ctx."""
    padded = f" (padded to {sizes.n_ctx:,})" if sizes.n_ctx != sizes.asked else ""
    if settings.n_seq_max == 1:
        return f"One slot with all {sizes.asked:,} positions{padded}."
    if settings.rules is Rules.STREAMS and settings.kv_unified:
        return f"{settings.n_seq_max} slots share {sizes.asked:,} positions{padded} as they need them."
    return (
        f"{settings.n_seq_max} slots share {sizes.asked:,} positions{padded}: {sizes.n_ctx_seq:,} each. For "
        f"{sizes.asked:,} each, ask for {sizes.asked * settings.n_seq_max:,}."
    )


def batches(sizes: ContextSizes, settings: Settings) -> str:
    """What the context makes of n_batch and n_ubatch; nothing if it leaves n_ubatch as it is."""
    if sizes.n_ubatch >= settings.n_ubatch:
        return ""
    why = "at most n_batch, which is at most n_ctx" if sizes.n_batch < settings.n_batch else "at most n_batch"
    return f"n_ubatch is cut to {sizes.n_ubatch:,}: it is {why}."
