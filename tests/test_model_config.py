"""config.json files against the known models they belong to."""

import json

import pytest

from kvmodel.models import find, from_config
from tests.model_configs import LLAMA, F, S, like, shape
from tests.model_configs_published import PUBLISHED


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


def test_the_name_is_given_or_the_files_or_the_architectures():
    assert from_config(like(), name="Mine").name == "Mine"
    assert from_config(like(_name_or_path="meta-llama/Llama-3.1-8B")).name == "meta-llama/Llama-3.1-8B"
    assert from_config(like().encode(), source="pasted").source == "pasted"
    assert from_config(like()).name == "llama"


def test_a_language_model_within_a_thinker():
    text = {"model_type": "other", "thinker_config": {"model_type": "other", "text_config": LLAMA}}
    assert shape(from_config(json.dumps(text))) == shape(find("Llama 3.1 8B"))


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
