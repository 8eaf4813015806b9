"""The cache and the context of a recorded run, from what its log prints about model, context and memory."""

import re
from typing import Any

from pydantic import ValidationError

from kvmodel.configs import AnyCacheConfig, CacheConfig, ContextConfig, IswaConfig, LegacyConfig, RecurrentConfig
from kvmodel.errors import KVModelError
from kvmodel.formats.debuglog import DebugLog, MemoryLine
from kvmodel.scenario import Scenario, first_problem
from kvmodel.types import get_padding
from tests.replay.live_run import LiveRun
from tests.replay.recording import RecordingError

CHUNKED = {"llama4"}
"""Architectures whose window layers look at chunks; all others have a sliding window."""

NODES_A_TENSOR = 5


def scenario_of(run: LiveRun) -> Scenario:
    """The empty cache of a run in its context, without operations.

    Raises:
        RecordingError: the log does not say enough, or says what no cache can be.
    """
    try:
        return Scenario(
            title=run.path.stem[:120],
            source=f"A recorded run of llama.cpp as in llama-cpp-python {run.version}: {run.path.stem}",
            cache=cache_of(run.log, run.config),
            context=context_of(run.log, run.config),
        )
    except ValidationError as problem:
        raise RecordingError(f"{run.path}: {first_problem(problem)}") from problem
    except (KVModelError, ValueError) as problem:
        raise RecordingError(f"{run.path}: {problem}") from problem


def context_of(log: DebugLog, config: dict[str, Any]) -> ContextConfig:
    """The settings around the cache."""
    nodes = log.settings.get("max_nodes")
    if nodes is None and "n_tensors" in log.settings:
        nodes = max(8192, NODES_A_TENSOR * log.number("n_tensors"))
    return ContextConfig(
        n_batch=log.number("n_batch"),
        n_ubatch=log.number("n_ubatch"),
        defrag_thold=config.get("defrag_thold", -1.0),
        n_max_nodes=nodes,
        causal_attn=log.settings.get("causal_attn", "1") == "1",
    )


def cache_of(log: DebugLog, config: dict[str, Any]) -> AnyCacheConfig:
    """The cache, of whichever kind the memory lines tell of."""
    if not log.memory:
        raise ValueError("the log tells of no cache")
    first = log.memory[0]
    sizes = {"kv_size": first.cells, "n_seq_max": log.number("n_seq_max"), "n_layer": log.number("n_layer")}
    sizes["arch"] = log.settings.get("arch", "llama")
    if first.kind == "memory_recurrent":
        return RecurrentConfig(kind="memory_recurrent", **sizes, **_state_widths(log, first))
    if first.kind == "legacy" and _heads(log) == 0:
        return RecurrentConfig(kind="recurrent", **sizes, **_state_widths(log, first))
    return _attention(log, config, sizes)


def _attention(log: DebugLog, config: dict[str, Any], sizes: dict[str, Any]) -> AnyCacheConfig:
    first = log.memory[0]
    model: dict[str, Any] = {
        "n_head_kv": _heads(log),
        "n_embd_head_k": log.number("n_embd_head_k"),
        "n_embd_head_v": log.number("n_embd_head_v"),
        "type_k": first.type_k,
        "type_v": first.type_v,
        "use_alibi": float(log.settings.get("f_max_alibi_bias", "0")) > 0,
        "rope": log.settings.get("rope type") != "-1",
    }
    flash_attn = log.number("flash_attn") == 1
    if first.kind == "legacy":
        return LegacyConfig(kind="legacy", flash_attn=flash_attn, **sizes, **model)
    model |= {"n_pad": get_padding(flash_attn=flash_attn), "v_trans": not flash_attn}
    if first.part == "kv":
        return CacheConfig(**sizes, **model)
    window = {"n_swa": log.number("n_swa"), "swa_layers": log.window_layers}
    kind = "chunked" if sizes["arch"] in CHUNKED else "standard"
    full = bool(config.get("swa_full", len({line.cells for line in log.memory}) == 1))
    return IswaConfig(kind="iswa", swa_type=kind, swa_full=full, **window, **sizes, **model)


def _heads(log: DebugLog) -> int | tuple[int, ...]:
    """KV heads: one number, or a list of one a layer."""
    printed = log.settings.get("n_head_kv", "")
    return tuple(map(int, re.findall(r"\d+", printed))) if "[" in printed else log.number("n_head_kv")


def _state_widths(log: DebugLog, memory: MemoryLine) -> dict[str, int]:
    """The widths of a state: those of Mamba where the log prints them, else those of RWKV from the row widths."""
    if log.number("ssm_d_inner"):
        return {name: log.number(name) for name in ("ssm_d_conv", "ssm_d_inner", "ssm_d_state")}
    n_embd = log.number("n_embd")
    k, v = memory.widths.get(0, (0, 0))
    return {"n_embd": n_embd, "token_shift_count": k // n_embd, "wkv_head_size": v // n_embd}
