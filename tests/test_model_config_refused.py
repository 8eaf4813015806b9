"""What is refused of a config.json: one message with the field, and no harm from any text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.errors import ParamError
from kvmodel.geometry import Geometry
from kvmodel.limits import MAX_CONFIG_BYTES
from kvmodel.models import from_config
from tests.model_configs import LLAMA, F, like
from tests.model_configs_published import PUBLISHED


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
