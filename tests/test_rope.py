"""Rotary positions against keys that the running library rotated, and against complex numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.errors import ParamError
from kvmodel.rope import RopeParams, RopeType, angles, rotate
from tests.rope import compare, load, rows_of, shifted
from tests.rope.__main__ import DEFAULT, main

RECORDED = load(DEFAULT)
ONE_SINE_APART = {"norm-yarn-4x"}
"""Recordings with one sine that lies within 0.03 units of the middle between two float32; the C library rounded up."""


def named(case: dict[str, Any]) -> str:
    return str(case["name"])


@pytest.mark.parametrize("case", RECORDED, ids=named)
def test_recorded_keys(case: dict[str, Any]) -> None:
    assert compare(case).holds


@pytest.mark.parametrize("case", RECORDED, ids=named)
def test_recorded_bytes(case: dict[str, Any]) -> None:
    """The roundings happen in the library's order, so all bytes agree; one sine apart, the last bit of some."""
    apart = np.count_nonzero(shifted(case) != rows_of(case["k_after"]))
    assert apart <= 12 if case["name"] in ONE_SINE_APART else apart == 0


def flipped(text: str, byte: int, bits: int) -> str:
    data = bytearray.fromhex(text)
    data[byte] ^= bits
    return data.hex()


@pytest.mark.parametrize(
    ("type_k", "byte", "bits"), [("f32", 2, 0x40), ("f16", 0, 0x02), ("q8_0", 5, 0x01), ("q8_0", 1, 0x04)]
)
def test_a_wrong_recording_is_told(
    type_k: str, byte: int, bits: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One value off by a little: an f32 by 2^-7 of itself, an f16 by two units, a q8_0 by a step or in its scale."""
    case = next(case for case in RECORDED if case["type_k"] == type_k)
    wrong = case | {"k_after": [flipped(case["k_after"][0], byte, bits), *case["k_after"][1:]]}
    path = tmp_path / "rope.json"
    path.write_text(json.dumps([case, wrong]), encoding="utf-8")
    assert main([path]) == 1
    told = capsys.readouterr().out.splitlines()
    assert [line[:4] for line in told[:2]] == ["ok  ", "DIFF"]
    assert told[2] == "2 K-shifts, 1 beyond what their type promises"


def test_the_recordings_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([DEFAULT]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "12 K-shifts, 0 beyond what their type promises"


def test_the_recordings_hold_every_kind() -> None:
    assert {(case["rope"], case["type_k"]) for case in RECORDED} >= {
        ("norm", "f32"), ("neox", "f32"), ("norm", "f16"), ("norm", "q8_0"),
    }  # fmt: skip
    assert {case["n_rot"] < case["head_dim"] for case in RECORDED} == {True, False}
    assert {case["yarn"]["ext_factor"] for case in RECORDED} == {0.0, 0.7, 1.0}


def literal_angle(rope: RopeParams, pos: int, pair: int) -> np.float32:
    """The plain angle of one pair, by as many multiplications as upstream makes."""
    step = np.float32(float(np.float32(rope.freq_base)) ** float(np.float32(-2) / np.float32(rope.n_rot)))
    theta = np.float32(pos)
    for _ in range(pair):
        theta = np.float32(theta * step)
    return theta


def exact_angle(rope: RopeParams, pos: int, pair: int) -> float:
    """The same without any rounding, and with YaRN's mix as its authors give it."""
    plain = pos * rope.freq_base ** (-2 * pair / rope.n_rot)
    if rope.freq_factors:
        plain /= rope.freq_factors[pair]
    if not rope.ext_factor:
        return rope.freq_scale * plain
    low, high = (
        rope.n_rot * np.log(rope.n_ctx_orig / (beta * 2 * np.pi)) / (2 * np.log(rope.freq_base))
        for beta in (rope.beta_fast, rope.beta_slow)
    )
    low, high = max(0.0, np.floor(low)), min(rope.n_rot - 1.0, np.ceil(high))
    share = (1 - min(1.0, max(0.0, (pair - low) / max(0.001, high - low)))) * rope.ext_factor
    return rope.freq_scale * plain * (1 - share) + plain * share


def turned(rope: RopeParams, key: np.ndarray, pos: int) -> np.ndarray:
    """One head turned with complex numbers."""
    out = key.astype(np.float64)
    factor = rope.attn_factor * (1 + 0.1 * np.log(1 / rope.freq_scale) if rope.ext_factor else 1)
    half = rope.n_rot // 2
    for pair in range(half):
        i, j = (2 * pair, 2 * pair + 1) if rope.rope_type == "norm" else (pair, pair + half)
        z = complex(key[i], key[j]) * np.exp(1j * exact_angle(rope, pos, pair)) * factor
        out[i], out[j] = z.real, z.imag
    return out


ROPES = st.builds(
    RopeParams,
    n_rot=st.integers(1, 24).map(lambda half: 2 * half),
    rope_type=st.sampled_from(list(RopeType)),
    freq_base=st.sampled_from([100.0, 10_000.0, 500_000.0]),
    freq_scale=st.sampled_from([0.125, 0.5, 1.0]),
    n_ctx_orig=st.sampled_from([64, 4096]),
    ext_factor=st.sampled_from([0.0, 0.3, 1.0]),
    attn_factor=st.sampled_from([0.8, 1.0]),
)
POSITIONS = st.integers(-5000, 5000)


@given(ROPES, POSITIONS, st.integers(0, 9))
def test_a_rotation_is_a_product_of_complex_numbers(rope: RopeParams, pos: int, seed: int) -> None:
    key = np.random.default_rng(seed).standard_normal(rope.n_rot + 3, np.float32)
    found = rotate(rope, key[None, None], np.array([pos], np.int32))[0, 0]
    assert found.dtype == np.float32
    assert found == pytest.approx(turned(rope, key, pos), abs=1e-5 + abs(pos) * rope.n_rot * 2.0**-22)
    assert (found[rope.n_rot :] == key[rope.n_rot :]).all()


@given(ROPES.filter(lambda rope: not rope.ext_factor), st.integers(-(2**31), 2**31 - 1))
def test_angles_take_upstreams_roundings(rope: RopeParams, pos: int) -> None:
    found = angles(rope, np.array([pos], np.int32))[0]
    scale = np.float32(rope.freq_scale)
    assert found.tolist() == [float(scale * literal_angle(rope, pos, pair)) for pair in range(rope.n_rot // 2)]


def test_a_large_angle_carries_its_roundings() -> None:
    """Rounded once, pair 9 of position 7000 would turn by another float32."""
    rope = RopeParams(32)
    once = np.float32(7000 * 10_000.0 ** (-18 / 32))
    assert angles(rope, np.array([7000], np.int32))[0, 9] == literal_angle(rope, 7000, 9) != once


def test_frequency_factors_divide_the_angle_of_their_pair() -> None:
    pos = np.array([3, 90], np.int32)
    plain = angles(RopeParams(4), pos)
    assert angles(RopeParams(4, freq_factors=(1.0, 4.0)), pos).tolist() == (plain / np.float32([1, 4])).tolist()
    assert angles(RopeParams(4, freq_factors=(2.0, 1.0, 9.0)), pos)[:, 0].tolist() == [1.5, 45.0]


def test_yarn_keeps_fast_pairs_and_scales_slow_ones() -> None:
    """A 64 position range: 32 turns are made by no pair, 1 turn between pairs 4 and 5, so the mix ends at pair 5."""
    rope = RopeParams(32, freq_scale=0.25, ext_factor=1.0, n_ctx_orig=64)
    pos = np.array([19], np.int32)
    mixed, plain = angles(rope, pos)[0], angles(RopeParams(32), pos)[0]
    assert mixed[0] == plain[0] == 19
    assert mixed[5:].tolist() == (plain[5:] / 4).tolist()
    assert (mixed[1:5] / plain[1:5]).tolist() == pytest.approx([0.85, 0.7, 0.55, 0.4], rel=1e-6)


def test_yarns_mix_ends_at_the_last_dimension() -> None:
    """For 2,086 turns the logarithms give 1.16, for 1 turn 8.04: the mix starts at 1 and ends at 7 = n_rot - 1."""
    rope = RopeParams(8, freq_base=100.0, freq_scale=0.5, n_ctx_orig=65_536, ext_factor=1.0, beta_fast=2086.0)
    pos = np.array([40], np.int32)
    mixed, plain = angles(rope, pos)[0], angles(RopeParams(8, freq_base=100.0), pos)[0]
    assert (mixed / plain).tolist() == pytest.approx([1, 1, 1 - 1 / 12, 1 - 2 / 12], rel=1e-6)


def test_yarn_lengthens() -> None:
    rope = RopeParams(32, freq_scale=0.25, ext_factor=1.0)
    assert float(rope.magnitude) == pytest.approx(1 + 0.1 * np.log(4), rel=1e-7)
    assert RopeParams(32, freq_scale=0.25).magnitude == 1
    key = np.ones((1, 1, 32), np.float32)
    lengths = [
        np.linalg.norm(rotate(rope, key, np.array([7], np.int32), magnitude=kept)) / np.linalg.norm(key)
        for kept in (True, False)
    ]
    assert lengths == pytest.approx([float(rope.magnitude), 1], rel=1e-6)


def test_pairs_of_each_type() -> None:
    assert RopeParams(4, "norm").pairs.tolist() == [[0, 1], [2, 3]]
    assert RopeParams(4, "neox").pairs.tolist() == RopeParams(4, "mrope").pairs.tolist() == [[0, 2], [1, 3]]


def test_a_shift_of_mrope_is_one_of_neox() -> None:
    assert RopeParams(8, "mrope").for_shift() == RopeParams(8, "neox")
    assert RopeParams(8, "norm").for_shift() == RopeParams(8, "norm")


def test_a_shift_of_deepseek2_leaves_the_length_alone() -> None:
    rope = RopeParams(8, freq_scale=0.025, ext_factor=1.0, attn_factor=0.7)
    assert rope.for_shift("llama") == rope
    assert float(rope.for_shift("deepseek2").magnitude) == pytest.approx(1, abs=1.2e-7)
    assert rope.for_shift("deepseek2").attn_factor == pytest.approx(1 / (1 + 0.1 * np.log(40)), rel=1e-7)


@pytest.mark.parametrize("rope_type", list(RopeType))
def test_keys_without_a_finite_value_raise_no_warning(rope_type: RopeType) -> None:
    rope = RopeParams(2, rope_type, attn_factor=4.0)
    keys = np.array([[[np.inf, 1]], [[3e38, 0]], [[np.nan, 1]]], np.float32)
    found = rotate(rope, keys, np.full(3, 1, np.int32))[:, 0]
    assert found[:2].tolist() == [[np.inf, np.inf]] * 2
    assert np.isnan(found[2]).all()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"n_rot": 0}, "n_rot is 0; allowed: a whole number from 2 to 65536"),
        ({"n_rot": 7}, "n_rot is 7; allowed: an even number"),
        ({"rope_type": "vision"}, "rope_type is 'vision'; allowed: norm, neox, mrope"),
        ({"freq_base": 0.0}, "freq_base is 0.0; allowed: a finite number above 0"),
        ({"freq_base": 1.0, "ext_factor": 1.0}, "freq_base is 1.0; allowed: a finite number above 1"),
        ({"freq_scale": float("nan")}, "freq_scale is nan; allowed: a finite number above 0"),
        ({"freq_scale": "4"}, "freq_scale is '4'; allowed"),
        ({"ext_factor": -1.0}, "ext_factor is -1.0; allowed: 0 or more"),
        ({"n_ctx_orig": 0}, "n_ctx_orig is 0; allowed"),
        ({"freq_factors": (1.0,)}, "freq_factors is '1 values'; allowed: one for each of 2 pairs"),
        ({"freq_factors": (1.0, 0.0)}, "freq_factors is 0.0; allowed: a finite number above 0"),
    ],
)
def test_a_value_out_of_range_is_told(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ParamError) as caught:
        RopeParams(**{"n_rot": 4} | fields)
    assert str(caught.value).startswith(told)


def test_a_head_shorter_than_its_rotation_is_told() -> None:
    with pytest.raises(ParamError, match="n_rot is 8; allowed: at most the 4 elements of a head"):
        rotate(RopeParams(8), np.zeros((1, 1, 4), np.float32), np.zeros(1, np.int32))
