"""What a K-shift does to one key: before, after, and made fresh at the new position."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvmodel.errors import ParamError, check_int
from kvmodel.ggml import GGMLType, dequantize, ggml_type, quantize
from kvmodel.limits import INT32_MAX
from kvmodel.rope import RopeParams, angles, rotate
from kvmodel.rotation import SHIFTABLE, Behaviour

Float32 = NDArray[np.float32]

MAX_TIMES = 1000
"""Shifts in a row at most: enough to see a magnitude grow out of all proportion."""


@dataclass(frozen=True, eq=False)
class KShiftReport:
    """One head of one cell's key around a K-shift.

    Attributes:
        rope: how the model rotates keys.
        type_k: the element type that the key is stored in.
        pos, new_pos: the position before and after.
        k_shift: what each rotation was handed, in positions.
        times: how many rotations there were.
        before: float32 [n], the stored key at `pos`.
        after: float32 [n], the stored key after the shifts.
        fresh: float32 [n], the key as it would be stored if it were made at `new_pos`.
        turned: float64 [n_rot / 2], radians by which the shifts turned each pair.
        due: float64 [n_rot / 2], radians by which each pair had to turn.
    """

    rope: RopeParams
    type_k: str
    pos: int
    new_pos: int
    k_shift: int
    times: int
    before: Float32
    after: Float32
    fresh: Float32
    turned: NDArray[np.float64]
    due: NDArray[np.float64]

    @property
    def pairs(self) -> NDArray[np.intp]:
        """The two dimensions of every pair, intp [n_rot / 2, 2]."""
        return self.rope.pairs

    @property
    def difference(self) -> Float32:
        """After minus fresh, float32 [n]: what the shift got wrong."""
        return self.after - self.fresh

    @property
    def error(self) -> float:
        """The largest difference of any element."""
        return float(np.abs(self.difference).max(initial=0))

    @property
    def growth(self) -> float:
        """Length of the rotated part after the shifts, relative to the fresh one; 1 if both are 0."""
        n = self.rope.n_rot
        lengths = [float(np.linalg.norm(key[:n].astype(np.float64))) for key in (self.after, self.fresh)]
        return lengths[0] / lengths[1] if lengths[1] else 1.0


def random_key(n: int, seed: int = 0, head: int = 0) -> Float32:
    """A key as a projection might give it, before any rotation: float32 [n], the same for the same seed and head."""
    rng = np.random.default_rng([check_int("seed", seed, 0, INT32_MAX), check_int("head", head, 0, INT32_MAX)])
    return rng.standard_normal(check_int("n", n, 2, 1 << 16), np.float32)


def kshift_report(
    rope: RopeParams,
    key: Float32,
    *,
    pos: int,
    shift: int,
    k_shift: int | None = None,
    type_k: str = "f32",
    times: int = 1,
    magnitude: Behaviour = "upstream",
) -> KShiftReport:
    """Follow one key through a shift, or through several alike.

    Args:
        rope: how the model rotates keys.
        key: float32 [n], one head's key before any rotation.
        pos: the position at which it was stored.
        shift: by how much its position changes, each time.
        k_shift: what the rotation is handed, if that differs from `shift`: after `seq_div` its negative (quirk
            div-shift-sign).
        type_k: the element type that it is stored in.
        times: how many shifts it lives through.
        magnitude: `corrected` turns it and leaves its length alone (quirk yarn-shift-magnitude).

    Raises:
        ParamError: a position falls below 0, the type cannot be shifted, the key does not fit the type or `n_rot`, or
            its values become too large for the type.
    """
    kind = ggml_type(type_k, "type_k")
    if type_k not in SHIFTABLE:
        raise ParamError("type_k", type_k, f"{', '.join(SHIFTABLE)} for a K-shift")
    times = check_int("times", times, 0, MAX_TIMES)
    new_pos = check_int("new_pos", check_int("pos", pos, 0, INT32_MAX) + times * shift, 0, INT32_MAX)
    handed = check_int("k_shift", shift if k_shift is None else k_shift, -INT32_MAX, INT32_MAX)
    before = _stored(kind, _at(rope, key, pos))
    after = before
    for _ in range(times):
        after = _stored(kind, _at(rope, after, handed, magnitude=magnitude == "upstream"))
    fresh = _stored(kind, _at(rope, key, new_pos))
    if not all(np.isfinite(stored).all() for stored in (before, after, fresh)):
        raise ParamError("key", f"values up to {np.abs(key).max():g}", f"values that stay finite as {type_k}")
    theta = {p: angles(rope, np.array([p], np.int32))[0].astype(np.float64) for p in (pos, new_pos, handed)}
    return KShiftReport(
        rope=rope,
        type_k=type_k,
        pos=pos,
        new_pos=new_pos,
        k_shift=handed,
        times=times,
        before=before,
        after=after,
        fresh=fresh,
        turned=times * theta[handed],
        due=theta[new_pos] - theta[pos],
    )


def _at(rope: RopeParams, key: Float32, pos: int, *, magnitude: bool = True) -> Float32:
    heads = np.asarray(key, np.float32).reshape(1, 1, -1)
    return rotate(rope, heads, np.array([pos], np.int32), magnitude=magnitude).reshape(-1)


def _stored(kind: GGMLType, key: Float32) -> Float32:
    """The key as its element type holds it."""
    return dequantize(kind, quantize(kind, key))
