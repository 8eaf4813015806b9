"""Element types of K and V: block sizes, bytes and conversions, all from the gguf package."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from numpy.typing import NDArray

from kvmodel.errors import ParamError

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
"""The types llama.cpp accepts for a KV cache (`kv_cache_types` in common/arg.cpp)."""

QUANTIZABLE = tuple(name for name in KV_TYPES if name != "iq4_nl")
"""The types that values can be turned into; iq4_nl can only be read."""

TENSOR_ALIGNMENT = 32
"""Bytes that every tensor of a CPU buffer is rounded up to (TENSOR_ALIGNMENT in ggml-backend.cpp)."""


@dataclass(frozen=True)
class GGMLType:
    """One element type.

    Attributes:
        name: lower-case ggml name.
        number: value of `ggml_type`, as it stands in files.
        block: elements of one block.
        block_bytes: bytes of one block.
    """

    name: str
    number: int
    block: int
    block_bytes: int

    @property
    def is_quantized(self) -> bool:
        """Whether values are stored in blocks with a scale (`ggml_is_quantized`)."""
        return self.block > 1

    def row_size(self, n: int, name: str = "row") -> int:
        """Bytes of `n` elements (`ggml_row_size`).

        Raises:
            ParamError: `n` is no multiple of the block.
        """
        if n % self.block:
            raise ParamError(name, n, f"a multiple of {self.block} elements for type {self.name}")
        return n // self.block * self.block_bytes


@cache
def ggml_type(name: str, field: str = "type") -> GGMLType:
    """Look a KV element type up by its ggml name.

    Raises:
        ParamError: not one of KV_TYPES.
    """
    if name not in KV_TYPES:
        raise ParamError(field, name, ", ".join(KV_TYPES))
    kind = GGMLQuantizationType[name.upper()]
    block, size = GGML_QUANT_SIZES[kind]
    return GGMLType(name, int(kind), block, size)


def type_words(number: int) -> str:
    """The name of a `ggml_type` number as it stands in a file, with the number: f16 (1)."""
    names = {int(kind): kind.name.lower() for kind in GGMLQuantizationType}
    return f"{names.get(number, 'no known type')} ({number})"


def dequantize(kind: GGMLType, data: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The values that rows of bytes stand for.

    Args:
        kind: element type.
        data: uint8 [..., bytes of a row].

    Returns:
        float32 [..., elements of a row].
    """
    rows = np.ascontiguousarray(data, np.uint8)
    if not rows.size:
        return np.empty((*rows.shape[:-1], rows.shape[-1] // kind.block_bytes * kind.block), np.float32)
    values: NDArray[np.float32] = quants.dequantize(rows, GGMLQuantizationType(kind.number))
    return values


def quantize(kind: GGMLType, values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Rows of values as bytes of an element type, rounded as ggml's reference code rounds.

    Args:
        kind: element type.
        values: float32 [..., elements of a row].

    Returns:
        uint8 [..., bytes of a row]. Values too large for the type become infinite.

    Raises:
        ParamError: the row is no multiple of the block, or there is no encoder for the type (iq4_nl).
    """
    rows = np.ascontiguousarray(values, np.float32)
    size = kind.row_size(rows.shape[-1])
    if kind.name not in QUANTIZABLE:
        raise ParamError("type", kind.name, f"{', '.join(QUANTIZABLE)}: the gguf package encodes no other")
    if not rows.size:
        return np.empty((*rows.shape[:-1], size), np.uint8)
    with np.errstate(over="ignore", invalid="ignore"):
        data = quants.quantize(rows, GGMLQuantizationType(kind.number))
    return np.ascontiguousarray(data).view(np.uint8)
