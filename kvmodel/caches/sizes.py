"""Bytes of the K and V tensors of one cache."""

from typing import Literal

from kvmodel.ggml import TENSOR_ALIGNMENT
from kvmodel.types import CacheParams, pad


def tensor_bytes(params: CacheParams, which: Literal["k", "v"]) -> list[int]:
    """Bytes of the K or V tensor of every layer held, in storage order; transposed V takes the same.

    Raises:
        ParamError: a row is no multiple of the type's block.
    """
    if which == "k":
        rows = [params.ggml_k.row_size(params.n_embd_k_gqa(il), "n_embd_k_gqa") for il in params.layers]
    else:
        rows = [params.ggml_v.row_size(params.n_embd_v_gqa(il), "n_embd_v_gqa") for il in params.layers]
    return [row * params.kv_size for row in rows]


def buffer_bytes(params: CacheParams) -> int:
    """Bytes of the CPU buffer that holds all tensors: each is rounded up to the alignment."""
    return sum(pad(size, TENSOR_ALIGNMENT) for size in tensor_bytes(params, "k") + tensor_bytes(params, "v"))
