"""Which layers of an architecture keep a recurrent state, and of what size: `load_hparams` and llama-hparams.cpp."""

from kvmodel.hparams.keys import Keys
from kvmodel.limits import MAX_HEAD_SIZE, MAX_LAYERS

RECURRENT = ("mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7")
"""Every layer is recurrent, and there is no other cache (`llm_arch_is_recurrent`)."""

WITHOUT_HEADS = ("granitehybrid", "jamba", "lfm2", "lfm2moe", "plamo2")
"""A layer without KV heads is recurrent."""

WITHOUT_HEADS_AND_FFN = ("nemotron_h", "nemotron_h_moe")
"""A layer with neither KV heads nor a feed-forward network is recurrent."""

EVERY_FEW = ("qwen35", "qwen35moe", "qwen3next")
"""All layers are recurrent but every few, four if the file does not say."""

BOTH = ("falcon-h1",)
"""Every layer has attention and a state, side by side."""

NEEDED = {
    **dict.fromkeys(("rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"), "wkv.head_size"),
    **dict.fromkeys(("lfm2", "lfm2moe"), "shortconv.l_cache"),
}
"""The key that a state's size cannot be told without, of architectures whose states are not Mamba's."""

TOKEN_SHIFT_COUNT = 2
FULL_ATTENTION_INTERVAL = 4


def has_states(arch: str) -> bool:
    """Whether an architecture has recurrent layers (`llm_arch_is_recurrent`, `llm_arch_is_hybrid`)."""
    return arch in (*RECURRENT, *WITHOUT_HEADS, *WITHOUT_HEADS_AND_FFN, *EVERY_FEW, *BOTH)


def recurrent_layers(keys: Keys, n_layer: int, heads: tuple[int, ...]) -> tuple[bool, ...]:
    """Which layers keep a recurrent state.

    Args:
        keys: the values of the model.
        n_layer: layers of the model.
        heads: KV heads of each layer, as the file gives them.
    """
    if keys.arch in RECURRENT or keys.arch in BOTH:
        return (True,) * n_layer
    if keys.arch in WITHOUT_HEADS:
        return tuple(not count for count in heads)
    if keys.arch in WITHOUT_HEADS_AND_FFN:
        feed_forward = keys.per_layer("feed_forward_length", n_layer, 0)
        return tuple(not count and not n_ff for count, n_ff in zip(heads, feed_forward, strict=True))
    if keys.arch in EVERY_FEW:
        interval = keys.number("full_attention_interval", FULL_ATTENTION_INTERVAL, low=1, high=MAX_LAYERS)
        return tuple((il + 1) % interval != 0 for il in range(n_layer))
    return (False,) * n_layer


def state_sizes(keys: Keys) -> tuple[int, int]:
    """Elements of the rolling and of the recurrent state of one layer (`n_embd_r`, `n_embd_s`).

    Raises:
        ParamError: a key is missing or has a value that is not allowed.
    """
    needed = NEEDED.get(keys.arch)
    if needed is not None and needed not in keys:
        raise keys.error(needed, f"a whole number from 1 to {MAX_HEAD_SIZE}")
    if "wkv.head_size" in keys:
        n_embd = keys.number("embedding_length", high=MAX_HEAD_SIZE)
        shifts = keys.number("token_shift_count", TOKEN_SHIFT_COUNT, high=MAX_LAYERS)
        return shifts * n_embd, n_embd * keys.number("wkv.head_size", high=MAX_HEAD_SIZE)
    if "shortconv.l_cache" in keys:
        return keys.number("embedding_length", high=MAX_HEAD_SIZE) * (keys.number("shortconv.l_cache", low=1) - 1), 0
    d_conv = keys.number("ssm.conv_kernel", high=MAX_HEAD_SIZE)
    d_inner = keys.number("ssm.inner_size", high=MAX_HEAD_SIZE)
    d_state = keys.number("ssm.state_size", high=MAX_HEAD_SIZE)
    n_group = keys.number("ssm.group_count", 0, high=MAX_HEAD_SIZE)
    return max(d_conv - 1, 0) * (d_inner + 2 * n_group * d_state), d_state * d_inner
