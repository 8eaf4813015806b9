"""What a cache may be made of, and the messages for what it may not."""

import pytest

from kvmodel.errors import BatchError, CacheAbort, KVModelError, ParamError, check_int
from kvmodel.types import CacheParams, SWAType, get_padding, pad

GEMMA3N = {"kv_size": 64, "n_layer": 35, "arch": "gemma3n"}
WINDOW_LAYERS = tuple(il % 5 != 4 for il in range(35))
"""Four window layers, then a full one, as in gemma3n."""


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"kv_size": 0}, "kv_size is 0; allowed: a whole number from 1 to 1048576"),
        ({"kv_size": 2_000_000}, "kv_size is 2000000; allowed: a whole number from 1 to 1048576"),
        ({"kv_size": 40}, "kv_size is 40; allowed: a multiple of n_pad = 32"),
        ({"kv_size": 64.0}, "kv_size is 64.0; allowed: a whole number"),
        ({"kv_size": True}, "kv_size is True; allowed: a whole number"),
        ({"n_pad": 0}, "n_pad is 0; allowed: a whole number from 1"),
        ({"n_seq_max": 65}, "n_seq_max is 65; allowed: a whole number from 1 to 64"),
        ({"swa_type": "sliding"}, "swa_type is 'sliding'; allowed: none, standard, chunked"),
        ({"swa_type": "chunked"}, "n_swa is 0; allowed: at least 1 with swa_type chunked"),
        ({"n_swa": -1}, "n_swa is -1; allowed: a whole number from 0"),
        ({"n_layer": 0}, "n_layer is 0; allowed: a whole number from 1 to 1024"),
        ({"n_layer": 2, "n_head_kv": [1]}, "n_head_kv is (1,); allowed: one entry for each of the 2 layers"),
        ({"n_head_kv": -1}, "n_head_kv is -1; allowed: a whole number from 0"),
        ({"n_layer": 2, "layer_filter": [True]}, "layer_filter is [True]; allowed: one entry for each of the 2 layers"),
        ({"type_k": "q2_K"}, "type_k is 'q2_K'; allowed: f32, f16"),
        ({"type_v": "none"}, "type_v is 'none'; allowed: f32, f16"),
        ({"n_embd_head_k": -4}, "n_embd_head_k is -4; allowed: a whole number from 0"),
        ({"n_rel_attn_bkts": 256}, "n_rel_attn_bkts is 256; allowed: a whole number from 0 to 255"),
        ({"n_rel_attn_bkts": 1}, "n_rel_attn_bkts is 1; allowed: 0 for none, or 2 to 255"),
    ],
)
def test_a_wrong_value_is_told_with_what_is_allowed(wrong, told):
    with pytest.raises(ParamError) as caught:
        CacheParams(**{"kv_size": 64, **wrong})
    assert told in str(caught.value)
    assert caught.value.field == told.split()[0]


def test_params_do_not_change_and_compare_by_value():
    params = CacheParams(64, n_layer=2, n_head_kv=[2, 1], swa_type="standard", n_swa=8)
    assert params == CacheParams(64, n_layer=2, n_head_kv=(2, 1), swa_type=SWAType.STANDARD, n_swa=8)
    with pytest.raises(AttributeError):
        params.kv_size = 32


def test_heads_of_a_layer_make_its_rows():
    params = CacheParams(64, n_layer=3, n_head_kv=(8, 1, 0), n_embd_head_k=128, n_embd_head_v=64)
    assert [params.n_embd_k_gqa(il) for il in range(3)] == [1024, 128, 0]
    assert [params.n_embd_v_gqa(il) for il in range(3)] == [512, 64, 0]


def test_a_filter_keeps_some_layers():
    params = CacheParams(64, n_layer=4, layer_filter=(True, False, False, True))
    assert (params.layers, params.layer_map) == ((0, 3), {0: 0, 3: 1})


def test_later_layers_of_gemma3n_reuse_the_last_of_their_kind():
    params = CacheParams(**GEMMA3N, swa_layers=WINDOW_LAYERS)
    assert params.layers == tuple(range(20))
    reused = {il: params.layer_map[il] for il in range(20, 35)}
    assert reused == {il: 19 if il % 5 == 4 else 18 for il in range(20, 35)}


def test_a_filter_applies_to_reused_layers_as_well():
    full = tuple(not window for window in WINDOW_LAYERS)
    params = CacheParams(**GEMMA3N, swa_layers=WINDOW_LAYERS, layer_filter=full)
    assert params.layers == (4, 9, 14, 19)
    assert {il: i for il, i in params.layer_map.items() if il >= 20} == {24: 3, 29: 3, 34: 3}


def test_a_reused_layer_must_be_kept():
    params = CacheParams(**GEMMA3N, swa_layers=WINDOW_LAYERS, layer_filter=(False,) * 19 + (True,) * 16)
    with pytest.raises(ParamError, match="layer 18 kept, since layer 20 reuses it"):
        _ = params.layer_map


@pytest.mark.parametrize(("value", "unit", "padded"), [(0, 32, 0), (1, 32, 32), (32, 32, 32), (33, 32, 64), (7, 1, 7)])
def test_pad(value, unit, padded):
    assert pad(value, unit) == padded


def test_padding_depends_on_flash_attention():
    assert (get_padding(flash_attn=False), get_padding(flash_attn=True)) == (32, 256)


@pytest.mark.parametrize("value", ["3", 3.0, None, True, [3]])
def test_a_whole_number_is_asked_for(value):
    with pytest.raises(ParamError, match=r"p0 is .*; allowed: a whole number from -5 to 5"):
        check_int("p0", value, -5, 5)


@pytest.mark.parametrize("value", [-5, 0, 5])
def test_a_whole_number_in_range_passes(value):
    assert check_int("p0", value, -5, 5) == value


@pytest.mark.parametrize("error", [ParamError("a", 1, "2"), BatchError("gap", "text"), CacheAbort("text")])
def test_all_errors_are_of_one_family(error):
    assert isinstance(error, KVModelError)
