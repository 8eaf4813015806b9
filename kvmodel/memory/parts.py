"""One cache and one layer of it, in bytes."""

from dataclasses import dataclass

from kvmodel.ggml import TENSOR_ALIGNMENT
from kvmodel.types import pad


@dataclass(frozen=True)
class LayerMemory:
    """K and V of one layer; in a recurrent part the rolling state R stands for K and the state S for V.

    Attributes:
        il: index of the layer in the model.
        n_embd_k, n_embd_v: elements of a row, one for each cell.
        k_row, v_row: bytes of a row.
        k_bytes, v_bytes: bytes of all rows, those of every stream.
    """

    il: int
    n_embd_k: int
    n_embd_v: int
    k_row: int
    v_row: int
    k_bytes: int
    v_bytes: int

    @property
    def total(self) -> int:
        """K and V together."""
        return self.k_bytes + self.v_bytes


@dataclass(frozen=True)
class PartMemory:
    """One cache.

    Attributes:
        name: kv; base and swa where window layers have a cache of their own; recurrent.
        cells: of one stream.
        n_stream: sets of such cells.
        n_seq_max: sequences it is made for.
        type_k, type_v: element types.
        layers: those that hold something here, in order; a layer without heads is one of 0 bytes.
    """

    name: str
    cells: int
    n_stream: int
    n_seq_max: int
    type_k: str
    type_v: str
    layers: tuple[LayerMemory, ...]

    @property
    def k_bytes(self) -> int:
        """Bytes of K (R) of all layers."""
        return sum(layer.k_bytes for layer in self.layers)

    @property
    def v_bytes(self) -> int:
        """Bytes of V (S) of all layers."""
        return sum(layer.v_bytes for layer in self.layers)

    @property
    def total(self) -> int:
        """Bytes of all tensors."""
        return self.k_bytes + self.v_bytes

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffers: each tensor is rounded up to the alignment of a CPU buffer."""
        return sum(pad(size, TENSOR_ALIGNMENT) for layer in self.layers for size in (layer.k_bytes, layer.v_bytes))

    @property
    def row_bytes(self) -> int:
        """Bytes of one cell in all layers."""
        return sum(layer.k_row + layer.v_row for layer in self.layers)
