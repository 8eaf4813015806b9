"""The lines about memory that llama.cpp prints when it makes a context, figure by figure."""

from collections.abc import Iterator

from kvmodel.memory.parts import PartMemory
from kvmodel.memory.plan import MemoryPlan
from kvmodel.memory.settings import Rules
from kvmodel.memory.units import buffer_mib, mib

CONTEXT_FUNCTION = {
    Rules.JANUARY_2025: "llama_init_from_model",
    Rules.MID_2025: "llama_context",
    Rules.STREAMS: "llama_context",
}


def log_lines(plan: MemoryPlan, device: str = "CPU") -> tuple[str, ...]:
    """What the log of that version says about the context's sizes and about every cache.

    Args:
        plan: what to print.
        device: name of the buffers; all layers are taken to be on it.
    """
    lines = [*_context(plan)]
    if plan.settings.rules is Rules.MID_2025 and plan.geometry.kind == "attention":
        lines.append(f"create_memory: n_ctx = {plan.context.n_ctx} (padded)")
    for part in plan.parts:
        lines += _part(plan, part, device)
    return tuple(lines)


def _context(plan: MemoryPlan) -> Iterator[str]:
    rules, sizes = plan.settings.rules, plan.context
    streams = rules is Rules.STREAMS
    values: dict[str, int | str] = {
        "n_seq_max": plan.settings.n_seq_max,
        "n_ctx": sizes.asked if rules is Rules.MID_2025 else sizes.n_ctx,
        "n_ctx_seq" if streams else "n_ctx_per_seq": sizes.n_ctx_seq,
        "n_batch": sizes.n_batch,
        "n_ubatch": sizes.n_ubatch,
    }
    if streams:
        values["flash_attn"] = "enabled" if sizes.flash_attn else "disabled"
        values["kv_unified"] = "true" if plan.settings.kv_unified else "false"
    else:
        values["flash_attn"] = int(sizes.flash_attn)
    for name, value in values.items():
        yield f"{CONTEXT_FUNCTION[rules]}: {name:<13} = {value}"


def _part(plan: MemoryPlan, part: PartMemory, device: str) -> Iterator[str]:
    rules = plan.settings.rules
    if rules is Rules.JANUARY_2025:
        yield from _january(plan, part, device)
    elif part.name == "recurrent":
        yield from _recurrent(plan, part, device)
    else:
        yield from _kv(part, device, streams=rules is Rules.STREAMS)


def _january(plan: MemoryPlan, part: PartMemory, device: str) -> Iterator[str]:
    shift = int(plan.geometry.kind == "attention" and plan.geometry.arch != "deepseek2")
    yield (
        f"llama_kv_cache_init: kv_size = {part.cells}, offload = 1, type_k = '{part.type_k}', "
        f"type_v = '{part.type_v}', n_layer = {plan.geometry.n_layer}, can_shift = {shift}"
    )
    yield f"llama_kv_cache_init: {device:>10} KV buffer size = {buffer_mib(part.buffer_bytes):>8} MiB"
    yield f"llama_init_from_model: KV self size  = {_sizes(part, 'K', 'V')}"


def _recurrent(plan: MemoryPlan, part: PartMemory, device: str) -> Iterator[str]:
    name, n_layer = "llama_memory_recurrent", plan.geometry.n_layer
    if plan.settings.rules is Rules.STREAMS:
        told = f"({part.cells:>6} cells, {n_layer:>3} layers, {part.n_seq_max:>2} seqs)"
        yield f"{name}: {device:>10} RS buffer size = {buffer_mib(part.buffer_bytes):>8} MiB"
        yield f"{name}: size = {_sizes(part, 'R', 'S', told)}"
        return
    yield (
        f"{name}: mem_size = {part.cells}, n_seq_max = {part.n_seq_max}, type_r = '{part.type_k}', "
        f"type_s = '{part.type_v}', n_layer = {n_layer}"
    )
    yield f"{name}: {device:>10} KV buffer size = {buffer_mib(part.buffer_bytes):>8} MiB"
    yield f"{name}: KV self size  = {_sizes(part, 'R', 'S')}"


def _kv(part: PartMemory, device: str, *, streams: bool) -> Iterator[str]:
    name = "llama_kv_cache" if streams else "llama_kv_cache_unified"
    if part.name != "kv":
        half = "non-SWA" if part.name == "base" else "    SWA"
        yield f"{name}_iswa: creating {half} KV cache, size = {part.cells} cells"
    seqs = f"{part.n_seq_max:>2}/{part.n_stream}" if streams else f"{part.n_seq_max:>2}"
    told = f"({part.cells:>6} cells, {len(part.layers):>3} layers, {seqs} seqs)"
    yield f"{name}: {device:>10} KV buffer size = {buffer_mib(part.buffer_bytes):>8} MiB"
    yield f"{name}: size = {_sizes(part, 'K', 'V', told)}"


def _sizes(part: PartMemory, k: str, v: str, told: str = "") -> str:
    whole = f"{mib(part.total):>7} MiB" + (f" {told}" if told else "")
    halves = ((k, part.type_k, part.k_bytes), (v, part.type_v, part.v_bytes))
    return ", ".join([whole, *(f"{letter} ({kind}): {mib(size):>7} MiB" for letter, kind, size in halves)])
