"""What config.json files say of single layers: kinds, windows, layers without a cache, states."""

import json

from kvmodel.models import from_config
from tests.model_configs import LLAMA, F, like


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
