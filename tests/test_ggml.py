"""Element types against the block sizes of ggml-common.h and the type numbers of ggml.h."""

import pytest

from kvmodel.errors import ParamError
from kvmodel.ggml import KV_TYPES, ggml_type

KNOWN = {
    "f32": (0, 1, 4),
    "f16": (1, 1, 2),
    "bf16": (30, 1, 2),
    "q4_0": (2, 32, 18),
    "q4_1": (3, 32, 20),
    "q5_0": (6, 32, 22),
    "q5_1": (7, 32, 24),
    "q8_0": (8, 32, 34),
    "iq4_nl": (20, 32, 18),
}
"""Number, elements and bytes of a block: 32 quants of 4, 5 or 8 bits and one or two f16 scales."""


@pytest.mark.parametrize("name", KV_TYPES)
def test_numbers_and_blocks(name):
    kind = ggml_type(name)
    assert (kind.number, kind.block, kind.block_bytes) == KNOWN[name]
    assert kind.is_quantized == (kind.block > 1)


def test_all_types_of_a_cache_are_known():
    assert set(KV_TYPES) == set(KNOWN)


@pytest.mark.parametrize(
    ("name", "n", "size"), [("f16", 5, 10), ("q8_0", 128, 136), ("q4_0", 1024, 576), ("f32", 0, 0)]
)
def test_row_size(name, n, size):
    assert ggml_type(name).row_size(n) == size


def test_a_row_that_is_no_whole_number_of_blocks():
    with pytest.raises(ParamError, match="n_embd_k_gqa is 48; allowed: a multiple of 32 elements for type q8_0"):
        ggml_type("q8_0").row_size(48, "n_embd_k_gqa")


@pytest.mark.parametrize("name", ["q4_K", "F16", "", "int8"])
def test_a_type_no_cache_can_have(name):
    with pytest.raises(ParamError) as caught:
        ggml_type(name, "type_v")
    assert str(caught.value).startswith(f"type_v is {name!r}; allowed: f32, f16, bf16")
