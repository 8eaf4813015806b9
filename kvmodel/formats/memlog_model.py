"""The geometry and the settings that a start-up log tells of."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvmodel.errors import KVModelError, ParamError
from kvmodel.formats.memlog_fields import NUMBER, keys_of, number, per_layer
from kvmodel.formats.memlog_parts import LoggedContext, PrintedPart
from kvmodel.formats.memlog_per_state import per_state_type
from kvmodel.formats.memlog_states import states_of
from kvmodel.formats.memlog_windows import windows_of
from kvmodel.geometry import MLA, Geometry
from kvmodel.ggml import KV_TYPES
from kvmodel.hparams.keys import Keys
from kvmodel.hparams.shape import own_layers
from kvmodel.hparams.states import RECURRENT
from kvmodel.limits import MAX_LAYERS
from kvmodel.memory import Rules, Settings


@dataclass(frozen=True)
class Told:
    """What a log says of one context, as far as it goes.

    Attributes:
        geometry: the model, None if the log does not describe one.
        settings: of the context; types are those of its first transformer cache.
        missing: what the log does not say, a sentence each.
        stateless: why the size of recurrent states is not known, None if it is or there are none.
    """

    geometry: Geometry | None
    settings: Settings | None
    missing: tuple[str, ...]
    stateless: str | None = None


def told_by(context: LoggedContext) -> Told:
    """Geometry and settings of a logged context."""
    missing: list[str] = []
    geometry = settings = stateless = None
    try:
        geometry, stateless = _model_of(context)
    except KVModelError as error:
        missing.append(f"The log does not describe the model: {error}.")
    try:
        settings = settings_of(context)
    except KVModelError as error:
        missing.append(f"The log does not describe the context: {error}.")
    if stateless is not None:
        missing.append(f"The log does not give the model's state sizes: {stateless}.")
    return Told(geometry, settings, tuple(missing), stateless)


def rules_of(context: LoggedContext) -> Rules:
    """The version that wrote a log, by what its lines are called."""
    if context.streams:
        return Rules.STREAMS
    newer = context.padded is not None or any(part.name != "kv" or part.n_seqs for part in context.caches)
    return Rules.MID_2025 if newer or "causal_attn" in context.values else Rules.JANUARY_2025


def settings_of(context: LoggedContext) -> Settings:
    """The settings of a logged context; what it does not print has its default.

    Raises:
        ParamError: the log does not say n_ctx, or a number is out of range.
    """
    values = context.values
    parts = context.caches or context.parts
    part = next((part for part in parts if part.name != "recurrent"), parts[0])
    n_ctx = number(values, "n_ctx") or number(context.model, "n_ctx") or part.cells or _cells_of_all(context, part)
    if n_ctx is None:
        raise ParamError("n_ctx", None, "a line that says it")
    unsaid = per_state_type(context)
    streams = max((part.n_stream or 1 for part in context.parts), default=1)
    halves = {half.name: half.cells for half in context.parts}
    return Settings(
        n_ctx=n_ctx,
        n_seq_max=number(values, "n_seq_max") or part.n_seqs or 1,
        n_batch=number(values, "n_batch") or 2048,
        n_ubatch=number(values, "n_ubatch") or 512,
        type_k=part.type_k if part.type_k in KV_TYPES else unsaid,
        type_v=part.type_v if part.type_v in KV_TYPES else unsaid,
        flash_attn=values.get("flash_attn", "0") not in {"0", "disabled", "false"},
        swa_full="swa" in halves and halves["swa"] == halves.get("base"),
        rules=rules_of(context),
        kv_unified=values.get("kv_unified") == "true" or streams == 1,
    )


def geometry_of(context: LoggedContext) -> Geometry:
    """The model of a logged context.

    Widths of rows are taken where they are printed (n_embd_k_gqa), for one layer or for all; windows from the layers'
    own lines or from what the architecture is known for. Where no head size is printed it is n_embd / n_head, the rule
    of the versions that print none.

    Raises:
        ParamError: the log does not say n_layer or the heads, or a value is out of range.
    """
    return _model_of(context)[0]


def _model_of(context: LoggedContext) -> tuple[Geometry, str | None]:
    """The model, and why the sizes of its states are not known, None if they are."""
    model, keys = context.model, keys_of(context)
    if "block_count" not in keys:
        raise ParamError("n_layer", model.get("n_layer"), f"a whole number from 1 to {MAX_LAYERS}")
    n_layer = keys.n_layer()
    states = states_of(keys, _heads(context, keys, n_layer))
    heads = states.heads
    own = own_layers(keys, n_layer)
    swa_type, n_swa, windows = windows_of(context, keys, n_layer, own)
    geometry = Geometry(
        n_layer,
        heads,
        _head_sizes(model, keys, "k", heads),
        _head_sizes(model, keys, "v", heads),
        name=model.get("general.name", "n/a"),
        arch=keys.arch,
        swa_type=swa_type,
        n_swa=n_swa,
        swa_layers=windows,
        n_layer_kv_from_start=own,
        mla=_mla(model),
        n_ctx_train=keys.number("context_length", 0),
        rope=model.get("rope type", "0") != "-1",
        recurrent_layers=states.layers,
        n_embd_r=states.of_each(states.n_embd_r),
        n_embd_s=states.of_each(states.n_embd_s),
    )
    return geometry, states.missing


def _heads(context: LoggedContext, keys: Keys, n_layer: int) -> tuple[int, ...]:
    """KV heads of each layer; the oldest logs give them as query heads for each of them (n_gqa), or are as many."""
    if keys.arch in RECURRENT:
        return (0,) * n_layer
    if NUMBER.search(context.model.get("n_head_kv", "")):
        return per_layer(context.model, "n_head_kv", n_layer)
    if "attention.head_count_kv" in keys:
        return keys.per_layer("attention.head_count_kv", n_layer)
    if "attention.head_count" not in keys:
        raise ParamError("n_head_kv", context.model.get("n_head_kv"), "a line that says it")
    shared = number(context.model, "n_gqa") or 1
    return tuple(count // shared for count in keys.per_layer("attention.head_count", n_layer))


def _cells_of_all(context: LoggedContext, part: PrintedPart) -> int | None:
    """The cells of one layer where the first versions print those of all of them (n_mem)."""
    n_layer = number(context.model, "n_layer")
    return part.n_mem // n_layer if part.n_mem and n_layer else None


def _head_sizes(model: Mapping[str, str], keys: Keys, which: str, heads: tuple[int, ...]) -> tuple[int, ...]:
    sizes = _sizes(keys, {"k": "key", "v": "value"}[which], len(heads))
    rows = f"n_embd_{which}_gqa"
    if rows not in model and any(count and not size for count, size in zip(heads, sizes, strict=True)):
        raise ParamError(f"n_embd_head_{which}", model.get(f"n_embd_head_{which}"), "a line that says it, or n_embd")
    if rows in model:
        widths = per_layer(model, rows, len(heads))
        sizes = tuple(
            width // count if count and width % count == 0 else size
            for width, count, size in zip(widths, heads, sizes, strict=True)
        )
    return sizes


def _sizes(keys: Keys, which: str, n_layer: int) -> tuple[int, ...]:
    if f"attention.{which}_length" in keys:
        return keys.per_layer(f"attention.{which}_length", n_layer)
    n_embd = keys.number("embedding_length", 0)
    query = keys.per_layer("attention.head_count", n_layer, 0)
    return tuple(n_embd // count if count else 0 for count in query)


def _mla(model: Mapping[str, str]) -> MLA | None:
    """Latent attention, if the model's tensors are split for it: then the heads printed are those of the latent."""
    latent, split = number(model, "n_lora_kv"), number(model, "n_embd_head_k_mla")
    return MLA(latent, number(model, "n_rot") or 0) if latent and split else None
