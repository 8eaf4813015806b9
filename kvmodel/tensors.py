"""K and V of every layer as bytes in their element type: what the cells stand for.

K is one row a cell. V is the same, or transposed: one row a channel, one element a cell (llama.cpp stores it so
without flash attention).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvmodel.errors import ParamError, check_int
from kvmodel.ggml import GGMLType, dequantize, quantize
from kvmodel.limits import INT32_MAX, MAX_TENSOR_BYTES
from kvmodel.types import CacheParams

Bytes = NDArray[np.uint8]
Index = NDArray[np.intp]

FILL_CHUNK = 1 << 20


@dataclass(frozen=True)
class Layout:
    """How the tensors of one cache lie in memory.

    Attributes:
        kv_size: cells.
        type_k, type_v: element types.
        v_trans: V is stored transposed.
        layers: model indices of the layers, in storage order.
        n_embd_k, n_embd_v: elements of one cell's K and V, for every layer held.

    Raises:
        ParamError: a row is no multiple of its type's block, or a quantised V is transposed: its blocks would
            span cells. llama.cpp creates no such context.
    """

    kv_size: int
    type_k: GGMLType
    type_v: GGMLType
    v_trans: bool
    layers: tuple[int, ...]
    n_embd_k: tuple[int, ...]
    n_embd_v: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.v_trans and self.type_v.is_quantized:
            raise ParamError("type_v", self.type_v.name, "f32, f16 or bf16 while V is transposed")
        for n in self.n_embd_k:
            self.type_k.row_size(n, "n_embd_k_gqa")
        for n in self.n_embd_v:
            self.type_v.row_size(n, "n_embd_v_gqa")

    @classmethod
    def of(cls, params: CacheParams) -> "Layout":
        """The layout of a cache of attention layers."""
        held = params.layers
        return cls(
            params.kv_size,
            params.ggml_k,
            params.ggml_v,
            params.v_trans,
            held,
            tuple(params.n_embd_k_gqa(il) for il in held),
            tuple(params.n_embd_v_gqa(il) for il in held),
        )

    @property
    def k_row_bytes(self) -> tuple[int, ...]:
        """Bytes of one cell's K, for every layer held."""
        return tuple(self.type_k.row_size(n) for n in self.n_embd_k)

    @property
    def v_row_bytes(self) -> tuple[int, ...]:
        """Bytes of one cell's V, for every layer held, transposed or not."""
        return tuple(self.type_v.row_size(n) for n in self.n_embd_v)

    @property
    def cell_bytes(self) -> int:
        """Bytes of one cell's K and V over all layers held."""
        return sum(self.k_row_bytes) + sum(self.v_row_bytes)


