"""Well-known models against figures that were printed elsewhere, and finding them by name."""

import json
from importlib.resources import files

import pytest
from pydantic import TypeAdapter, ValidationError

from kvmodel.errors import ParamError
from kvmodel.models import find, known
from kvmodel.models.known import Entry
from tests.sources import ROOT

ROWS = json.loads((ROOT / "tests/data/memory.json").read_text(encoding="utf-8"))
CONFIRMED = [row for row in ROWS if row["geometry_confirmed_in_source"]]
F16 = 2


def rows(geometry, *, window=None):
    """How many layers own K and V rows of each width: {(K, V): layers}; of one half of them if asked."""
    found = {}
    pairs = zip(geometry.n_embd_k_gqa, geometry.n_embd_v_gqa, geometry.windows, geometry.owns_kv, strict=True)
    for k, v, has_window, owns in pairs:
        if owns and window in {None, has_window}:
            found[k, v] = found.get((k, v), 0) + 1
    return found


def per_token(geometry):
    """Bytes of one token's K and V in f16 with every layer whole."""
    return sum(F16 * (k + v) * layers for (k, v), layers in rows(geometry).items())


def expected(row):
    """The rows of a printed figure: {(K, V): layers}."""
    found = {}
    for group in row["groups"]:
        pair = group["n_embd_k"], group["n_embd_v"]
        found[pair] = found.get(pair, 0) + group["n_layer"]
    return found


def test_there_are_many_and_each_names_its_source():
    assert len(known()) >= 100
    for name, geometry in known().items():
        assert geometry.name == name
        assert geometry.source.startswith("https://")
        assert geometry.n_ctx_train >= 1024


def test_every_kind_of_cache_is_among_them():
    kinds = {geometry.kind for geometry in known().values()}
    assert kinds == {"attention", "recurrent", "hybrid"}
    assert {geometry.swa_type.value for geometry in known().values()} == {"none", "standard", "chunked"}
    assert any(geometry.use_alibi for geometry in known().values())
    assert any(geometry.mla for geometry in known().values())
    assert any(geometry.n_layer_kv_from_start for geometry in known().values())
    assert len({geometry.arch for geometry in known().values()}) >= 40


@pytest.mark.parametrize("row", CONFIRMED, ids=lambda row: row["id"])
def test_a_model_of_a_confirmed_figure_is_found_by_name_and_has_its_rows(row):
    geometry = find(row["model"])
    if row["id"] == "m16":  # a cache of latent rows alone
        assert (geometry.mla.n_embd_k, geometry.n_layer) == (576, 61)
        return
    if row["id"] == "m13":  # the layers of one of four devices
        assert rows(geometry) == {(24576, 16384): 61}
        return
    half = {"base": False, "swa": True}.get((row["swa"] or {}).get("part"))
    assert rows(geometry, window=half) == expected(row)


@pytest.mark.parametrize(
    ("name", "bytes_per_token"),
    [  # worked out by hand: 2 bytes x (K + V) elements x layers
        ("LLaMA 7B", 2 * (4096 + 4096) * 32),
        ("Llama 2 70B", 2 * (1024 + 1024) * 80),
        ("Llama 3.1 8B", 131072),
        ("Llama 3.2 1B", 2 * (512 + 512) * 16),
        ("Mistral 7B", 131072),
        ("Qwen2.5 32B", 2 * (1024 + 1024) * 64),
        ("Qwen3 0.6B", 2 * (1024 + 1024) * 28),
        ("Gemma 3 270M", 2 * (256 + 256) * 18),
        ("Gemma 3 12B", 2 * (2048 + 2048) * 48),
        ("Gemma 3n E2B", 2 * (512 + 512) * 20),
        ("Gemma 3n E4B", 2 * (512 + 512) * 20),
        ("Gemma 4 26B", 2 * (2 * 2048 * 25 + 2 * 1024 * 5)),
        ("Command-R 35B v01", 2 * (8192 + 8192) * 40),
        ("DeepSeek-V2.5", 2 * (24576 + 16384) * 60),
        ("Falcon 7B", 2 * (64 + 64) * 32),
        ("StableLM 3B", 2 * (80 * 32 * 2) * 32),
        ("Phi-3 mini 4k", 2 * (96 * 32 * 2) * 32),
        ("LFM2 1.2B", 2 * (512 + 512) * 6),
        ("Jamba v0.1", 2 * (1024 + 1024) * 4),
        ("Granite 4.0 H Tiny", 2 * (512 + 512) * 4),
        ("Qwen3.5 9B", 32 * 1024),
        ("Qwen3.5 27B", 64 * 1024),
        ("Qwen3.5 35B-A3B", 20 * 1024),
        ("Mamba 2.8B", 0),
    ],
)
def test_bytes_of_a_token(name, bytes_per_token):
    assert per_token(find(name)) == bytes_per_token


