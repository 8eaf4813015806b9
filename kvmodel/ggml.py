"""Element types of K and V: block sizes and bytes, from the gguf package's tables."""

from dataclasses import dataclass
from functools import cache

from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from kvmodel.errors import ParamError

KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
"""The types llama.cpp accepts for a KV cache (`kv_cache_types` in common/arg.cpp)."""

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