class Tensors:
    """The bytes of one cache. Layers are counted in storage order here.

    Attributes:
        layout: how they lie.
        k: for every layer uint8 [kv_size, bytes of a K row].
        v: for every layer uint8 [kv_size, bytes of a V row], or transposed [n_embd_v, kv_size, bytes of an element].

    Raises:
        ParamError: all tensors together exceed MAX_TENSOR_BYTES.
    """

    def __init__(self, layout: Layout) -> None:
        total = layout.kv_size * layout.cell_bytes
        if total > MAX_TENSOR_BYTES:
            raise ParamError("K and V", f"{total:,} bytes", f"{MAX_TENSOR_BYTES:,} bytes at most for one cache")
        self.layout = layout
        size, element = layout.kv_size, layout.type_v.block_bytes
        self.k: list[Bytes] = [np.zeros((size, row), np.uint8) for row in layout.k_row_bytes]
        self.v: list[Bytes] = [
            np.zeros((n, size, element) if layout.v_trans else (size, row), np.uint8)
            for n, row in zip(layout.n_embd_v, layout.v_row_bytes, strict=True)
        ]

    def clear(self) -> None:
        """Set every byte to 0. Mutates."""
        for array in (*self.k, *self.v):
            array[:] = 0

    def fill(self, seed: int) -> None:
        """Write a pattern that differs from byte to byte, so that moved bytes can be followed. Mutates.

        Args:
            seed: gives another pattern, 0 to 2^31 - 1.
        """
        seed = check_int("seed", seed, 0, INT32_MAX)
        for kind, arrays in enumerate((self.k, self.v)):
            for layer, array in enumerate(arrays):
                _fill(array.reshape(-1), (layer * 40_503 + kind * 97 + seed * 1_013_904_223) % 2**32)

    def move(self, src: Index, dst: Index) -> None:
        """Copy the K and V of cells `src` to cells `dst`, as a defrag does; what stood in `src` stays. Mutates.

        A plan takes its sources behind all its destinations, so the order of the copies does not show
        (`build_graph_defrag` in llama-kv-cache-unified.cpp).
        """
        for rows in self.k:
            rows[dst] = rows[src]
        for array in self.v:
            cells = array.swapaxes(0, 1) if self.layout.v_trans else array
            cells[dst] = cells[src]

    def k_rows(self, layer: int, cells: Index | slice) -> Bytes:
        """K of some cells, uint8 [n, bytes of a K row]."""
        return self.k[layer][cells]

    def v_rows(self, layer: int, cells: Index | slice) -> Bytes:
        """V of some cells, one row a cell however it is stored, uint8 [n, bytes of a V row]."""
        if not self.layout.v_trans:
            return self.v[layer][cells]
        picked = self.v[layer][:, cells].swapaxes(0, 1)
        return picked.reshape(len(picked), self.layout.v_row_bytes[layer])

    def store(self, layer: int, begin: int, k: NDArray[np.float32], v: NDArray[np.float32]) -> None:
        """Put K and V of a ubatch's tokens into the cells of its slot (`cpy_k`, `cpy_v`). Mutates.

        Args:
            layer: ordinal of the layer within this cache.
            begin: first cell of the slot.
            k: float32 [n, n_embd_k], converted to the element type of K.
            v: float32 [n, n_embd_v], converted to the element type of V.

        Raises:
            ParamError: the rows do not fit the layer or the cache, or the type has no encoder.
        """
        layout = self.layout
        check_int("layer", layer, 0, len(layout.layers) - 1)
        check_int("begin", begin, 0, layout.kv_size - len(k))
        for name, values, width in (("k", k, layout.n_embd_k[layer]), ("v", v, layout.n_embd_v[layer])):
            if values.shape != (len(k), width):
                raise ParamError(name, f"an array of shape {values.shape}", f"shape {(len(k), width)}")
        part = slice(begin, begin + len(k))
        self.k[layer][part] = quantize(layout.type_k, k)
        rows = quantize(layout.type_v, v)
        if layout.v_trans:
            self.v[layer][:, part] = rows.reshape(len(v), -1, layout.type_v.block_bytes).swapaxes(0, 1)
        else:
            self.v[layer][part] = rows

    def k_values(self, layer: int, cells: Index | slice) -> NDArray[np.float32]:
        """What the K of some cells stands for, float32 [n, n_embd_k]."""
        return dequantize(self.layout.type_k, self.k_rows(layer, cells))

    def v_values(self, layer: int, cells: Index | slice) -> NDArray[np.float32]:
        """What the V of some cells stands for, float32 [n, n_embd_v]."""
        return dequantize(self.layout.type_v, self.v_rows(layer, cells))


def _fill(data: Bytes, offset: int) -> None:
    """Byte number o becomes two middle bytes of o times a large odd number plus `offset`, mixed."""
    for at in range(0, len(data), FILL_CHUNK):
        part = data[at : at + FILL_CHUNK]
        x = np.arange(at, at + len(part), dtype=np.uint32) * np.uint32(2_654_435_761) + np.uint32(offset)
        part[:] = ((x >> np.uint32(24)) ^ (x >> np.uint32(8))) & np.uint32(255)
