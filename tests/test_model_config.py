"""config.json files against the known models they belong to, and what is refused of them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.errors import ParamError
from kvmodel.geometry import Geometry
from kvmodel.limits import MAX_CONFIG_BYTES
from kvmodel.models import find, from_config

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


PUBLISHED = {  # the deciding fields of published config.json files
    "Llama 3.1 8B": like(rope_theta=500000.0, sliding_window=None),
    "Llama 3.2 3B": like(num_hidden_layers=28, hidden_size=3072, num_attention_heads=24, head_dim=128),
    "Mistral 7B": like(model_type="mistral", max_position_embeddings=32768, sliding_window=4096),
    "Mixtral 8x7B": like(model_type="mixtral", max_position_embeddings=32768, num_local_experts=8),
    "Mistral Small 24B": like(
        model_type="mistral", num_hidden_layers=40, hidden_size=5120, head_dim=128, max_position_embeddings=32768
    ),
    "Qwen2.5 7B": like(
        model_type="qwen2",
        num_hidden_layers=28,
        hidden_size=3584,
        num_attention_heads=28,
        num_key_value_heads=4,
        sliding_window=131072,
        max_window_layers=28,
        use_sliding_window=False,
    ),
    "Qwen3 0.6B": like(
        model_type="qwen3",
        num_hidden_layers=28,
        hidden_size=1024,
        num_attention_heads=16,
        head_dim=128,
        max_position_embeddings=40960,
    ),
    "Qwen3.5 9B": config(
        model_type="qwen3_5",
        text_config={
            "model_type": "qwen3_5_text",
            "num_hidden_layers": 32,
            "hidden_size": 4096,
            "num_attention_heads": 16,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "full_attention_interval": 4,
            "linear_conv_kernel_dim": 4,
            "linear_key_head_dim": 128,
            "linear_num_key_heads": 16,
            "linear_num_value_heads": 32,
            "linear_value_head_dim": 128,
            "max_position_embeddings": 262144,
            "layer_types": ["linear_attention", "linear_attention", "linear_attention", F] * 8,
        },
    ),
    "Gemma 2 2B": like(
        model_type="gemma2",
        num_hidden_layers=26,
        hidden_size=2304,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=256,
        sliding_window=4096,
        max_position_embeddings=8192,
    ),
    "Gemma 3 270M": like(
        model_type="gemma3_text",
        num_hidden_layers=18,
        hidden_size=640,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=256,
        sliding_window=512,
        layer_types=[S, S, S, S, S, F] * 3,
        max_position_embeddings=32768,
    ),
    "Gemma 3n E4B": config(
        model_type="gemma3n",
        text_config={
            "model_type": "gemma3n_text",
            "num_hidden_layers": 35,
            "hidden_size": 2048,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "head_dim": 256,
            "sliding_window": 512,
            "num_kv_shared_layers": 15,
            "layer_types": [S, S, S, S, F] * 7,
            "max_position_embeddings": 32768,
        },
        vision_config={"hidden_size": 2048, "num_hidden_layers": 9},
    ),
    "Gemma 4 31B": config(
        model_type="gemma4",
        text_config={
            "model_type": "gemma4_text",
            "num_hidden_layers": 60,
            "hidden_size": 5376,
            "num_attention_heads": 32,
            "num_key_value_heads": 16,
            "num_global_key_value_heads": 4,
            "head_dim": 256,
            "global_head_dim": 512,
            "num_kv_shared_layers": 0,
            "sliding_window": 1024,
            "layer_types": [S, S, S, S, S, F] * 10,
            "max_position_embeddings": 262144,
        },
    ),
    "Command-R7B": like(
        model_type="cohere2",
        head_dim=128,
        sliding_window=4096,
        sliding_window_pattern=4,
        max_position_embeddings=8192,
    ),
    "DeepSeek-V2-Lite": like(
        model_type="deepseek_v2",
        num_hidden_layers=27,
        hidden_size=2048,
        num_attention_heads=16,
        num_key_value_heads=16,
        kv_lora_rank=512,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        max_position_embeddings=163840,
    ),
    "Phi-3.5 mini": like(model_type="phi3", hidden_size=3072, num_key_value_heads=32, sliding_window=262144),
    "GLM-4 9B": like(
        model_type="glm4", num_hidden_layers=40, num_key_value_heads=2, head_dim=128, max_position_embeddings=32768
    ),
    "ChatGLM3 6B": config(
        model_type="chatglm",
        num_layers=28,
        hidden_size=4096,
        num_attention_heads=32,
        multi_query_attention=True,
        multi_query_group_num=2,
        kv_channels=128,
        seq_length=8192,
    ),
    "Falcon 7B": config(
        model_type="falcon",
        num_hidden_layers=32,
        hidden_size=4544,
        num_attention_heads=71,
        num_kv_heads=71,
        multi_query=True,
        new_decoder_architecture=False,
        max_position_embeddings=2048,
    ),
    "Falcon 40B": config(
        model_type="falcon",
        num_hidden_layers=60,
        hidden_size=8192,
        num_attention_heads=128,
        num_kv_heads=8,
        multi_query=True,
        new_decoder_architecture=True,
        max_position_embeddings=2048,
    ),
    "Falcon-H1 0.5B": like(
        model_type="falcon_h1",
        num_hidden_layers=36,
        hidden_size=1024,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=64,
        mamba_d_conv=4,
        mamba_d_ssm=1536,
        mamba_d_state=128,
        mamba_n_groups=1,
        max_position_embeddings=16384,
    ),
    "MPT 7B": config(
        model_type="mpt",
        n_layers=32,
        d_model=4096,
        n_heads=32,
        max_seq_len=2048,
        attn_config={"alibi": True, "alibi_bias_max": 8},
    ),
    "Bloom 7B1": config(model_type="bloom", n_layer=30, hidden_size=4096, n_head=32, seq_length=2048),
    "GPT-2": config(model_type="gpt2", n_layer=12, n_embd=768, n_head=12, n_positions=1024, n_ctx=1024),
    "Granite 4.0 H Tiny": like(
        model_type="granitemoehybrid",
        num_hidden_layers=40,
        hidden_size=1536,
        num_attention_heads=12,
        num_key_value_heads=4,
        mamba_d_conv=4,
        mamba_d_state=128,
        mamba_expand=2,
        mamba_n_groups=1,
        layer_types=["attention" if il % 10 == 5 else "mamba" for il in range(40)],
    ),
    "Jamba v0.1": like(
        model_type="jamba",
        attn_layer_period=8,
        attn_layer_offset=4,
        mamba_d_conv=4,
        mamba_d_state=16,
        mamba_expand=2,
        max_position_embeddings=262144,
    ),
    "LFM2 1.2B": like(
        model_type="lfm2",
        num_hidden_layers=16,
        hidden_size=2048,
        conv_L_cache=3,
        full_attn_idxs=[2, 5, 8, 10, 12, 14],
        max_position_embeddings=128000,
    ),
    "Mamba 2.8B": config(
        model_type="mamba", num_hidden_layers=64, hidden_size=2560, intermediate_size=5120, state_size=16, conv_kernel=4
    ),
    "RWKV6 7B": config(model_type="rwkv6", num_hidden_layers=32, hidden_size=4096, head_size=64),
    "RWKV7 1.5B": config(model_type="rwkv7", num_hidden_layers=24, hidden_size=2048, head_dim=64, num_heads=None),
    "Exaone 4.0 1.2B": like(
        model_type="exaone4",
        num_hidden_layers=30,
        hidden_size=2048,
        sliding_window_pattern="LLLG",
        max_position_embeddings=65536,
    ),
    "OLMo 3 32B": like(
        model_type="olmo3",
        num_hidden_layers=64,
        hidden_size=5120,
        num_attention_heads=40,
        sliding_window=4096,
        layer_types=[S, S, S, F] * 16,
        max_position_embeddings=65536,
    ),
    "gpt-oss 20B": like(
        model_type="gpt_oss",
        num_hidden_layers=24,
        hidden_size=2880,
        num_attention_heads=64,
        head_dim=64,
        sliding_window=128,
        layer_types=[S, F] * 12,
    ),
}


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_a_published_config_gives_the_known_model(name):
    assert shape(from_config(PUBLISHED[name])) == shape(find(name))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PUBLISHED["Mistral 7B"], "The file gives a window of 4,096, which llama.cpp does not use for llama."),
        (like(model_type="starcoder2", sliding_window=4096), "does not use for starcoder2"),
        (like(model_type="qwen2", sliding_window=4096), "does not use for qwen2"),
        (PUBLISHED["Phi-3.5 mini"], "neither makes the cache smaller"),
        (
            like(model_type="gemma3_text", sliding_window=512, layer_types=[F, S] * 16),
            "layer_types differ from the layers that llama.cpp gives a window",
        ),
        (
            like(model_type="gemma3n_text", num_hidden_layers=30, sliding_window=512, num_kv_shared_layers=15),
            "The file shares 15 layers; llama.cpp always lets the first 20 own K and V.",
        ),
    ],
)
def test_where_llama_cpp_does_otherwise_a_note_says_so(text, told):
    [note] = from_config(text).notes
    assert told in note


@pytest.mark.parametrize("name", ["Llama 3.1 8B", "Qwen2.5 7B", "Gemma 3 270M", "Gemma 3n E4B", "OLMo 3 32B"])
def test_where_it_does_the_same_there_is_no_note(name):
    assert from_config(PUBLISHED[name]).notes == ()


def test_llama4_without_chunked_layers():
    text = {**LLAMA, "model_type": "llama4_text", "layer_types": [F] * 32}
    assert not any(from_config(json.dumps(text)).windows)
    del text["layer_types"]
    assert from_config(json.dumps(text)).n_swa == 8192


def test_granite_without_mamba_layers_is_plain_attention():
    text = like(model_type="granitemoehybrid", layer_types=["attention"] * 32)
    assert from_config(text).arch == "granite"
    assert from_config(text).kind == "attention"
    moe = like(model_type="granitemoehybrid", layer_types=["attention"] * 32, num_local_experts=8)
    assert from_config(moe).arch == "granitemoe"


def test_glm_predicts_ahead_with_layers_that_have_no_cache():
    geometry = from_config(like(model_type="glm4_moe", num_nextn_predict_layers=1))
    assert geometry.n_layer == 33
    assert geometry.owns_kv == (True,) * 32 + (False,)


def test_nemotron_h_spells_its_layers():
    text = like(
        model_type="nemotron_h",
        num_hidden_layers=4,
        hybrid_override_pattern="M-*M",
        head_dim=128,
        mamba_num_heads=8,
        mamba_head_dim=64,
        ssm_state_size=128,
        n_groups=8,
        conv_kernel=4,
        intermediate_size=9,
    )
    geometry = from_config(text)
    assert geometry.recurrent == (True, False, False, True)
    assert geometry.heads == (0, 0, 8, 0)
    assert geometry.states[0] == (3 * (512 + 2 * 8 * 128), 128 * 512)


def test_lfm2_takes_words_for_layers_too():
    text = like(model_type="lfm2", num_hidden_layers=3, conv_L_cache=3, layer_types=["conv", F, "conv"])
    assert from_config(text).heads == (0, 8, 0)


def test_the_name_is_given_or_the_files_or_the_architectures():
    assert from_config(like(), name="Mine").name == "Mine"
    assert from_config(like(_name_or_path="meta-llama/Llama-3.1-8B")).name == "meta-llama/Llama-3.1-8B"
    assert from_config(like().encode(), source="pasted").source == "pasted"
    assert from_config(like()).name == "llama"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "config is 'no JSON (Expecting value: line 1 column 1 (char 0))'"),
        ("{'model_type': 'llama'}", "config is 'no JSON"),
        (b"\xff\xfe\x00", "config is 'no JSON"),
        ("\ud800", "config is 'no JSON"),
        ("[" * 100_000, "config is 'no JSON"),
        ("[1]", "config is 'list'; allowed: a JSON object with fields such as model_type"),
        ("{}", "model_type is 'missing'; allowed: one that is known here: apertus"),
        (like(model_type="martian"), "model_type is 'martian'"),
        (like(model_type=7), "model_type is 7"),
        (like(model_type=["llama"]), "model_type is '1 entries'"),
        (like(num_hidden_layers=None), "num_hidden_layers is 'missing'; allowed: a number under one of the names"),
        (like(num_hidden_layers=0), "num_hidden_layers is 0"),
        (like(num_hidden_layers=10**9), "num_hidden_layers is 1000000000; allowed: a whole number from 1 to 1024"),
        (like(num_hidden_layers="32"), "num_hidden_layers is '32'"),
        (like(num_hidden_layers=True), "num_hidden_layers is True"),
        (like(num_attention_heads=None), "num_attention_heads is 'missing'"),
        (like(num_attention_heads=-1), "num_attention_heads is -1"),
        (like(num_key_value_heads=[8]), "num_key_value_heads is '1 entries'"),
        (like(hidden_size=1e3), "hidden_size is 1000.0"),
        (like(head_dim=2**40), "head_dim is 1099511627776"),
        (like(layer_types=[F] * 3), "layer_types is '3 entries'; allowed: one word for each of the 32 layers"),
        (like(layer_types=[1] * 32), "layer_types is '32 entries'"),
        (like(model_type="gemma4_text", head_dim=256), "layer_types is 'missing'"),
        (like(model_type="cohere2"), "cohere2.attention.sliding_window is 'missing'"),
        (like(model_type="deepseek_v3"), "kv_lora_rank is 'missing'"),
        (like(model_type="jamba"), "attn_layer_period is 'missing'"),
        (like(model_type="jamba", attn_layer_period=0, attn_layer_offset=0), "attn_layer_period is 0"),
        (like(model_type="lfm2", conv_L_cache=3), "layer_types is 'missing'; allowed: one word for each"),
        (like(model_type="lfm2", conv_L_cache=3, full_attn_idxs=[32]), "full_attn_idxs is 32"),
        (like(model_type="nemotron_h"), "hybrid_override_pattern is 'missing'"),
        (json.dumps({"text_config": {"num_hidden_layers": 2}}), "model_type is 'missing'"),
    ],
)
def test_what_is_refused_and_how(text, told):
    with pytest.raises(ParamError) as error:
        from_config(text)
    assert told in str(error.value)


def test_a_language_model_within_a_thinker():
    text = {"model_type": "other", "thinker_config": {"model_type": "other", "text_config": LLAMA}}
    assert shape(from_config(json.dumps(text))) == shape(find("Llama 3.1 8B"))


@pytest.mark.parametrize("depth", [500, 5_000])
def test_parts_within_parts_without_end(depth):
    with pytest.raises(ParamError, match=r"model_type|config is 'no JSON"):
        from_config('{"text_config":' * depth + "{}" + "}" * depth)


def test_a_text_beyond_the_bound_is_not_parsed():
    with pytest.raises(ParamError, match="config is '4,194,305 bytes'; allowed: at most 4,194,304 bytes"):
        from_config("x" * (MAX_CONFIG_BYTES + 1))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**40) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*LLAMA, "head_dim"]), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELD = st.sampled_from(
    [
        *LLAMA,
        "head_dim",
        "sliding_window",
        "layer_types",
        "text_config",
        "attn_config",
        "full_attn_idxs",
        "conv_L_cache",
    ]
)


@given(st.sampled_from(sorted(PUBLISHED)), st.dictionaries(FIELD, JSON, min_size=1, max_size=3))
def test_any_fields_give_a_geometry_or_a_named_error(name, change):
    text = json.dumps(json.loads(PUBLISHED[name]) | change)
    try:
        found = from_config(text)
    except ParamError as error:
        found = error
    assert isinstance(found, (Geometry, ParamError))
    assert len(str(found)) < 20_000


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        (
            {"hidden_size": 3840, "num_attention_heads": 16, "num_hidden_layers": 48, "num_key_value_heads": 8},
            "Gemma 3 12B",
        ),
        ({"hidden_size": 2560, "num_hidden_layers": 34}, "Gemma 3 4B"),
    ],
)
def test_what_the_published_gemma_3_files_leave_out_is_what_its_class_sets(fields: dict[str, int], name: str) -> None:
    text = {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "sliding_window": 1024, **fields}}
    read, model = from_config(json.dumps(text)), find(name)
    for field in ("heads", "head_sizes_k", "head_sizes_v", "windows", "n_swa", "n_ctx_train"):
        assert getattr(read, field) == getattr(model, field), field
