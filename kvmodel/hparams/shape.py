"""From the keys of a model to its geometry, as `llama_model::load_hparams` in llama-model.cpp reads them."""

from collections.abc import Iterable, Mapping
from typing import Any

from kvmodel.errors import ParamError
from kvmodel.geometry import MLA, Geometry
from kvmodel.hparams.keys import Keys
from kvmodel.hparams.states import BOTH, EVERY_FEW, RECURRENT, recurrent_layers, state_sizes
from kvmodel.hparams.windows import ignored_window, window
from kvmodel.limits import MAX_HEAD_SIZE, MAX_HEADS
from kvmodel.types import GEMMA3N_OWN_LAYERS, SWAType

WITHOUT_CACHE = (
    "bert",
    "dream",
    "eurobert",
    "gemma-embedding",
    "jina-bert-v2",
    "jina-bert-v3",
    "llada",
    "llada-moe",
    "modern-bert",
    "neo-bert",
    "nomic-bert",
    "nomic-bert-moe",
    "rnd1",
    "wavtokenizer-dec",
)
"""Architectures that `create_memory` gives no cache."""

WITHOUT_ROPE = (
    "arwkv7",
    "bloom",
    "gpt2",
    "gptj",
    "jais",
    "jamba",
    "jina-bert-v2",
    "mamba",
    "mamba2",
    "mpt",
    "nemotron_h",
    "nemotron_h_moe",
    "refact",
    "rwkv6",
    "rwkv6qwen2",
    "rwkv7",
    "t5",
    "t5encoder",
    "wavtokenizer-dec",
)
"""Architectures whose keys are not rotated (`llama_model_rope_type`)."""

MROPE = ("paddleocr", "qwen2vl", "qwen35", "qwen35moe", "qwen3vl", "qwen3vlmoe")
"""Architectures whose positions have several dimensions."""

ALIBI = ("bloom", "jina-bert-v2", "refact")
"""Architectures that always subtract distances in the mask; mpt and jais say so in the file."""

BAICHUAN_ALIBI_LAYERS = 40
"""The one size of baichuan that subtracts distances, told by its layers."""


ARCH_ALLOWED = "a name of at most 64 letters, such as llama"


def from_keys(
    arch: str, values: Mapping[str, Any], *, name: str = "model", source: str = "", notes: Iterable[str] = ()
) -> Geometry:
    """The geometry of a model.

    Args:
        arch: llama.cpp's name of the architecture (`general.architecture`).
        values: its keys without the architecture's name in front, such as `attention.head_count`: a whole number,
            or one for each layer.
        name: what to call the model.
        source: where the numbers stand.
        notes: what else a reader should know.

    Raises:
        ParamError: a key is missing, has the wrong type or a value that is not allowed.
    """
    keys = Keys(arch, values)
    n_layer = keys.n_layer()
    latent = "attention.key_length_mla" in keys and "attention.value_length_mla" in keys
    found = window(keys, n_layer)
    heads, recurrent = _heads(keys, n_layer, latent=latent)
    n_embd_r, n_embd_s = state_sizes(keys) if any(recurrent) else (0, 0)
    size_k, size_v = _head_sizes(keys, n_layer, found.layers if found else None, latent=latent)
    return Geometry(
        n_layer,
        heads,
        size_k,
        size_v,
        name=name,
        arch=arch,
        swa_type=found.kind if found else SWAType.NONE,
        n_swa=found.n_swa if found else 0,
        swa_layers=found.layers if found else None,
        n_layer_kv_from_start=own_layers(keys, n_layer),
        mla=_mla(keys) if latent else None,
        recurrent_layers=recurrent,
        n_embd_r=tuple(n_embd_r if keeps else 0 for keeps in recurrent),
        n_embd_s=tuple(n_embd_s if keeps else 0 for keeps in recurrent),
        n_ctx_train=keys.number("context_length", 0),
        rope=arch not in WITHOUT_ROPE,
        mrope=arch in MROPE,
        use_alibi=_alibi(keys, n_layer),
        has_cache=arch not in WITHOUT_CACHE,
        source=source,
        notes=(*notes, *filter(None, [ignored_window(keys)])),
    )


