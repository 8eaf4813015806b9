"""Configurations of every kind of cache: what they make, what they refuse, and how one is carried over to another."""

import json
from typing import Any

import pytest
from hypothesis import given

from kvmodel.caches.iswa import IswaParams
from kvmodel.configs import CacheConfig, ContextConfig, IswaConfig, LegacyConfig, RecurrentConfig
from kvmodel.scenario import Scenario, ScenarioError
from kvmodel.types import SWAType
from tests.random_scenarios import any_scenario

KINDS = "'unified', 'iswa', 'legacy', 'recurrent', 'memory_recurrent'"
TYPES = "f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1"


def scenario(**cache: Any) -> Scenario:
    return Scenario.from_json(json.dumps({"title": "t", "cache": {"kv_size": 64} | cache}))


@given(any_scenario)
def test_every_kind_survives_json(drawn: Scenario) -> None:
    again = Scenario.from_json(drawn.to_json())
    assert again == drawn
    assert type(again.cache) is type(drawn.cache)
    assert json.loads(drawn.to_json())["cache"].get("kind", "unified") == drawn.cache.kind


def test_a_document_without_a_kind_is_a_unified_cache() -> None:
    assert scenario().cache == CacheConfig(kv_size=64)
    assert json.loads(scenario().to_json())["cache"] == {"kv_size": 64}
    assert scenario(kind="unified") == scenario()


def test_the_kind_is_written_where_it_is_not_the_unified_one() -> None:
    cache = json.loads(scenario(kind="iswa", n_swa=8, swa_full=True).to_json())["cache"]
    assert cache == {"kind": "iswa", "kv_size": 64, "n_swa": 8, "swa_full": True}


