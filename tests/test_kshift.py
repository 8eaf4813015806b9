"""One key through a shift: what was stored, what the shift made of it, and what it should be."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.errors import ParamError
from kvmodel.kshift import KShiftReport, kshift_report, random_key
from kvmodel.rope import RopeParams
from kvmodel.rotation import SHIFTABLE

PLAIN = RopeParams(4, freq_base=100.0)
YARN = RopeParams(32, freq_scale=0.25, ext_factor=1.0, n_ctx_orig=64)


def report(**more: Any) -> KShiftReport:
    fields = {"rope": PLAIN, "key": np.array([1, 0, 0, 2], np.float32), "pos": 10, "shift": -4}
    fields |= more
    return kshift_report(fields.pop("rope"), fields.pop("key"), **fields)


def test_a_key_worked_out_by_hand() -> None:
    """Pair 0 turns by 1 radian a position, pair 1 by 100^(-1/2) = 0.1."""
    found = report()
    assert (found.pos, found.new_pos, found.k_shift, found.times) == (10, 6, -4, 1)
    for stored, pos in ((found.before, 10), (found.after, 6), (found.fresh, 6)):
        angle, slow = pos, pos / 10
        wanted = [np.cos(angle), np.sin(angle), -2 * np.sin(slow), 2 * np.cos(slow)]
        assert stored == pytest.approx(wanted, abs=1e-6)
    assert found.turned == pytest.approx([-4, -0.4], rel=1e-6)
    assert found.due == pytest.approx([-4, -0.4], rel=1e-6)
    assert found.pairs.tolist() == [[0, 1], [2, 3]]
    assert found.error < 1e-6
    assert found.growth == pytest.approx(1, rel=1e-6)


def test_the_wrong_sign_turns_away() -> None:
    """Position 9 divided by 3: the rotation is handed 9 - 3."""
    found = report(pos=9, shift=-6, k_shift=6)
    assert found.new_pos == 3
    assert found.after[:2] == pytest.approx([np.cos(15), np.sin(15)], abs=1e-6)
    assert found.fresh[:2] == pytest.approx([np.cos(3), np.sin(3)], abs=1e-6)
    assert (found.turned + found.due).tolist() == [0, 0]
    assert found.error == pytest.approx(np.abs(found.after - found.fresh).max())
    assert found.error > 0.2


@pytest.mark.parametrize("times", [0, 1, 5])
def test_several_shifts_lengthen_under_yarn(times: int) -> None:
    key = random_key(40, seed=3)
    grown = report(rope=YARN, key=key, pos=7, shift=2, times=times)
    assert grown.new_pos == 7 + 2 * times
    assert grown.growth == pytest.approx((1 + 0.1 * np.log(4)) ** times, rel=1e-5)
    assert (grown.after[32:] == grown.fresh[32:]).all()
    assert grown.turned == pytest.approx(grown.due, abs=1e-5)
    kept = report(rope=YARN, key=key, pos=7, shift=2, times=times, magnitude="corrected")
    assert kept.growth == pytest.approx(1, rel=1e-5)
    assert kept.error < 1e-5


STEPS = {
    "f32": lambda key: 2**-23 * np.abs(key).max(),
    "f16": lambda key: 2**-10 * np.abs(key).max(),
    "q8_0": lambda key: np.abs(key).max() / 127,
    "q5_0": lambda key: np.abs(key).max() / 16,
    "q4_0": lambda key: np.abs(key).max() / 8,
    "q5_1": lambda key: np.ptp(key) / 31,
    "q4_1": lambda key: np.ptp(key) / 15,
}
"""The distance of two values that each type can hold, at the most."""


@pytest.mark.parametrize("type_k", SHIFTABLE)
def test_the_error_is_that_of_the_type(type_k: str) -> None:
    """Stored, turned and stored again, and the fresh one stored: half a step each, the first up to 1.41 times that."""
    found = report(rope=RopeParams(32), key=random_key(32, seed=1), type_k=type_k, pos=30, shift=-9)
    steps = found.error / STEPS[type_k](found.before)
    assert 0.1 < steps < (1.71 if type_k != "f32" else 8)


@given(
    st.integers(1, 16), st.sampled_from(["norm", "neox", "mrope"]), st.integers(0, 200), st.integers(-200, 200),
    st.integers(0, 9),
)  # fmt: skip
def test_a_shift_gives_the_fresh_key(half: int, rope_type: str, pos: int, shift: int, seed: int) -> None:
    if pos + shift < 0:
        shift = -shift
    found = report(rope=RopeParams(2 * half, rope_type), key=random_key(2 * half + 2, seed), pos=pos, shift=shift)
    assert found.error < 1e-4
    assert found.turned == pytest.approx(found.due, abs=1e-4)


def test_keys_differ_by_seed_and_head() -> None:
    keys = {tuple(random_key(8, seed, head).tolist()) for seed in range(4) for head in range(4)}
    assert len(keys) == 16
    assert (random_key(8, 3, 1) == random_key(8, 3, 1)).all()
    assert random_key(4096).std() == pytest.approx(1, abs=0.05)


def test_a_key_of_zeros_has_not_grown() -> None:
    assert report(key=np.zeros(4, np.float32)).growth == 1


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"shift": -11}, "new_pos is -1; allowed: a whole number from 0 to 2147483647"),
        ({"pos": -1}, "pos is -1; allowed"),
        ({"type_k": "bf16"}, "type_k is 'bf16'; allowed: f32, f16, q8_0"),
        ({"type_k": "q9"}, "type_k is 'q9'; allowed: f32, f16"),
        ({"type_k": "q8_0"}, "row is 4; allowed: a multiple of 32 elements for type q8_0"),
        ({"rope": RopeParams(8)}, "n_rot is 8; allowed: at most the 4 elements of a head"),
        ({"times": 1001}, "times is 1001; allowed: a whole number from 0 to 1000"),
        (
            {"key": np.full(4, 1e5, np.float32), "type_k": "f16"},
            "key is 'values up to 100000'; allowed: values that stay",
        ),
        ({"rope": RopeParams(4, attn_factor=9.0), "times": 99, "shift": 1}, "key is 'values up to 2'; allowed: values"),
        ({"k_shift": 2**31}, "k_shift is 2147483648; allowed"),
    ],
)
def test_what_does_not_fit_is_told(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ParamError) as caught:
        report(**fields)
    assert str(caught.value).startswith(told)
