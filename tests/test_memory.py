"""Bytes of the caches: what logs of real runs printed, and what the rules of each version ask for."""

import re
from dataclasses import replace

import pytest

from kvmodel.errors import ParamError
from kvmodel.geometry import MLA, Geometry, swa_pattern
from kvmodel.memory import KeptMLA, MemoryPlan, Settings, context_sizes, mib, plan
from kvmodel.models import find
from tests.memory_cases import NAMES, ROWS, planned, settings_of

MIB = 1 << 20
TINY = Geometry(2, 2, 16, 16, n_ctx_train=8192)
GEMMA3 = Geometry(6, 1, 256, 256, arch="gemma3", swa_type="standard", n_swa=512, swa_layers=swa_pattern(6, 6))


def groups(result: MemoryPlan) -> list[tuple[int, int, int, int]]:
    """Layers, cells, elements of K and of V, of each kind of layer with K and V."""
    found: dict[tuple[int, int, int], int] = {}
    for part in result.parts:
        for layer in part.layers:
            if part.name != "recurrent" and layer.total:
                key = (part.cells * part.n_stream, layer.n_embd_k, layer.n_embd_v)
                found[key] = found.get(key, 0) + 1
    return sorted((n, *key) for key, n in found.items())


def merged(row: dict) -> list[tuple[int, int, int, int]]:
    """The groups of a row, those of the same size together."""
    found: dict[tuple[int, int, int], int] = {}
    for group in row["groups"]:
        key = (group["cells"], group["n_embd_k"], group["n_embd_v"])
        found[key] = found.get(key, 0) + group["n_layer"]
    return sorted((n, *key) for key, n in found.items())


def test_all_rows_are_here():
    assert len(ROWS) == 28


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_the_groups_of_a_real_run_are_planned(row):
    assert groups(planned(row)) == merged(row)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_the_printed_figures_of_a_real_run_are_planned(row):
    result = planned(row)
    printed = {"K": row["expected_k_mib"], "V": row["expected_v_mib"], "all": row["expected_total_mib"]}
    found = {"K": mib(result.k_bytes), "V": mib(result.v_bytes), "all": mib(result.total)}
    if row["id"] == "m25":  # its log prints the attention layers and the states on a line each
        attention = result.part("kv")
        found = {"K": mib(attention.k_bytes), "V": mib(attention.v_bytes), "all": mib(attention.total)}
    if row["id"].startswith("m27"):  # printed as whole MiB
        found["all"] = f"{result.total // MIB}.00"
    assert {name: f"{value:.2f}" for name, value in printed.items() if value is not None} == {
        name: found[name] for name, value in printed.items() if value is not None
    }


@pytest.mark.parametrize("row", [row for row in ROWS.values() if row["recurrent"]], ids=lambda row: row["id"])
def test_the_states_of_a_real_run_are_planned(row):
    told, part = row["recurrent"], planned(row).part("recurrent")
    assert (part.cells, len(part.layers)) == (told["cells"], told["n_layer_recurrent"])
    expected = [f"{told[name]:.2f}" for name in ("expected_r_mib", "expected_s_mib", "expected_total_mib")]
    assert [mib(part.k_bytes), mib(part.v_bytes), mib(part.total)] == expected


@pytest.mark.parametrize(("row", "name", "part"), [(ROWS[row], *NAMES[row]) for row in NAMES], ids=NAMES)
def test_a_real_run_is_planned_by_the_name_of_its_model(row, name, part):
    settings = settings_of(row)
    if row["id"] == "m22c":  # n_ctx of the row is the cells of the half; its context was no shorter than that
        settings = replace(settings, n_ctx=4096, n_ubatch=1024)
    result = plan(find(name), settings)
    layers = [layer for each in result.parts for layer in each.layers if part in {None, each.name}]
    if row["id"] == "m13":  # printed for the device with 8 of the 61 layers
        layers = layers[:8]
    total = mib(sum(layer.total for layer in layers))
    expected = f"{row['expected_total_mib']:.2f}"
    assert total == expected or (row["id"].startswith("m27") and f"{int(float(total))}.00" == expected)


def test_every_confirmed_row_is_found_by_name():
    assert {row["id"] for row in ROWS.values() if row["geometry_confirmed_in_source"]} <= set(NAMES)


def test_split_over_devices_is_a_number_of_whole_layers():
    layers = planned(ROWS["m04"]).parts[0].layers
    assert [mib(sum(layer.total for layer in layers[:12])), mib(sum(layer.total for layer in layers[12:]))] == [
        "1536.00",
        "3584.00",
    ]


@pytest.mark.parametrize(
    ("rules", "flash_attn", "asked", "n_ctx"),
    [
        ("0.3.7", False, 1000, 1024),
        ("0.3.7", True, 1000, 1024),
        ("0.3.7", False, 1025, 1056),
        ("0.3.7", True, 1025, 1280),
        ("0.3.11", False, 4001, 4032),
        ("0.3.11", True, 4001, 4096),
        ("streams", False, 4001, 4096),
    ],
)
def test_n_ctx_is_padded(rules, flash_attn, asked, n_ctx):
    sizes = context_sizes(TINY, Settings(asked, rules=rules, flash_attn=flash_attn))
    assert (sizes.n_ctx, sizes.cells) == (n_ctx, n_ctx)


