"""The parts of a config.json that decide the size of a cache, each in the keys of llama.cpp's converter."""

from typing import Any

from kvmodel.formats.model_config_read import Config
from kvmodel.limits import MAX_HEAD_SIZE, MAX_HEADS
from kvmodel.types import GEMMA3N_OWN_LAYERS

Found = dict[str, Any]

CARRIES_WINDOW = ("cohere2", "exaone4", "gemma2", "gemma3", "gemma3n", "gemma4", "gpt-oss", "olmo2", "phi3")
"""Architectures whose window the converter writes; what llama.cpp makes of it is another matter."""

RECURRENT = ("mamba", "mamba2", "rwkv6", "rwkv7")
ENDLESS = 1 << 20
"""The context length that the converter writes for models that have none."""


def attention(config: Config) -> Found:
    """Heads, head sizes and the context length."""
    keys: Found = {"embedding_length": config.key("embedding_length", high=MAX_HEAD_SIZE)}
    if config.arch in RECURRENT:
        return keys | {"context_length": ENDLESS}
    keys["context_length"] = config.key("context_length", 0)
    keys["attention.head_count"] = heads = config.key("attention.head_count", high=MAX_HEADS)
    keys["attention.head_count_kv"] = _kv_heads(config, heads)
    size = config.key("head size", 0, high=MAX_HEAD_SIZE)
    if size:
        keys["attention.key_length"] = keys["attention.value_length"] = size
    if config.arch == "gemma4":
        keys |= _two_sizes(config)
    return keys


def _kv_heads(config: Config, heads: int) -> int:
    """KV heads of a layer: as given, one if all queries share it, and as many as query heads otherwise."""
    nested = config.get("attn_config")
    if isinstance(nested, dict) and nested.get("kv_n_heads") is not None:
        return Config(nested).number("kv_n_heads", high=MAX_HEADS)
    if config.get("multi_query", default=False) and not config.get("new_decoder_architecture", default=False):
        return 1
    return config.key("attention.head_count_kv", heads, high=MAX_HEADS)


def _two_sizes(config: Config) -> Found:
    """Gemma 4: layers with and without a window differ in head size, and may differ in KV heads."""
    inside = config.number("head_dim", high=MAX_HEAD_SIZE)
    outside = config.number("global_head_dim", inside, high=MAX_HEAD_SIZE)
    few = config.key("attention.head_count_kv", high=MAX_HEADS)
    full = config.number("num_global_key_value_heads", few, high=MAX_HEADS)
    windowed = _windowed(config)
    return {
        "attention.key_length": outside,
        "attention.value_length": outside,
        "attention.key_length_swa": inside,
        "attention.value_length_swa": inside,
        "attention.head_count_kv": [few if has else full for has in windowed],
        "attention.sliding_window_pattern": windowed,
        "attention.shared_kv_layers": config.number("num_kv_shared_layers", 0, high=config.n_layer - 1),
    }


def _windowed(config: Config) -> list[bool]:
    words = config.words("layer_types")
    if words is None:
        raise config.error("layer_types", f"one word for each of the {config.n_layer} layers")
    return [word == "sliding_attention" for word in words]


def latent(config: Config) -> Found:
    """Latent attention, as current converters write it: one head that holds the latent vector."""
    if config.arch != "deepseek2":
        return {}
    rank, rotated = (config.number(name, low=1, high=MAX_HEAD_SIZE) for name in ("kv_lora_rank", "qk_rope_head_dim"))
    return {
        "attention.head_count_kv": 1,
        "attention.kv_lora_rank": rank,
        "attention.key_length": rank + rotated,
        "attention.value_length": rank,
        "attention.key_length_mla": config.number("qk_nope_head_dim", high=MAX_HEAD_SIZE) + rotated,
        "attention.value_length_mla": config.number("v_head_dim", high=MAX_HEAD_SIZE),
        "rope.dimension_count": rotated,
    }


def windows(config: Config) -> Found:
    """The window as llama.cpp takes it, and what it does otherwise than the file says."""
    words = config.words("layer_types")
    keys: Found = {}
    if config.arch in CARRIES_WINDOW:
        if config.get("sliding_window") is not None:
            keys["attention.sliding_window"] = config.number("sliding_window")
    elif config.arch == "llama4" and words is not None and all(word == "full_attention" for word in words):
        keys["attention.sliding_window"] = 0
    elif config.arch != "llama4" and _has_window(config):
        n_swa = config.number("sliding_window")
        config.notes.append(f"The file gives a window of {n_swa:,}, which llama.cpp does not use for {config.arch}.")
    return keys


def _has_window(config: Config) -> bool:
    """Whether the file means its window; some name one and switch it off."""
    return bool(config.get("sliding_window")) and bool(config.get("use_sliding_window", default=True))


def extras(config: Config) -> Found:
    """Distances in the mask, layers for predicting ahead, and the layers that reuse K and V."""
    keys: Found = {}
    nested = config.get("attn_config")
    if config.arch == "mpt" and isinstance(nested, dict) and nested.get("alibi"):
        keys["attention.max_alibi_bias"] = nested.get("alibi_bias_max", 8)
    if config.arch == "jais" and config.get("position_embedding_type") == "alibi":
        keys["attention.max_alibi_bias"] = 8
    ahead = config.number("num_nextn_predict_layers", 0, high=config.n_layer) if config.arch == "glm4moe" else 0
    if ahead:
        keys |= {"block_count": config.n_layer + ahead, "nextn_predict_layers": ahead}
    shared = config.number("num_kv_shared_layers", 0, high=config.n_layer)
    if config.arch == "gemma3n" and config.n_layer - shared != min(GEMMA3N_OWN_LAYERS, config.n_layer):
        config.notes.append(f"The file shares {shared} layers; llama.cpp always lets the first 20 own K and V.")
    return keys
