"""The geometry and the settings that a start-up log tells of."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kvmodel.errors import KVModelError, ParamError
from kvmodel.formats.memlog_lines import LoggedContext
from kvmodel.geometry import MLA, WINDOW_PATTERNS, Geometry, swa_pattern
from kvmodel.ggml import KV_TYPES
from kvmodel.limits import MAX_LAYERS
from kvmodel.memory import Rules, Settings
from kvmodel.types import SWAType

NUMBER = re.compile(r"\d{1,10}", re.ASCII)


@dataclass(frozen=True)
class Told:
    """What a log says of one context, as far as it goes.

    Attributes:
        geometry: the model, None if the log does not describe one.
        settings: of the context; types are those of its first transformer cache.
        missing: what the log does not say, a sentence each.
    """

    geometry: Geometry | None
    settings: Settings | None
    missing: tuple[str, ...]


def told_by(context: LoggedContext) -> Told:
    """Geometry and settings of a logged context."""
    missing: list[str] = []
    found: list[Geometry | Settings | None] = []
    for what, make in (("model", geometry_of), ("context", settings_of)):
        try:
            found.append(make(context))
        except KVModelError as error:
            found.append(None)
            missing.append(f"The log does not describe the {what}: {error}.")
    geometry, settings = found
    return Told(
        geometry if isinstance(geometry, Geometry) else None,
        settings if isinstance(settings, Settings) else None,
        tuple(missing),
    )


def rules_of(context: LoggedContext) -> Rules:
    """The version that wrote a log, by what its lines are called."""
    if context.streams:
        return Rules.STREAMS
    newer = context.padded is not None or any(part.name != "kv" or part.n_seqs for part in context.parts)
    return Rules.MID_2025 if newer or "causal_attn" in context.values else Rules.JANUARY_2025


def settings_of(context: LoggedContext) -> Settings:
    """The settings of a logged context; what it does not print has its default.

    Raises:
        ParamError: the log does not say n_ctx, or a number is out of range.
    """
    values = context.values
    part = next((part for part in context.parts if part.name != "recurrent"), context.parts[0])
    n_ctx = number(values, "n_ctx") or part.cells
    if n_ctx is None:
        raise ParamError("n_ctx", None, "a line that says it")
    streams = max((part.n_stream or 1 for part in context.parts), default=1)
    halves = {half.name: half.cells for half in context.parts}
    return Settings(
        n_ctx=n_ctx,
        n_seq_max=number(values, "n_seq_max") or part.n_seqs or 1,
        n_batch=number(values, "n_batch") or 2048,
        n_ubatch=number(values, "n_ubatch") or 512,
        type_k=part.type_k if part.type_k in KV_TYPES else "f16",
        type_v=part.type_v if part.type_v in KV_TYPES else "f16",
        flash_attn=values.get("flash_attn", "0") not in {"0", "disabled", "false"},
        swa_full="swa" in halves and halves["swa"] == halves.get("base"),
        rules=rules_of(context),
        kv_unified=values.get("kv_unified") == "true" or streams == 1,
    )


def geometry_of(context: LoggedContext) -> Geometry:
    """The model of a logged context.

    Widths of rows are taken where they are printed (n_embd_k_gqa), for one layer or for all; windows from the layers'
    own lines or from what the architecture is known for.

    Raises:
        ParamError: the log does not say n_layer, or a value is out of range.
    """
    model = context.model
    n_layer = number(model, "n_layer")
    if n_layer is None or not 1 <= n_layer <= MAX_LAYERS:
        raise ParamError("n_layer", model.get("n_layer"), f"a whole number from 1 to {MAX_LAYERS}")
    arch = model.get("arch", "llama")
    heads = per_layer(model, "n_head_kv", n_layer)
    states = _states(model)
    ssm = any(states) and not any(heads)
    swa_type, n_swa, windows = _windows(context, arch, n_layer)
    return Geometry(
        n_layer,
        heads,
        _head_sizes(model, "k", heads),
        _head_sizes(model, "v", heads),
        name=model.get("general.name", "n/a"),
        arch=arch,
        swa_type=swa_type,
        n_swa=n_swa,
        swa_layers=windows,
        n_layer_kv_from_start=20 if arch == "gemma3n" and n_layer > 20 else None,
        mla=_mla(model),
        recurrent_layers=ssm or tuple(any(states) and not count for count in heads),
        n_embd_r=states[0],
        n_embd_s=states[1],
        n_ctx_train=number(model, "n_ctx_train") or 0,
        rope=model.get("rope type", "0") != "-1",
    )


def number(values: Mapping[str, str], name: str) -> int | None:
    """A whole number as printed, None if there is none."""
    found = NUMBER.fullmatch(values.get(name, ""))
    return int(found[0]) if found else None


def per_layer(values: Mapping[str, str], name: str, n_layer: int) -> tuple[int, ...]:
    """A value of each layer: printed once if it is the same for all, else as a list in brackets; 0 if not printed.

    Raises:
        ParamError: the list has not one entry for each layer.
    """
    found = [int(digits) for digits in NUMBER.findall(values.get(name, "0"))] or [0]
    if len(found) not in {1, n_layer}:
        raise ParamError(name, f"a list of {len(found)}", f"one entry for each of the {n_layer} layers")
    return tuple(found) if len(found) == n_layer else (found[0],) * n_layer


def _head_sizes(model: Mapping[str, str], which: str, heads: tuple[int, ...]) -> tuple[int, ...]:
    sizes = per_layer(model, f"n_embd_head_{which}", len(heads))
    rows = f"n_embd_{which}_gqa"
    if rows not in model:
        return sizes
    widths = per_layer(model, rows, len(heads))
    return tuple(
        width // count if count and width % count == 0 else size
        for width, count, size in zip(widths, heads, sizes, strict=True)
    )


def _states(model: Mapping[str, str]) -> tuple[int, int]:
    """Elements of the states of Mamba (`n_embd_r` and `n_embd_s` in llama-hparams.cpp); others print no sizes."""
    conv, inner, state = (number(model, f"ssm_{name}") or 0 for name in ("d_conv", "d_inner", "d_state"))
    groups = number(model, "ssm_n_group") or 0
    return max(conv - 1, 0) * (inner + 2 * groups * state), inner * state


def _windows(context: LoggedContext, arch: str, n_layer: int) -> tuple[SWAType, int, tuple[bool, ...] | None]:
    n_swa = number(context.model, "n_swa") or 0
    kind, pattern = WINDOW_PATTERNS.get(arch, (SWAType.STANDARD, 1))
    logged = tuple(context.windows[:n_layer])
    windows = logged if len(logged) == n_layer else swa_pattern(n_layer, pattern)
    if not n_swa or not any(windows):
        return SWAType.NONE, n_swa, None
    return kind, n_swa, windows


def _mla(model: Mapping[str, str]) -> MLA | None:
    """Latent attention, if the model's tensors are split for it: then the heads printed are those of the latent."""
    latent, split = number(model, "n_lora_kv"), number(model, "n_embd_head_k_mla")
    return MLA(latent, number(model, "n_rot") or 0) if latent and split else None