@pytest.mark.parametrize(
    ("name", "layers", "n_embd_r", "n_embd_s"),
    [  # printed: m25, m27, m28; the others by hand
        ("Qwen3-Next 80B-A3B", 36, 24576, 524288),
        ("Qwen3.5 9B", 24, 24576, 524288),
        ("Qwen3.5 27B", 48, 3 * (6144 + 2 * 16 * 128), 128 * 6144),
        ("Qwen3.5 35B-A3B", 30, 24576, 524288),
        ("Mamba 2.8B", 64, 3 * 5120, 16 * 5120),
        ("RWKV6 7B", 32, 2 * 4096, 64 * 4096),
        ("LFM2 1.2B", 10, 2 * 2048, 0),
        ("Jamba v0.1", 28, 3 * 8192, 16 * 8192),
        ("Falcon-H1 0.5B", 36, 3 * (1536 + 2 * 128), 128 * 1536),
        ("Granite 4.0 H Tiny", 36, 3 * (3072 + 2 * 128), 128 * 3072),
    ],
)
def test_recurrent_states(name, layers, n_embd_r, n_embd_s):
    states = find(name).states
    assert states.count((n_embd_r, n_embd_s)) == layers
    assert states.count((0, 0)) == len(states) - layers


@pytest.mark.parametrize(
    ("name", "n_swa", "full"),
    [
        ("Gemma 2 9B", 4096, range(1, 42, 2)),
        ("Gemma 3 1B", 512, (5, 11, 17, 23)),
        ("Gemma 3n E2B", 512, range(4, 30, 5)),
        ("Gemma 3n E4B", 512, range(4, 35, 5)),
        ("Gemma 4 E4B", 512, (5, 11, 17, 23, 29, 35, 41)),
        ("gpt-oss 20B", 128, range(1, 24, 2)),
        ("Command-R7B", 4096, range(3, 32, 4)),
        ("OLMo 3 32B", 4096, range(3, 64, 4)),
        ("Exaone 4.0 32B", 4096, range(3, 64, 4)),
        ("Llama 4 Scout", 8192, range(3, 48, 4)),
    ],
)
def test_layers_without_a_window(name, n_swa, full):
    geometry = find(name)
    assert geometry.n_swa == n_swa
    assert [il for il, has_window in enumerate(geometry.windows) if not has_window] == list(full)


@pytest.mark.parametrize(
    "name", ["Mistral-7B-v0.1", "Phi-3 mini 4k", "Qwen2.5 7B", "StarCoder2 7B", "Exaone 4.0 1.2B", "OLMo 2 7B"]
)
def test_models_whose_window_llama_cpp_does_not_use(name):
    assert not any(find(name).windows)


def test_a_window_that_is_not_used_is_noted():
    assert "window of 2,047" in find("Phi-3 mini 4k").notes[0]


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("llama 3.1 8b", "Llama 3.1 8B"),
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama 3.1 8B"),
        ("Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "Llama 3.1 8B"),
        ("bartowski/gemma-3-12b-it-UD-IQ2_XXS.gguf", "Gemma 3 12B"),
        ("gpt-oss-20b-MXFP4.gguf", "gpt-oss 20B"),
        ("  QWEN3_30B_A3B  ", "Qwen3 30B-A3B"),
        ("DeepSeek-R1", "DeepSeek-V3"),
        ("Mistral-7B-Instruct-v0.2-f16", "Mistral 7B"),
        ("Qwen2.5-Coder-32B-Instruct", "Qwen2.5 32B"),
        ("Gemma-3-270m", "Gemma 3 270M"),
    ],
)
def test_names_are_taken_in_many_forms(asked, name):
    assert find(asked) is known()[name]


@pytest.mark.parametrize("name", list(known()))
def test_each_is_found_by_its_own_name(name):
    assert find(name).name == name


def test_an_unknown_name_names_those_that_come_close():
    with pytest.raises(ParamError, match=r"model is 'Gemma 3 11B'; .*Gemma 3 1B") as told:
        find("Gemma 3 11B")
    assert told.value.field == "model"
    with pytest.raises(ParamError, match="LLaMA 7B"):
        find("zzzzzz")


@pytest.mark.parametrize("name", ["", "   ", "x" * 201])
def test_what_is_no_name(name):
    with pytest.raises(ParamError, match="allowed: the name of a model, at most 200 letters"):
        find(name)


def test_sizes_that_share_digits_are_not_confused():
    assert find("Llama 2 7B") is not find("LLaMA 7B")
    for wrong in ("Gemma 3 7B", "Qwen3 3B", "Llama 3.1"):
        with pytest.raises(ParamError):
            find(wrong)


def test_the_data_holds_no_field_that_is_not_read():
    entry = json.loads((files("kvmodel") / "models" / "known.json").read_bytes())[0]
    entries = TypeAdapter(list[Entry])
    for change in ({"colour": "red"}, {"source": "a book"}, {"keys": {"block_count": "32"}}, {"name": ""}):
        with pytest.raises(ValidationError):
            entries.validate_python([entry | change])
