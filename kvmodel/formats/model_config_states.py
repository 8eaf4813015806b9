"""The recurrent part of a config.json in the keys of llama.cpp's converter: mamba, hybrids, rwkv."""

from collections.abc import Callable
from typing import Any

from kvmodel.formats.model_config_read import Config
from kvmodel.limits import MAX_HEAD_SIZE, MAX_HEADS

Found = dict[str, Any]


def states(config: Config) -> Found:
    """Sizes of the states and KV heads of the layers, empty for an architecture without states."""
    reader = READERS.get(config.arch)
    return reader(config) if reader else {}


def _ssm(d_conv: int, d_inner: int, d_state: int, n_group: int = 0) -> Found:
    keys = {"ssm.conv_kernel": d_conv, "ssm.inner_size": d_inner, "ssm.state_size": d_state}
    return keys | ({"ssm.group_count": n_group} if n_group else {})


def _size(config: Config, *names: str, default: int | None = None) -> int:
    """The first of several fields that is there."""
    for name in names:
        if config.get(name) is not None:
            return config.number(name, high=MAX_HEAD_SIZE)
    return config.number(names[0], default, high=MAX_HEAD_SIZE)


def _mamba(config: Config) -> Found:
    inner = _size(config, "intermediate_size", "d_inner", default=2 * config.key("embedding_length"))
    return _ssm(
        _size(config, "conv_kernel", "d_conv", default=4), inner, _size(config, "state_size", "d_state", default=16)
    )


def _mamba2(config: Config) -> Found:
    width = config.key("embedding_length")
    inner = _size(config, "intermediate_size", "d_inner", default=_size(config, "expand", default=2) * width)
    d_state = _size(config, "state_size", "d_state", default=128)
    return _ssm(
        _size(config, "conv_kernel", "d_conv", default=4),
        inner,
        d_state,
        _size(config, "n_groups", "ngroups", default=1),
    )


def _jamba(config: Config) -> Found:
    period, offset = config.number("attn_layer_period", low=1), config.number("attn_layer_offset")
    inner = config.number("mamba_expand", high=64) * config.key("embedding_length", high=MAX_HEAD_SIZE)
    keys = _ssm(_size(config, "mamba_d_conv"), inner, _size(config, "mamba_d_state"))
    return keys | _kv(config, [il % period == offset for il in range(config.n_layer)])


def _falcon_h1(config: Config) -> Found:
    inner = _size(
        config, "mamba_d_ssm", default=_size(config, "mamba_expand", default=2) * config.key("embedding_length")
    )
    return _ssm(
        _size(config, "mamba_d_conv"), inner, _size(config, "mamba_d_state"), _size(config, "mamba_n_groups", default=1)
    )


def _granite(config: Config) -> Found:
    words = config.words("layer_types") or ["mamba"] * config.n_layer
    inner = config.number("mamba_expand", 2, high=64) * config.key("embedding_length", high=MAX_HEAD_SIZE)
    keys = _ssm(
        _size(config, "mamba_d_conv"), inner, _size(config, "mamba_d_state"), _size(config, "mamba_n_groups", default=1)
    )
    return keys | _kv(config, [word == "attention" for word in words])


def _lfm2(config: Config) -> Found:
    words, numbers = config.words("layer_types"), config.layers("full_attn_idxs")
    if words is None and numbers is None:
        raise config.error("layer_types", f"one word for each of the {config.n_layer} layers, or full_attn_idxs")
    full = (
        [word == "full_attention" for word in words]
        if words
        else [il in set(numbers or ()) for il in range(config.n_layer)]
    )
    return {"shortconv.l_cache": config.number("conv_L_cache", low=1, high=MAX_HEAD_SIZE), **_kv(config, full)}


def _delta_net(config: Config) -> Found:
    d_state, groups = _size(config, "linear_key_head_dim"), _size(config, "linear_num_key_heads")
    inner = _size(config, "linear_value_head_dim") * _size(config, "linear_num_value_heads")
    interval = config.number("full_attention_interval", 4, low=1)
    keys = _ssm(_size(config, "linear_conv_kernel_dim"), inner, d_state, groups)
    return keys | {"full_attention_interval": interval}


def _nemotron_h(config: Config) -> Found:
    pattern = config.get("hybrid_override_pattern")
    if not isinstance(pattern, (str, list)) or len(pattern) != config.n_layer:
        raise config.error("hybrid_override_pattern", f"one letter for each of the {config.n_layer} layers")
    inner = _size(config, "mamba_num_heads") * _size(config, "mamba_head_dim")
    keys = _ssm(_size(config, "conv_kernel"), inner, _size(config, "ssm_state_size"), _size(config, "n_groups"))
    wide = config.number("intermediate_size", 1, low=1)
    keys["feed_forward_length"] = [wide if letter in {"-", "E"} else 0 for letter in pattern]
    return keys | _kv(config, [letter == "*" for letter in pattern])


def _rwkv(config: Config) -> Found:
    return {"wkv.head_size": _size(config, "head_size", "head_dim", default=64)}


def _kv(config: Config, full: list[bool]) -> Found:
    """KV heads for the layers that have attention, none for the others."""
    heads = config.key("attention.head_count_kv", config.key("attention.head_count", high=MAX_HEADS), high=MAX_HEADS)
    return {"attention.head_count_kv": [heads if has else 0 for has in full]}


READERS: dict[str, Callable[[Config], Found]] = {
    "falcon-h1": _falcon_h1,
    "granitehybrid": _granite,
    "jamba": _jamba,
    "lfm2": _lfm2,
    "lfm2moe": _lfm2,
    "mamba": _mamba,
    "mamba2": _mamba2,
    "nemotron_h": _nemotron_h,
    "qwen35": _delta_net,
    "qwen35moe": _delta_net,
    "qwen3next": _delta_net,
    "rwkv6": _rwkv,
    "rwkv7": _rwkv,
}
