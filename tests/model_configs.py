"""Texts of config.json files for tests, and what a cache takes from the model they describe."""

import json

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
}
S, F = "sliding_attention", "full_attention"


def config(**fields):
    return json.dumps(fields)


def like(**change):
    """The text of a llama's config.json with some fields changed; None leaves one out."""
    return json.dumps({key: value for key, value in (LLAMA | change).items() if value is not None})


def shape(geometry):
    """What a cache takes from a geometry, without names and notes."""
    return (
        geometry.arch,
        geometry.n_embd_k_gqa,
        geometry.n_embd_v_gqa,
        geometry.owns_kv,
        geometry.swa_type,
        geometry.n_swa,
        geometry.windows,
        geometry.mla,
        geometry.recurrent,
        geometry.states,
        geometry.n_ctx_train,
        geometry.use_alibi,
        geometry.rope,
    )