@pytest.mark.parametrize(
    ("cache", "message"),
    [
        ({"kind": "odd"}, f"cache.kind is 'odd'; allowed: {KINDS}"),
        ({"kind": None}, f"cache.kind is 'None'; allowed: {KINDS}"),
        ({"kind": "iswa"}, "cache.n_swa is missing; allowed: a value, since it has no default"),
        ({"kind": "iswa", "n_swa": 0}, "cache.n_swa is 0; allowed: greater than or equal to 1"),
        (
            {"kind": "iswa", "n_swa": 4, "swa_type": "none"},
            "cache.swa_type is 'none'; allowed: 'standard' or 'chunked'",
        ),
        (
            {"kind": "iswa", "n_swa": 4, "swa_pattern": -1},
            "cache.swa_pattern is -1; allowed: greater than or equal to 0",
        ),
        (
            {"kind": "iswa", "n_swa": 4, "n_layer": 2, "swa_layers": [True]},
            "cache: swa_layers is (True,); allowed: one entry for each of the 2 layers",
        ),
        (
            {"kind": "iswa", "n_swa": 4, "kv_size": 40},
            "cache: kv_size is 40; allowed: a multiple of n_pad = 32",
        ),
        (
            {"kind": "iswa", "n_swa": 4, "flash_attn": True},
            "cache.flash_attn is no known field; allowed: the fields of the format only",
        ),
        ({"kind": "legacy", "kv_size": 0}, "cache.kv_size is 0; allowed: greater than or equal to 1"),
        ({"kind": "legacy", "n_seq_max": 65}, "cache.n_seq_max is 65; allowed: less than or equal to 64"),
        ({"kind": "legacy", "n_pad": 32}, "cache.n_pad is no known field; allowed: the fields of the format only"),
        ({"kind": "legacy", "n_swa": 8}, "cache.n_swa is no known field; allowed: the fields of the format only"),
        (
            {"kind": "legacy", "flash_attn": "so"},
            "cache.flash_attn is 'so'; allowed: a valid boolean, unable to interpret input",
        ),
        ({"kind": "legacy", "type_k": "q2_k"}, f"cache: type_k is 'q2_k'; allowed: {TYPES}"),
        (
            {"kind": "legacy", "type_v": "q8_0", "n_embd_head_v": 16},
            "cache: n_embd_v_gqa is 16; allowed: a multiple of 32 elements for type q8_0",
        ),
        (
            {"kind": "recurrent", "type_k": "f16"},
            "cache.type_k is no known field; allowed: the fields of the format only",
        ),
        (
            {"kind": "recurrent", "ssm_d_inner": -1},
            "cache: ssm_d_inner is -1; allowed: a whole number from 0 to 1048576",
        ),
        ({"kind": "recurrent", "n_layer": 0}, "cache: n_layer is 0; allowed: a whole number from 1 to 1024"),
    ],
)
def test_a_bad_field_is_told_with_value_and_limits(cache: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as told:
        scenario(**cache)
    assert str(told.value) == message


def test_a_long_kind_is_cut() -> None:
    with pytest.raises(ScenarioError) as told:
        scenario(kind="x" * 500)
    assert len(str(told.value)) < 180


@pytest.mark.parametrize(
    ("pattern", "is_swa"),
    [
        (6, [True] * 5 + [False] + [True] * 5 + [False]),
        (2, [True, False] * 6),
        (1, [False] * 12),
        (0, [True] * 12),
    ],
)
def test_a_pattern_names_the_window_layers(pattern: int, is_swa: list[bool]) -> None:
    config = IswaConfig(kind="iswa", kv_size=64, n_swa=8, n_layer=12, swa_pattern=pattern)
    assert list(config.pair(16).is_swa) == is_swa
    assert config.pair(16).base.layers == tuple(il for il, swa in enumerate(is_swa) if not swa)
    assert config.pair(16).swa.layers == tuple(il for il, swa in enumerate(is_swa) if swa)


def test_a_list_of_layers_stands_instead_of_a_pattern() -> None:
    config = IswaConfig(kind="iswa", kv_size=64, n_swa=8, n_layer=3, swa_layers=(False, True, True))
    assert config.pair(16).is_swa == (False, True, True)


@pytest.mark.parametrize(
    ("n_swa", "n_seq_max", "n_ubatch", "swa_full", "cells"),
    [
        (512, 1, 512, False, 1024),
        (512, 4, 512, False, 2560),
        (500, 1, 10, False, 512),
        (512, 1, 512, True, 8192),
        (4096, 4, 512, False, 8192),
    ],
)
def test_the_window_half_holds_every_window_and_one_ubatch(
    n_swa: int, n_seq_max: int, n_ubatch: int, swa_full: bool, cells: int
) -> None:
    config = IswaConfig(kind="iswa", kv_size=8192, n_swa=n_swa, n_seq_max=n_seq_max, n_layer=2, swa_full=swa_full)
    pair = config.pair(n_ubatch)
    assert isinstance(pair, IswaParams)
    assert (pair.base.kv_size, pair.swa.kv_size) == (8192, cells)
    assert (pair.base.swa_type, pair.swa.swa_type, pair.swa.n_swa) == (SWAType.NONE, SWAType.STANDARD, n_swa)


def test_flash_attention_of_the_older_cache() -> None:
    plain, flash = (LegacyConfig(kind="legacy", kv_size=7, flash_attn=flash).params for flash in (False, True))
    assert (plain.kv_size, plain.v_trans, flash.v_trans) == (7, True, False)


def test_widths_of_a_state() -> None:
    mamba = RecurrentConfig(kind="recurrent", kv_size=4, ssm_d_conv=4, ssm_d_inner=64, ssm_d_state=16).params
    assert (mamba.n_embd_k_gqa(0), mamba.n_embd_v_gqa(0), mamba.type_k) == (192, 1024, "f32")
    rwkv = RecurrentConfig(kind="recurrent", kv_size=4, wkv_head_size=64, n_embd=128).params
    assert (rwkv.n_embd_k_gqa(0), rwkv.n_embd_v_gqa(0)) == (256, 8192)


def test_the_graph_budget_is_that_of_the_generation() -> None:
    budgets = [ContextConfig().params(kind).n_max_nodes for kind in ("unified", "iswa", "legacy", "recurrent")]
    assert budgets == [65_536, 65_536, 8_192, 8_192]
    assert ContextConfig(n_max_nodes=8).params("legacy").n_max_nodes == 8


SHARED = {"kv_size": 512, "n_seq_max": 3, "n_layer": 6, "n_head_kv": [1, 2, 3, 4, 5, 6], "type_k": "q8_0"}
"""Fields that both transformer generations have, none of them the default."""


@pytest.mark.parametrize(("v_trans", "n_pad"), [(True, 32), (False, 256)])
def test_a_unified_cache_goes_to_the_older_one_and_back(v_trans: bool, n_pad: int) -> None:
    unified = scenario(**SHARED, v_trans=v_trans, n_pad=n_pad)
    legacy = unified.on("legacy")
    assert legacy.cache == LegacyConfig.model_validate({**SHARED, "kind": "legacy", "flash_attn": not v_trans})
    assert legacy.on("unified") == unified
    assert (legacy.ops, legacy.context, legacy.title) == (unified.ops, unified.context, unified.title)


def test_a_window_goes_to_a_pair_and_back() -> None:
    window = scenario(**SHARED, n_swa=9, swa_type="chunked", v_trans=False)
    pair = window.on("iswa")
    expected = {**SHARED, "kind": "iswa", "n_swa": 9, "swa_type": "chunked", "v_trans": False}
    assert pair.cache == IswaConfig.model_validate(expected)
    assert pair.on("unified") == window
    assert pair.on("legacy").cache == LegacyConfig.model_validate({**SHARED, "kind": "legacy", "flash_attn": True})


def test_states_are_as_many_as_sequences() -> None:
    states = scenario(**SHARED).on("recurrent")
    assert states.cache == RecurrentConfig(kind="recurrent", kv_size=3, n_seq_max=3, n_layer=6)


def test_the_same_kind_changes_nothing() -> None:
    for kind in ("unified", "iswa", "legacy", "recurrent"):
        given_ = scenario(kind=kind, **({"n_swa": 4} if kind == "iswa" else {}))
        assert given_.on(given_.cache.kind) == given_


@pytest.mark.parametrize(
    ("cache", "kind", "message"),
    [
        ({}, "iswa", "on iswa: cache.n_swa is missing; allowed: a value, since it has no default"),
        ({"kind": "legacy"}, "iswa", "on iswa: cache.n_swa is missing; allowed: a value, since it has no default"),
        (
            {"kind": "legacy", "kv_size": 40},
            "unified",
            "on unified: cache: kv_size is 40; allowed: a multiple of n_pad = 32",
        ),
        (
            {"kind": "legacy", "flash_attn": True},
            "unified",
            "on unified: cache: kv_size is 64; allowed: a multiple of n_pad = 256",
        ),
        (
            {"kind": "recurrent"},
            "legacy",
            "on legacy: cache.kv_size is missing; allowed: a value, since it has no default",
        ),
    ],
)
def test_what_cannot_be_carried_over_is_told(cache: dict[str, Any], kind: Any, message: str) -> None:
    with pytest.raises(ScenarioError) as told:
        scenario(**cache).on(kind)
    assert str(told.value) == message


def test_states_carry_over_between_the_versions() -> None:
    older = scenario(kind="recurrent", kv_size=5, n_seq_max=3)
    newer = older.on("memory_recurrent")
    assert (newer.cache.kind, newer.cache.kv_size) == ("memory_recurrent", 5)
    assert newer.on("recurrent") == older