def _heads(keys: Keys, n_layer: int, *, latent: bool) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """KV heads of each layer, 0 where it has no K and V, and which layers are recurrent."""
    if keys.arch in RECURRENT:
        return (0,) * n_layer, (True,) * n_layer
    query = keys.per_layer("attention.head_count", n_layer, high=MAX_HEADS)
    # A latent cache is stored as one head; the heads that it stands for are the query's.
    same = latent or "attention.head_count_kv" not in keys
    given = query if same else keys.per_layer("attention.head_count_kv", n_layer, high=MAX_HEADS)
    recurrent = recurrent_layers(keys, n_layer, given)
    if keys.arch in EVERY_FEW:
        given = tuple(0 if keeps else count for keeps, count in zip(recurrent, given, strict=True))
    if keys.arch in BOTH and not all(given):
        raise keys.error("attention.head_count_kv", "at least one head in each layer")
    return given, recurrent


def _head_sizes(
    keys: Keys, n_layer: int, windows: tuple[bool, ...] | None, *, latent: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Elements of one K head and of one V head of each layer."""
    if latent:
        pair = [keys.number(f"attention.{name}_length_mla", high=MAX_HEAD_SIZE) for name in ("key", "value")]
        return (pair[0],) * n_layer, (pair[1],) * n_layer
    if keys.arch in RECURRENT:
        return (0,) * n_layer, (0,) * n_layer
    query = keys.per_layer("attention.head_count", n_layer, high=MAX_HEADS)[0]
    return _sizes(keys, "key", query, n_layer, windows), _sizes(keys, "value", query, n_layer, windows)


def _sizes(keys: Keys, which: str, query: int, n_layer: int, windows: tuple[bool, ...] | None) -> tuple[int, ...]:
    key = f"attention.{which}_length"
    size = keys.number(key, 0, high=MAX_HEAD_SIZE)
    if key not in keys and query:
        size = keys.number("embedding_length", low=1) // query
    inside = keys.number(f"{key}_swa", size, high=MAX_HEAD_SIZE)
    return tuple(inside if has else size for has in windows or (False,) * n_layer)


def _mla(keys: Keys) -> MLA:
    """The latent vector of a cell; the widths that the file gives K and V must be those it leads to."""
    mla = MLA(
        keys.number("attention.kv_lora_rank", low=1, high=MAX_HEAD_SIZE),
        keys.number("rope.dimension_count", high=MAX_HEAD_SIZE),
    )
    for key, size in (("attention.key_length", mla.n_embd_k), ("attention.value_length", mla.n_embd_v)):
        if keys.number(key, size) != size:
            raise keys.error(key, f"{size}, which attention.kv_lora_rank and rope.dimension_count lead to")
    return mla


def own_layers(keys: Keys, n_layer: int) -> int | None:
    """Layers from the first on that own K and V; None if all of them do (`n_layer_kv_from_start`).

    Raises:
        ParamError: a key has a value that is not allowed.
    """
    if keys.arch == "gemma3n":
        return min(GEMMA3N_OWN_LAYERS, n_layer)
    if keys.arch == "gemma4":
        others = keys.number("attention.shared_kv_layers", 0, high=n_layer - 1)
    else:
        others = keys.number("nextn_predict_layers", 0, high=n_layer - 1)
    return n_layer - others if others else None


def _alibi(keys: Keys, n_layer: int) -> bool:
    if keys.arch == "baichuan":
        return n_layer == BAICHUAN_ALIBI_LAYERS
    return keys.arch in ALIBI or keys.positive("attention.max_alibi_bias")


def check_arch(arch: object) -> str:
    """An architecture's name as it may stand in a file.

    Raises:
        ParamError: it is no short text of printable letters.
    """
    if not isinstance(arch, str) or not 0 < len(arch) <= 64 or not arch.isprintable():
        shown = arch if not isinstance(arch, str) else arch[:64]
        raise ParamError("general.architecture", shown, ARCH_ALLOWED)
    return arch
