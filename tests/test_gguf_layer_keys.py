"""Values of a GGUF header that stand where numbers for layers are wanted: named, never taken for missing."""

import pytest

from kvmodel.errors import ParamError
from kvmodel.formats.gguf_header import read_header
from kvmodel.limits import MAX_LAYERS
from kvmodel.models import from_gguf_bytes
from tests.gguf_files import ARRAY, F32, LLAMA, STRING, U32, array, number, pair, raw, text

TEXTS = array(STRING, 3, text("a") * 3)
MANY = array(U32, MAX_LAYERS + 1, bytes(4 * (MAX_LAYERS + 1)))
LONG = text("x" * 5000)
OPTIONAL = ("attention.head_count_kv", "context_length", "attention.key_length", "attention.value_length")
"""Keys that a llama may leave out: a value that cannot be used must not count as left out."""


def header(arch: str, key: str, kind: int, value: bytes, **other: int) -> bytes:
    """A model's header with one value put in the place of a number, or beside the others."""
    fields = {name: count for name, count in (LLAMA | other).items() if name != key}
    pairs = [pair("general.architecture", STRING, text(arch))]
    pairs += [number(f"{arch}.{name}", count) for name, count in fields.items()]
    return raw([*pairs, pair(f"{arch}.{key}", kind, value)])


def refused(data: bytes) -> str:
    with pytest.raises(ParamError) as error:
        from_gguf_bytes(data)
    return str(error.value)


@pytest.mark.parametrize("key", [*LLAMA, *OPTIONAL, "nextn_predict_layers", "attention.max_alibi_bias"])
@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (ARRAY, TEXTS, "an array of 3 texts"),
        (ARRAY, MANY, "an array of 1,025 entries"),
        (STRING, LONG, "a text of 5,000 bytes"),
        (STRING, text("two"), "two"),
    ],
)
def test_what_a_layer_key_has_in_place_of_numbers_is_named(key, kind, value, found):
    told = refused(header("llama", key, kind, value))
    assert told.startswith(f"llama.{key} is '{found}'; allowed: ")
    assert "number" in told


def test_a_list_of_heads_may_be_one_for_each_layer_or_one_for_all():
    told = refused(header("llama", "attention.head_count_kv", ARRAY, TEXTS))
    assert told.endswith("allowed: one number for each of the 2 layers, or one for all")


@pytest.mark.parametrize(
    ("arch", "key"),
    [
        ("gemma3", "attention.sliding_window"),
        ("gemma3", "attention.sliding_window_pattern"),
        ("gemma4", "attention.sliding_window_pattern"),
        ("qwen3next", "full_attention_interval"),
        ("nemotron_h", "feed_forward_length"),
    ],
)
@pytest.mark.parametrize(("value", "found"), [(TEXTS, "an array of 3 texts"), (MANY, "an array of 1,025 entries")])
def test_keys_that_only_some_architectures_read(arch, key, value, found):
    other = {"attention.sliding_window": 512} if arch in {"gemma3", "gemma4"} else {}
    data = header(arch, key, ARRAY, value, **other)
    assert refused(data).startswith(f"{arch}.{key} is '{found}'; allowed: ")


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("general.architecture", TEXTS, "general.architecture is 'an array of 3 texts'; allowed: a name of at most 64"),
        ("general.type", TEXTS, "general.type is 'an array of 3 texts'; allowed: model"),
    ],
)
def test_general_keys_of_another_kind_are_named(key, value, told):
    pairs = {"general.architecture": pair("general.architecture", STRING, text("llama"))}
    pairs[key] = pair(key, ARRAY, value)
    assert refused(raw(list(pairs.values()))).startswith(told)


def test_what_no_rule_reads_may_be_anything():
    data = header("llama", "attention.sliding_window", ARRAY, TEXTS)
    assert from_gguf_bytes(data).n_layer == 2
    assert from_gguf_bytes(header("llama", "labels", ARRAY, MANY)).n_layer == 2


def test_a_name_that_is_too_long_is_replaced_by_the_source():
    data = raw(
        [
            pair("general.architecture", STRING, text("llama")),
            pair("general.name", STRING, LONG),
            *(number(f"llama.{name}", count) for name, count in LLAMA.items()),
        ]
    )
    assert from_gguf_bytes(data, source="model.gguf").name == "model.gguf"


def test_an_array_of_fractions_is_no_number_of_layers():
    assert "llama.attention.head_count_kv is" in refused(
        header("llama", "attention.head_count_kv", ARRAY, array(F32, 2, bytes.fromhex("0000003f") * 2))
    )


def test_the_header_itself_counts_them_all_the_same():
    found = read_header(header("llama", "attention.head_count_kv", ARRAY, TEXTS)).skipped
    assert found == {"llama.attention.head_count_kv": 3}
    assert found["llama.attention.head_count_kv"].words == "an array of 3 texts"
