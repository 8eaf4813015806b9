"""From keys to a geometry: windows, states, latent attention and shared layers, against llama-model.cpp's tables."""

import pytest

from kvmodel.errors import ParamError
from kvmodel.models.shape import from_keys
from tests.gguf_files import LLAMA
from tests.model_keys import MLA_KEYS, STATE, WINDOWED


def letters(geometry):
    """One letter for each layer: s for a window, f for none."""
    return "".join("s" if has_window else "f" for has_window in geometry.windows)


@pytest.mark.parametrize(
    ("arch", "kind", "n_swa", "pattern"),
    [  # set_swa_pattern(n) of each architecture in load_hparams
        ("gemma2", "standard", 16, "sfsfsfsfsfsf"),
        ("gpt-oss", "standard", 16, "sfsfsfsfsfsf"),
        ("gemma3", "standard", 16, "sssssfsssssf"),
        ("gemma3n", "standard", 16, "ssssfssssfss"),
        ("cohere2", "standard", 16, "sssfsssfsssf"),
        ("olmo2", "standard", 16, "sssfsssfsssf"),
        ("llama4", "chunked", 8192, "sssfsssfsssf"),
        ("smallthinker", "standard", 4096, "fsssfsssfsss"),
        ("exaone4", "none", 0, "f" * 12),
        ("llama", "none", 0, "f" * 12),
        ("phi3", "none", 0, "f" * 12),
        ("qwen2", "none", 0, "f" * 12),
        ("starcoder2", "none", 0, "f" * 12),
    ],
)
def test_windows_of_each_architecture(arch, kind, n_swa, pattern):
    geometry = from_keys(arch, WINDOWED)
    assert (geometry.swa_type, geometry.n_swa, letters(geometry)) == (kind, n_swa, pattern)
    assert bool(geometry.notes) == (kind == "none" and arch != "exaone4")


@pytest.mark.parametrize(
    ("arch", "kind", "n_swa"),
    [("gemma2", "standard", 4096), ("llama4", "chunked", 8192), ("olmo2", "none", 0), ("gemma3", "none", 0)],
)
def test_a_file_that_gives_no_window(arch, kind, n_swa):
    keys = {key: value for key, value in WINDOWED.items() if "window" not in key}
    geometry = from_keys(arch, keys)
    assert (geometry.swa_type, geometry.n_swa) == (kind, n_swa)


@pytest.mark.parametrize("arch", ["cohere2", "gpt-oss", "gemma3n"])
def test_a_file_that_must_give_a_window(arch):
    keys = {key: value for key, value in WINDOWED.items() if "window" not in key}
    with pytest.raises(ParamError, match=f"{arch}.attention.sliding_window is 'missing'"):
        from_keys(arch, keys)


def test_a_window_of_0_turns_it_off_where_that_is_a_rule():
    assert not any(from_keys("llama4", WINDOWED | {"attention.sliding_window": 0}).windows)
    with pytest.raises(ParamError, match="a whole number from 1"):
        from_keys("cohere2", WINDOWED | {"attention.sliding_window": 0})


def test_exaone4_has_windows_at_64_layers_alone():
    geometry = from_keys("exaone4", WINDOWED | {"block_count": 64})
    assert letters(geometry) == "sssf" * 16


def test_a_file_may_give_its_own_pattern():
    key = "attention.sliding_window_pattern"
    assert letters(from_keys("gemma3", WINDOWED | {key: 3})) == "ssf" * 4
    assert letters(from_keys("gemma3", WINDOWED | {key: [False, True] * 6})) == "fs" * 6
    assert not any(from_keys("gemma3", WINDOWED | {key: 1}).windows)
    assert all(from_keys("gemma3", WINDOWED | {key: 0}).windows)


def test_gemma4_has_two_head_sizes_and_shared_layers():
    windowed = [True, True, False] * 4
    keys = WINDOWED | {
        "attention.head_count_kv": [8 if has else 2 for has in windowed],
        "attention.key_length": 512,
        "attention.value_length": 512,
        "attention.key_length_swa": 256,
        "attention.value_length_swa": 256,
        "attention.sliding_window_pattern": windowed,
        "attention.shared_kv_layers": 6,
    }
    geometry = from_keys("gemma4", keys)
    assert geometry.n_embd_k_gqa == tuple(8 * 256 if has else 2 * 512 for has in windowed)
    assert geometry.owns_kv == (True,) * 6 + (False,) * 6
    with pytest.raises(
        ParamError, match=r"gemma4.attention.sliding_window_pattern .*one truth value for each of the 12"
    ):
        from_keys("gemma4", keys | {"attention.sliding_window_pattern": [True] * 11})


def test_gemma3n_gives_the_first_twenty_layers_a_cache():
    assert from_keys("gemma3n", WINDOWED | {"block_count": 30}).owns_kv == (True,) * 20 + (False,) * 10


def test_layers_that_predict_ahead_have_no_cache():
    assert from_keys("glm4moe", LLAMA | {"nextn_predict_layers": 1}).owns_kv == (True, False)


