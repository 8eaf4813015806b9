"""The K-shift: the keys of every cell turned by the shift of its position, whatever type they are stored in.

Counterpart of `build_graph_shift` and `build_rope_shift` in llama-kv-cache-unified.cpp, and of `build_k_shift` in
llama.cpp (January 2025). Cells without a shift take part: they turn by nothing, but a magnitude or a new round of
quantisation reaches them as well.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kvmodel.errors import CacheAbort, ParamError
from kvmodel.ggml import QUANTIZABLE, GGMLType, dequantize, quantize
from kvmodel.rope import RopeParams, RopeType, rotate
from kvmodel.tensors import Tensors
from kvmodel.types import CacheParams

Behaviour = Literal["upstream", "corrected"]

SHIFTABLE = tuple(name for name in QUANTIZABLE if name != "bf16")
"""The types of K that can be turned here: f32 and f16 as they are, the others by way of f32."""

CHUNK = 1 << 20
"""Elements that are turned at once: enough for whole-array speed, and a few MiB of memory."""


@dataclass(frozen=True)
class Rotation:
    """How a cache turns its keys when a pending shift is applied.

    Attributes:
        rope: how the model rotates keys.
        shift_sign: `upstream`, or `corrected`: then `seq_div` records new minus old, so that keys turn towards their
            new position (quirk div-shift-sign).
        magnitude: `upstream`, or `corrected`: then a shift turns keys and leaves their length alone (quirk
            yarn-shift-magnitude).

    Raises:
        ParamError: a behaviour is neither of the two.
    """

    rope: RopeParams
    shift_sign: Behaviour = "upstream"
    magnitude: Behaviour = "upstream"

    def __post_init__(self) -> None:
        for name in ("shift_sign", "magnitude"):
            if getattr(self, name) not in ("upstream", "corrected"):
                raise ParamError(name, getattr(self, name), "upstream, corrected")

    def scales(self, arch: str) -> bool:
        """Whether a shift changes the length of keys by more than a rounding."""
        return self.magnitude == "upstream" and abs(float(self.rope.for_shift(arch).magnitude) - 1) > 1e-6

    def turn(self, tensors: Tensors, params: CacheParams, shift: NDArray[np.int32], *, mrope: bool = True) -> None:
        """Turn the K of all layers. Mutates the tensors, and nothing if it raises.

        Args:
            tensors: K and V of a cache.
            params: what that cache is made of.
            shift: int32 [kv_size], by how many positions each cell's keys turn.
            mrope: the generation can shift `mrope` models.

        Raises:
            CacheAbort: upstream ends its process or is undefined for such keys.
            ParamError: K has a type that can only be read here (iq4_nl), or heads shorter than `n_rot`.
        """
        self._check(tensors.layout.type_k, params.n_embd_head_k, mrope)
        rope, keep = self.rope.for_shift(params.arch), self.magnitude == "corrected"
        for rows, n in zip(tensors.k, tensors.layout.n_embd_k, strict=True):
            per = max(1, CHUNK // max(n, 1))
            for at in range(0, len(rows) if n else 0, per):
                part = slice(at, at + per)
                values = dequantize(tensors.layout.type_k, rows[part])
                heads = values.reshape(len(values), -1, params.n_embd_head_k)
                turned = rotate(rope, heads, shift[part], magnitude=not keep)
                rows[part] = quantize(tensors.layout.type_k, turned.reshape(values.shape))

    def _check(self, kind: GGMLType, head: int, mrope: bool) -> None:
        if kind.name == "bf16":
            raise CacheAbort(
                f"type_k is bf16; allowed for a K-shift: {', '.join(SHIFTABLE)} (upstream aborts)",
                quirk="bf16-shift-abort",
            )
        if kind.name not in SHIFTABLE:
            raise ParamError("type_k", kind.name, f"{', '.join(SHIFTABLE)} for a K-shift")
        if self.rope.rope_type is RopeType.MROPE and not mrope:
            raise CacheAbort("rope_type is mrope; allowed for a K-shift here: norm, neox (upstream asserts)")
        if head % kind.block:
            raise CacheAbort(
                f"n_embd_head_k is {head}; allowed for a K-shift of {kind.name}: a multiple of {kind.block} (upstream's"
                " view of the heads is undefined)"
            )
        if head < self.rope.n_rot:
            raise ParamError("n_rot", self.rope.n_rot, f"at most n_embd_head_k = {head}")
