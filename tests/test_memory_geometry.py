"""The shape of a model: one number for all layers or one each, windows, states and what kind of memory follows."""

import pytest

from kvmodel.geometry import MLA, Geometry, swa_pattern
from kvmodel.types import SWAType


@pytest.mark.parametrize(
    ("pattern", "windows"),
    [(0, "111111"), (1, "000000"), (2, "101010"), (3, "110110"), (6, "111110"), (7, "111111")],
)
def test_every_so_manyth_layer_has_no_window(pattern, windows):
    assert "".join(str(int(flag)) for flag in swa_pattern(6, pattern)) == windows


def test_one_number_stands_for_all_layers():
    geometry = Geometry(3, 2, 64, (32, 16, 8))
    assert (geometry.heads, geometry.head_sizes_k) == ((2, 2, 2), (64, 64, 64))
    assert (geometry.n_embd_k_gqa, geometry.n_embd_v_gqa) == ((128, 128, 128), (64, 32, 16))
    assert geometry == Geometry(3, [2, 2, 2], [64] * 3, [32, 16, 8])


def test_a_window_without_a_list_is_in_all_layers():
    geometry = Geometry(2, 1, 8, 8, swa_type="chunked", n_swa=16)
    assert (geometry.swa_type, geometry.windows) == (SWAType.CHUNKED, (True, True))
    assert Geometry(2, 1, 8, 8).windows == (False, False)


def test_only_recurrent_layers_have_states():
    geometry = Geometry(3, (0, 1, 0), 8, 8, recurrent_layers=(True, False, True), n_embd_r=3, n_embd_s=(5, 6, 7))
    assert geometry.states == ((3, 5), (0, 0), (3, 7))


def test_who_owns_k_and_v():
    assert Geometry(4, (1, 0, 1, 1), 8, 8, n_layer_kv_from_start=3).owns_kv == (True, False, True, False)


@pytest.mark.parametrize(
    ("geometry", "kind"),
    [
        (Geometry(2, 1, 8, 8), "attention"),
        (Geometry(2, recurrent_layers=True, n_embd_r=1), "recurrent"),
        (Geometry(2, (0, 1), 8, 8, recurrent_layers=(True, False)), "hybrid"),
        (Geometry(2, 1, 8, 8, recurrent_layers=True), "hybrid"),
        (Geometry(2, 1, 8, 8, has_cache=False), "none"),
    ],
)
def test_what_holds_the_memory(geometry, kind):
    assert geometry.kind == kind


def test_rows_of_latent_attention():
    assert (MLA(512, 64).n_embd_k, MLA(512, 64).n_embd_v) == (576, 512)