def test_the_versions_print_n_ctx_per_seq_before_or_after_padding():
    assert context_sizes(TINY, Settings(100, n_seq_max=3, rules="0.3.7")).n_ctx_seq == 128 // 3
    assert context_sizes(TINY, Settings(100, n_seq_max=3, rules="0.3.11")).n_ctx_seq == 100 // 3
    assert context_sizes(TINY, Settings(100, n_seq_max=3, rules="streams")).n_ctx_seq == 256


@pytest.mark.parametrize(
    ("n_ctx", "n_seq_max", "n_ubatch", "flash_attn", "cells"),
    [
        (4096, 1, 512, False, 1024),
        (4096, 4, 512, False, 2560),
        (4096, 1, 500, False, 1024),
        (4096, 1, 500, True, 1024),
        (4096, 1, 100, False, 640),
        (4096, 1, 100, True, 768),
        (4096, 8, 512, False, 4096),
        (512, 1, 512, False, 512),
    ],
)
def test_window_cells_of_mid_2025(n_ctx, n_seq_max, n_ubatch, flash_attn, cells):
    settings = Settings(n_ctx, n_seq_max=n_seq_max, n_ubatch=n_ubatch, flash_attn=flash_attn)
    result = plan(GEMMA3, settings)
    assert [(part.name, part.cells, len(part.layers)) for part in result.parts] == [
        ("base", n_ctx, 1),
        ("swa", cells, 5),
    ]


def test_swa_full_gives_window_layers_all_cells():
    full = plan(GEMMA3, Settings(4096, swa_full=True))
    assert {part.cells for part in full.parts} == {4096}
    assert full.total == 6 * 4096 * 2 * 256 * 2


def test_january_2025_keeps_every_cell_of_a_window_layer():
    [part] = plan(GEMMA3, Settings(4096, rules="0.3.7")).parts
    assert (part.name, part.total) == ("kv", 6 * 4096 * 2 * 256 * 2)


def test_n_ubatch_is_bounded_by_the_batch_and_the_batch_by_the_context():
    assert context_sizes(TINY, Settings(300, rules="0.3.11")).n_ubatch == 300
    assert context_sizes(TINY, Settings(300, rules="0.3.7")).n_ubatch == 320
    assert context_sizes(TINY, Settings(8, rules="0.3.11")).n_batch == 64
    assert context_sizes(TINY, Settings(8, rules="streams")).n_batch == 8
    assert context_sizes(TINY, Settings(4096, n_batch=100, n_ubatch=0)).n_ubatch == 100


def test_shared_layers_hold_nothing():
    gemma3n = replace(GEMMA3, n_layer_kv_from_start=4, arch="gemma3n")
    result = plan(gemma3n, Settings(1024))
    assert [[layer.il for layer in part.layers] for part in result.parts] == [[], [0, 1, 2, 3]]
    assert plan(gemma3n, Settings(1024, rules="0.3.7")).total == 6 * 1024 * 1024


def test_a_layer_without_heads_is_a_layer_of_no_bytes():
    [part] = plan(Geometry(3, (2, 0, 1), 64, 64, arch="deci"), Settings(256)).parts
    assert [layer.total for layer in part.layers] == [256 * 2 * 128 * 2, 0, 256 * 2 * 64 * 2]


def test_head_sizes_may_differ_from_layer_to_layer():
    geometry = Geometry(2, 2, (256, 512), (256, 512))
    [part] = plan(geometry, Settings(256, rules="0.3.11")).parts
    assert [layer.n_embd_v for layer in part.layers] == [512, 1024]
    [part] = plan(geometry, Settings(256, rules="streams")).parts
    assert [(layer.n_embd_k, layer.n_embd_v) for layer in part.layers] == [(512, 1024), (1024, 1024)]
    [part] = plan(geometry, Settings(256, rules="streams", flash_attn=True)).parts
    assert [layer.n_embd_v for layer in part.layers] == [512, 1024]


@pytest.mark.parametrize(
    ("settings", "row"),
    [
        (Settings(256, rules="0.3.7"), (24576, 16384)),
        (Settings(256, rules="0.3.11"), (576, 512)),
        (Settings(256, rules="streams"), (576, 0)),
        (Settings(256, rules="streams", mla=KeptMLA.LATENT_TWICE), (576, 512)),
        (Settings(256, rules="0.3.11", mla=KeptMLA.HEADS), (24576, 16384)),
    ],
)
def test_latent_attention_by_version(settings, row):
    geometry = Geometry(1, 128, 192, 128, arch="deepseek2", mla=MLA(512, 64))
    [layer] = plan(geometry, settings).parts[0].layers
    assert (layer.n_embd_k, layer.n_embd_v) == row