def test_head_sizes_follow_from_the_embedding_unless_given():
    assert from_keys("llama", LLAMA).n_embd_k_gqa == (32, 32)
    geometry = from_keys("qwen3", LLAMA | {"attention.key_length": 48, "attention.value_length": 24})
    assert (geometry.n_embd_k_gqa, geometry.n_embd_v_gqa) == ((96, 96), (48, 48))


def test_without_kv_heads_there_are_as_many_as_query_heads():
    keys = {key: value for key, value in LLAMA.items() if not key.endswith("_kv")}
    assert from_keys("llama", keys).heads == (4, 4)


def test_heads_may_differ_by_layer():
    keys = LLAMA | {"block_count": 3, "attention.head_count": [4, 4, 4], "attention.head_count_kv": [2, 0, 1]}
    geometry = from_keys("deci", keys)
    assert geometry.heads == (2, 0, 1)
    assert geometry.owns_kv == (True, False, True)


def test_latent_attention():
    geometry = from_keys("deepseek2", MLA_KEYS)
    assert (geometry.mla.n_embd_k, geometry.mla.n_embd_v) == (576, 512)
    assert (geometry.n_embd_k_gqa[0], geometry.n_embd_v_gqa[0]) == (16 * 192, 16 * 128)


def test_older_files_of_the_same_architecture_keep_every_head():
    keys = {key: value for key, value in MLA_KEYS.items() if not key.endswith("_mla")}
    keys |= {"attention.head_count_kv": 16, "attention.key_length": 192, "attention.value_length": 128}
    geometry = from_keys("deepseek2", keys)
    assert geometry.mla is None
    assert geometry.n_embd_k_gqa == (3072, 3072)


def test_latent_widths_that_do_not_fit_are_refused():
    with pytest.raises(ParamError, match=r"deepseek2.attention.key_length is 640; allowed: 576"):
        from_keys("deepseek2", MLA_KEYS | {"attention.key_length": 640})


@pytest.mark.parametrize(
    ("arch", "keys", "layers", "state"),
    [
        ("mamba", {}, [1, 1, 1, 1], (3 * 64, 16 * 64)),
        ("mamba2", {"ssm.group_count": 2}, [1, 1, 1, 1], (3 * (64 + 2 * 2 * 16), 16 * 64)),
        ("jamba", {"attention.head_count_kv": [0, 2, 0, 2]}, [1, 0, 1, 0], (3 * 64, 16 * 64)),
        ("granitehybrid", {"attention.head_count_kv": [0, 0, 0, 2]}, [1, 1, 1, 0], (3 * 64, 16 * 64)),
        ("nemotron_h", {"attention.head_count_kv": [0, 2, 0, 0], "feed_forward_length": [0, 0, 9, 0]}, [1, 0, 0, 1],
         (3 * 64, 16 * 64)),
        ("falcon-h1", {}, [1, 1, 1, 1], (3 * 64, 16 * 64)),
        ("qwen3next", {}, [1, 1, 1, 0], (3 * 64, 16 * 64)),
        ("qwen35", {"full_attention_interval": 2}, [1, 0, 1, 0], (3 * 64, 16 * 64)),
        ("lfm2", {"attention.head_count_kv": [0, 2, 0, 0], "shortconv.l_cache": 3}, [1, 0, 1, 1], (2 * 64, 0)),
        ("rwkv6", {"wkv.head_size": 8}, [1, 1, 1, 1], (2 * 64, 8 * 64)),
        ("arwkv7", {"wkv.head_size": 8, "token_shift_count": 1}, [1, 1, 1, 1], (64, 8 * 64)),
        ("llama", {}, [0, 0, 0, 0], (0, 0)),
    ],
)  # fmt: skip
def test_recurrent_layers_and_their_states(arch, keys, layers, state):
    geometry = from_keys(arch, LLAMA | {"block_count": 4} | STATE | keys)
    assert geometry.recurrent == tuple(map(bool, layers))
    assert geometry.states == tuple(state if keeps else (0, 0) for keeps in layers)


@pytest.mark.parametrize(
    ("arch", "kind", "heads"),
    [("mamba", "recurrent", (0, 0)), ("falcon-h1", "hybrid", (2, 2)), ("qwen3next", "recurrent", (0, 0))],
)
def test_which_layers_have_k_and_v_beside_their_state(arch, kind, heads):
    geometry = from_keys(arch, LLAMA | STATE)
    assert (geometry.kind, geometry.heads) == (kind, heads)


def test_rope_alibi_and_models_without_a_cache():
    assert not from_keys("gpt2", LLAMA).rope
    assert from_keys("llama", LLAMA).rope
    assert from_keys("qwen2vl", LLAMA).mrope
    assert from_keys("bloom", LLAMA).use_alibi
    assert from_keys("mpt", LLAMA | {"attention.max_alibi_bias": 8.0}).use_alibi
    assert not from_keys("mpt", LLAMA | {"attention.max_alibi_bias": 0.0}).use_alibi
    assert from_keys("baichuan", LLAMA | {"block_count": 40}).use_alibi
    assert not from_keys("baichuan", LLAMA | {"block_count": 32}).use_alibi
    assert not from_keys("bert", LLAMA).has_cache
