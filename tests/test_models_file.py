"""Model files as geometry: by their writer, split in parts, damaged, or with any values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.errors import ParamError
from kvmodel.models import from_gguf, from_gguf_bytes
from kvmodel.models.shape import from_keys
from tests.gguf_files import LLAMA, STRING, U32, array, number, pair, raw, small, text, write_gguf
from tests.model_keys import MLA_KEYS, STATE, WINDOWED


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"block_count": None}, "llama.block_count is 'missing'; allowed: a whole number from 1 to 1024"),
        ({"block_count": 0}, "llama.block_count is 0"),
        ({"block_count": 1025}, "llama.block_count is 1025"),
        ({"block_count": 2**32 - 1}, "llama.block_count is 4294967295"),
        ({"block_count": "two"}, "llama.block_count is 'two'"),
        ({"block_count": 2.5}, "llama.block_count is 2.5"),
        ({"block_count": True}, "llama.block_count is True"),
        ({"block_count": (1, 2)}, "llama.block_count is '2 entries'"),
        ({"embedding_length": None}, "llama.embedding_length is 'missing'"),
        ({"attention.head_count": None}, "llama.attention.head_count is 'missing'"),
        ({"attention.head_count_kv": (1, 2, 3)}, "head_count_kv is '3 entries'; allowed: one number for each of the 2"),
        ({"attention.head_count_kv": (1, -2)}, "llama.attention.head_count_kv is -2"),
        ({"attention.head_count_kv": 1 << 30}, "llama.attention.head_count_kv is 1073741824"),
        ({"attention.key_length": "x" * 500}, "llama.attention.key_length is '500 entries'"),
        ({"context_length": -1}, "llama.context_length is -1"),
    ],
)
def test_keys_that_are_missing_or_not_allowed(change, told):
    with pytest.raises(ParamError) as error:
        from_keys("llama", LLAMA | change)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("arch", "key"), [("mamba", "ssm.conv_kernel"), ("jamba", "ssm.state_size"), ("rwkv6", "ssm.conv_kernel")]
)
def test_a_state_without_its_sizes_is_refused(arch, key):
    keys = LLAMA | {name: value for name, value in STATE.items() if name != key} | {"attention.head_count_kv": 0}
    with pytest.raises(ParamError, match=f"{arch}.{key} is 'missing'"):
        from_keys(arch, keys)


def test_a_file_by_gguf_s_writer_gives_the_geometry_of_its_keys(tmp_path):
    keys = WINDOWED | {"attention.head_count_kv": [2, 1] * 6}
    path = write_gguf(tmp_path / "model.gguf", "gemma3", keys, name="Small Gemma", tokens=300)
    geometry = from_gguf(path)
    assert geometry == from_keys("gemma3", keys, name="Small Gemma", source="model.gguf")
    assert from_gguf_bytes(path.read_bytes()[:20_000], source="model.gguf") == geometry


def test_a_file_without_a_name_is_called_after_itself(tmp_path):
    assert from_gguf(write_gguf(tmp_path / "tiny.gguf")).name == "tiny.gguf"
    assert from_gguf_bytes(small()).name == "llama"


def part(no, of):
    keys = [pair("split.no", 2, bytes([no, 0])), pair("split.count", 2, bytes([of, 0]))]
    return raw([*keys, pair("split.tensors.count", 5, bytes(4))])


def test_a_later_part_of_a_split_model_sends_to_the_first(tmp_path):
    path = tmp_path / "big-00002-of-00003.gguf"
    path.write_bytes(part(1, 3))
    with pytest.raises(ParamError, match=r"this is part 2 of 3, open the first one, big-00001-of-00003\.gguf"):
        from_gguf(path)
    with pytest.raises(ParamError, match=r"this is part 3 of 3, open the first one$"):
        from_gguf_bytes(part(2, 3))


def test_the_first_part_of_a_split_model_is_enough(tmp_path):
    path = tmp_path / "big-00001-of-00003.gguf"
    pairs = [pair("general.architecture", STRING, text("llama")), pair("split.no", 2, b"\0\0")]
    pairs += [number(f"llama.{key}", value) for key, value in LLAMA.items()]
    path.write_bytes(raw(pairs))
    assert from_gguf(path).heads == (2, 2)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (raw(), "general.architecture is 'missing'; allowed: the name of an architecture, such as llama"),
        (raw([number("general.architecture", 1)]), "general.architecture is 1"),
        (raw([pair("general.architecture", STRING, text("a" * 65))]), "a name of at most 64 letters"),
        (raw([pair("general.architecture", STRING, text("a\nb"))]), "general.architecture is 'a\\nb'"),
        (raw([pair("general.type", STRING, text("mmproj"))]), "general.type is 'mmproj'; allowed: model"),
        (small(keys={"block_count": 2}), "llama.attention.head_count is 'missing'"),
        (small(keys=LLAMA | {"block_count": 2**31}), "llama.block_count is 2147483648"),
    ],
)
def test_a_whole_header_that_describes_no_model(data, told):
    with pytest.raises(ParamError) as error:
        from_gguf_bytes(data)
    assert told in str(error.value)


def test_a_number_where_a_list_belongs_and_the_other_way_round():
    heads = pair("llama.attention.head_count_kv", 9, array(U32, 2, b"\1\0\0\0\2\0\0\0"))
    pairs = [pair("general.architecture", STRING, text("llama")), heads]
    pairs += [number(f"llama.{key}", value) for key, value in LLAMA.items() if not key.endswith("_kv")]
    assert from_gguf_bytes(raw(pairs)).heads == (1, 2)
    swapped = pair("llama.block_count", 9, array(U32, 1, b"\2\0\0\0"))
    with pytest.raises(ParamError, match="block_count is '1 entries'"):
        from_gguf_bytes(raw([pairs[0], swapped]))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 2**64),
    st.floats(),
    st.text(max_size=9),
    st.lists(st.integers(0, 9), max_size=4),
)


@given(
    st.sampled_from(
        ["llama", "gemma3", "gemma4", "deepseek2", "jamba", "qwen3next", "lfm2", "rwkv6", "nemotron_h", "zzz"]
    ),
    st.dictionaries(st.sampled_from([*MLA_KEYS, *STATE, *WINDOWED, "attention.sliding_window_pattern"]), VALUES),
)
def test_any_values_give_a_geometry_or_a_named_error(arch, change):
    try:
        geometry = from_keys(arch, LLAMA | change)
    except ParamError as error:
        told = str(error)
    else:
        told = f"{geometry.n_layer} layers"
        assert len(geometry.heads) == geometry.n_layer
    assert 0 < len(told) < 500