def test_a_recurrent_model_takes_no_more_with_a_longer_context():
    mamba = Geometry(2, arch="mamba", recurrent_layers=True, n_embd_r=192, n_embd_s=1024)
    short, long = plan(mamba, Settings(64, n_seq_max=4)), plan(mamba, Settings(65536, n_seq_max=4))
    assert short.total == long.total == 2 * 4 * (192 + 1024) * 4
    assert (short.bytes_per_token, short.parts[0].type_k) == (0, "f32")


def test_a_hybrid_holds_both():
    jamba = Geometry(3, (0, 2, 0), 64, 64, arch="jamba", recurrent_layers=(True, False, True), n_embd_r=10, n_embd_s=20)
    result = plan(jamba, Settings(256, n_seq_max=2, rules="streams", kv_unified=True))
    assert [(part.name, [layer.il for layer in part.layers]) for part in result.parts] == [
        ("kv", [1]),
        ("recurrent", [0, 2]),
    ]
    assert [part.total for part in result.parts] == [256 * 128 * 2 * 2, 2 * 2 * 30 * 4]


def test_an_encoder_has_no_cache():
    assert plan(Geometry(12, 12, 64, 64, arch="bert", has_cache=False)).parts == ()


def test_buffers_are_rounded_up_tensor_by_tensor():
    odd = Geometry(3, 1, 7, 5)
    [part] = plan(odd, Settings(32, type_k="f16", type_v="f32")).parts
    assert (part.total, part.buffer_bytes) == (3 * 32 * (14 + 20), 3 * 32 * (14 + 20))
    states = Geometry(3, recurrent_layers=True, n_embd_r=3, n_embd_s=9)
    [part] = plan(states, Settings(32)).parts
    assert (part.total, part.buffer_bytes) == (3 * (12 + 36), 3 * (32 + 64))


def test_bytes_per_token_and_per_position():
    result = plan(GEMMA3, Settings(4096))
    assert (result.bytes_per_token, result.bytes_per_position) == (6 * 1024, 1024)
    longer = plan(GEMMA3, Settings(4096 + 32))
    assert longer.total - result.total == 32 * result.bytes_per_position


def test_rows_for_a_table():
    assert plan(GEMMA3, Settings(4096)).by_layer()[4:] == ((4, "swa", 1 << 19, 1 << 19), (5, "base", 1 << 21, 1 << 21))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Settings(n_ctx=-1), "n_ctx is -1; allowed: a whole number from 0"),
        (lambda: Settings(n_seq_max=0), "n_seq_max is 0; allowed: a whole number from 1"),
        (lambda: Settings(n_batch=0, n_ubatch=0), "n_batch is 0; allowed: at least 1, or an n_ubatch of at least 1"),
        (lambda: Settings(type_k="q3_K"), "type_k is 'q3_K'; allowed: f32, f16"),
        (lambda: Settings(rules="0.4"), "rules is '0.4'; allowed: 0.3.7, 0.3.11, streams"),
        (lambda: Settings(mla="all"), "mla is 'all'; allowed: heads, latent twice, latent"),
        (
            lambda: plan(Geometry(1, 1, 80, 80), Settings(type_k="q8_0")),
            "n_embd_k_gqa is 80; allowed: a multiple of 32",
        ),
        (lambda: plan(Geometry(1, 1, 8, 8), Settings(n_ctx=0)), "n_ctx is 0; allowed: at least 1"),
        (lambda: Geometry(0), "n_layer is 0; allowed: a whole number from 1"),
        (lambda: Geometry(2, (1,)), "n_head_kv is (1,); allowed: one entry for each of the 2 layers"),
        (lambda: Geometry(2, 1, 8, 8, swa_type="standard"), "n_swa is 0; allowed: a whole number from 1"),
        (lambda: Geometry(2, swa_type="round"), "swa_type is 'round'; allowed: none, standard, chunked"),
        (lambda: Geometry(2, swa_layers=(True, False)), "allowed: no layer with a window, as swa_type is none"),
        (
            lambda: Geometry(2, n_swa=8, swa_type="standard", swa_layers=(False, False)),
            "allowed: at least one layer with a window",
        ),
        (
            lambda: Geometry(2, n_layer_kv_from_start=3),
            "n_layer_kv_from_start is 3; allowed: a whole number from 1 to 2",
        ),
        (lambda: MLA(0, 64), "n_lora_kv is 0; allowed: a whole number from 1"),
    ],
)
def test_what_is_not_allowed_is_told(make, told):
    with pytest.raises(ParamError, match=re.escape(told)):
        make()


def test_a_context_of_0_is_the_one_of_the_training():
    assert plan(TINY, Settings(n_ctx=0)).context.n_ctx == 8192


def test_figures_are_divided_in_single_precision():
    assert mib(1166 * MIB + 655360) == "1166.62"
    assert mib((1 << 45) + 5243) == f"{1 << 25}.00"
