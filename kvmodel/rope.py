"""Rotary positions: the angles of a position, and the rotation of K rows by them.

Counterpart of `ggml_rope_cache_init`, `rope_yarn` and `ggml_compute_forward_rope_*` in ggml-cpu/ops.cpp. Everything is
float32 in upstream's order, since an angle of some thousand radians shows every rounding on the way to it. Sine and
cosine are rounded once from float64, which is within half a unit of what a C library gives.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvmodel.errors import ParamError, check_int
from kvmodel.limits import INT32_MAX

Float32 = NDArray[np.float32]
Int32 = NDArray[np.int32]

MAX_ROT = 1 << 16
"""Rotated dimensions at most: many times the widest head."""

ONE = np.float32(1)


class RopeType(StrEnum):
    """Which dimensions of a head form a pair (`llama_rope_type`).

    `norm` pairs neighbours, `neox` pairs dimension i with i + n_rot / 2. `mrope` has several positions a token; those
    of a text are all equal, and then it rotates as `neox` does.
    """

    NORM = "norm"
    NEOX = "neox"
    MROPE = "mrope"


@dataclass(frozen=True)
class RopeParams:
    """How a model rotates its queries and keys; the arguments of `ggml_rope_ext`.

    Attributes:
        n_rot: dimensions of a head that are rotated, the first ones; an even number.
        rope_type: which of them form a pair.
        freq_base: base of the angles: pair i turns by base^(-2i / n_rot) radians a position.
        freq_scale: factor of all angles, below 1 to fit more positions into the trained range.
        freq_factors: divisor of the angle of each pair, None for none.
        n_ctx_orig: positions the model was trained on; read by YaRN only.
        ext_factor: share of YaRN's mix of scaled and plain angles; 0 turns YaRN off.
        attn_factor: factor of the rotated values.
        beta_fast, beta_slow: turns over `n_ctx_orig` above which a pair keeps its plain angle, and below which it
            takes the scaled one.

    Raises:
        ParamError: a value is out of range.
    """

    n_rot: int
    rope_type: RopeType = RopeType.NORM
    freq_base: float = 10_000.0
    freq_scale: float = 1.0
    freq_factors: tuple[float, ...] | None = None
    n_ctx_orig: int = 8192
    ext_factor: float = 0.0
    attn_factor: float = 1.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0

    def __post_init__(self) -> None:
        check_int("n_rot", self.n_rot, 2, MAX_ROT)
        if self.n_rot % 2:
            raise ParamError("n_rot", self.n_rot, "an even number: dimensions are rotated in pairs")
        if self.rope_type not in list(RopeType):
            raise ParamError("rope_type", self.rope_type, ", ".join(RopeType))
        object.__setattr__(self, "rope_type", RopeType(self.rope_type))
        check_int("n_ctx_orig", self.n_ctx_orig, 1, INT32_MAX)
        for name in ("freq_base", "freq_scale", "attn_factor", "beta_fast", "beta_slow"):
            _check_float(name, getattr(self, name), above=0)
        _check_float("ext_factor", self.ext_factor, least=0)
        if self.ext_factor:
            _check_float("freq_base", self.freq_base, above=1)
        if self.freq_factors is not None:
            self._check_factors(self.freq_factors)

    def _check_factors(self, factors: tuple[float, ...]) -> None:
        object.__setattr__(self, "freq_factors", tuple(factors))
        if len(factors) < self.n_rot // 2:
            raise ParamError("freq_factors", f"{len(factors)} values", f"one for each of {self.n_rot // 2} pairs")
        for factor in factors:
            _check_float("freq_factors", factor, above=0)

    @property
    def dims(self) -> tuple[slice, slice]:
        """The first and the second dimension of every pair, as slices of a head."""
        n = self.n_rot
        if self.rope_type is RopeType.NORM:
            return slice(0, n, 2), slice(1, n, 2)
        return slice(0, n // 2), slice(n // 2, n)

    @property
    def pairs(self) -> NDArray[np.intp]:
        """The two dimensions of every pair, intp [n_rot / 2, 2]."""
        first, second = self.dims
        dims = np.arange(self.n_rot)
        return np.stack([dims[first], dims[second]], axis=1)

    @property
    def magnitude(self) -> np.float32:
        """Factor of every rotated value: 1 unless `attn_factor` or YaRN changes it."""
        factor = np.float32(self.attn_factor)
        return factor * _yarn_magnitude(self.freq_scale) if self.ext_factor else factor

    def for_shift(self, arch: str = "llama") -> "RopeParams":
        """The rotation of a K-shift (`build_rope_shift` in llama-kv-cache-unified.cpp).

        It differs in two ways: `mrope` shifts as `neox`, and for deepseek2 the factor of the values undoes that of
        YaRN. For every other model the factor stays, so a shift applies it again (quirk yarn-shift-magnitude).
        """
        rope = replace(self, rope_type=RopeType.NEOX) if self.rope_type is RopeType.MROPE else self
        if arch != "deepseek2":
            return rope
        return replace(rope, attn_factor=float(ONE / _yarn_magnitude(rope.freq_scale)))


def _check_float(name: str, value: Any, *, above: float | None = None, least: float = -math.inf) -> None:
    number = isinstance(value, int | float | np.floating) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value < least or (above is not None and value <= above):
        raise ParamError(name, value, f"a finite number above {above}" if above is not None else f"{least} or more")


def _yarn_magnitude(freq_scale: float) -> np.float32:
    """By how much YaRN lengthens what it rotates."""
    log = np.float32(np.log(np.float64(ONE / np.float32(freq_scale))))
    return ONE + np.float32(0.1) * log


def _plain_share(rope: RopeParams) -> Float32:
    """Share of the plain angle in YaRN's mix, float32 [n_rot / 2] (`rope_yarn_ramp`, `ggml_rope_yarn_corr_dims`)."""
    low = max(np.float32(0), np.floor(_corr_dim(rope, rope.beta_fast)))
    high = min(np.float32(rope.n_rot - 1), np.ceil(_corr_dim(rope, rope.beta_slow)))
    pair = np.arange(rope.n_rot // 2, dtype=np.float32)
    ramp = (pair - low) / max(np.float32(0.001), high - low)
    share: Float32 = (ONE - np.clip(ramp, np.float32(0), ONE)) * np.float32(rope.ext_factor)
    return share


def _corr_dim(rope: RopeParams, turns: float) -> np.float32:
    """The pair, as a fraction, that makes so many turns over the trained range (`ggml_rope_yarn_corr_dim`)."""
    positions = np.float32(rope.n_ctx_orig) / (np.float32(turns) * np.float32(2) * np.float32(np.pi))
    logs = [np.float32(np.log(np.float64(value))) for value in (positions, np.float32(rope.freq_base))]
    return np.float32(rope.n_rot) * logs[0] / (np.float32(2) * logs[1])


def _fused(a: Float32, b: Float32, c: Float32) -> Float32:
    """The sum a * b + c rounded once, as the fused instruction gives it that compilers choose for release builds."""
    exact = a.astype(np.float64) * b + c
    return exact.astype(np.float32)


def angles(rope: RopeParams, pos: Int32) -> Float32:
    """By how many radians each position turns each pair.

    The angle of a pair is that of the pair before it times a constant, a rounding at each step, as upstream does it.

    Args:
        rope: the rotation.
        pos: int32 [n], positions, or differences of positions.

    Returns:
        float32 [n, n_rot / 2].
    """
    exponent = np.float32(-2) / np.float32(rope.n_rot)
    step = np.float32(np.float64(np.float32(rope.freq_base)) ** np.float64(exponent))
    factors = np.full((len(pos), rope.n_rot // 2), step, np.float32)
    factors[:, 0] = pos
    theta: Float32 = np.multiply.accumulate(factors, axis=1)
    if rope.freq_factors is not None:
        divisors: Float32 = np.array(rope.freq_factors[: rope.n_rot // 2], np.float32)
        theta = theta / divisors
    scaled = np.float32(rope.freq_scale) * theta
    if not rope.ext_factor:
        return scaled
    share = _plain_share(rope)
    return _fused(scaled, ONE - share, theta * share)


def rotate(rope: RopeParams, values: Float32, pos: Int32, *, magnitude: bool = True) -> Float32:
    """Rotate rows by their positions.

    Args:
        rope: the rotation.
        values: float32 [n, heads, elements of a head].
        pos: int32 [n], the position of every row.
        magnitude: apply `rope.magnitude` too; False turns only.

    Returns:
        float32 of the same shape; dimensions beyond `n_rot` are as they were.

    Raises:
        ParamError: a head has fewer than `n_rot` elements.
    """
    if values.shape[-1] < rope.n_rot:
        raise ParamError("n_rot", rope.n_rot, f"at most the {values.shape[-1]} elements of a head")
    different, which = np.unique(pos, return_inverse=True)
    theta: NDArray[np.float64] = angles(rope, different).astype(np.float64)
    factor = rope.magnitude if magnitude else ONE
    cos: Float32 = (np.cos(theta).astype(np.float32) * factor)[which, None]
    sin: Float32 = (np.sin(theta).astype(np.float32) * factor)[which, None]
    first, second = rope.dims
    x0, x1 = values[..., first], values[..., second]
    rotated = values.copy()
    # The recorded build fuses the first product with the sum for neox, and rounds each step for norm.
    with np.errstate(invalid="ignore", over="ignore"):
        if rope.rope_type is RopeType.NORM:
            rotated[..., first], rotated[..., second] = x0 * cos - x1 * sin, x0 * sin + x1 * cos
        else:
            rotated[..., first], rotated[..., second] = _fused(x0, cos, -(x1 * sin)), _fused(x0, sin, x1 * cos)
    return rotated
