"""K and V of the layers in a file: types and row sizes at once, bytes on demand.

Only the few bytes before each block of rows are read here, so the size of a file plays no part.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvmodel.formats.errors import FormatError
from kvmodel.formats.stream import I32, U32, U64, Reader
from kvmodel.ggml import KV_TYPES, GGMLType, dequantize, ggml_type, type_words
from kvmodel.limits import MAX_TENSOR_BYTES

Bytes = NDArray[np.uint8]
Cells = slice | NDArray[np.intp]

KINDS = {ggml_type(name).number: ggml_type(name) for name in KV_TYPES}
ALL = slice(None)


@dataclass(frozen=True, eq=False)
class LayerBytes:
    """K or V of one layer in a file.

    Attributes:
        kind: element type.
        header: where its type stands, in bytes.
        offset: where the bytes of the cells begin.
        row_bytes: bytes of one cell.
        data: uint8 [n_cells, row_bytes], or transposed [channels, n_cells, bytes of an element]; read-only, and read
            from the file where it is touched.
    """

    kind: GGMLType
    header: int
    offset: int
    row_bytes: int
    data: Bytes

    @property
    def transposed(self) -> bool:
        """Whether the file holds one row a channel."""
        return self.data.ndim == 3

    @property
    def n_embd(self) -> int:
        """Elements of one cell."""
        return self.row_bytes // self.kind.block_bytes * self.kind.block

    def rows(self, cells: Cells = ALL) -> Bytes:
        """The bytes of some cells, one row a cell however they are stored, uint8 [n, row_bytes]."""
        if not self.transposed:
            return self.data[cells]
        picked = self.data[:, cells].swapaxes(0, 1)
        return picked.reshape(len(picked), self.row_bytes)

    def values(self, cells: Cells = ALL) -> NDArray[np.float32]:
        """What the bytes of some cells stand for, float32 [n, n_embd]."""
        with np.errstate(all="ignore"):  # a damaged file may hold anything, and NaN is shown as such
            return dequantize(self.kind, self.rows(cells))


def read_k(reader: Reader, il: int, n_cells: int) -> LayerBytes:
    """K of layer `il`.

    Raises:
        FormatError: kind key_type, key_row_size or eof.
    """
    return _read_rows(reader, "key", f"K of layer {il}", n_cells)


def read_v(reader: Reader, il: int, n_cells: int, v_trans: bool) -> LayerBytes:
    """V of layer `il`.

    Raises:
        FormatError: kind value_type, value_row_size, value_el_size, value_gqa or eof.
    """
    field = f"V of layer {il}"
    return _read_channels(reader, field, n_cells) if v_trans else _read_rows(reader, "value", field, n_cells)


def _read_rows(reader: Reader, kind_prefix: str, field: str, n_cells: int) -> LayerBytes:
    header = reader.offset
    kind = _kind(reader, f"{kind_prefix}_type", field)
    row = _size(reader, U64, f"{kind_prefix}_row_size", f"row size of {field}", kind.block_bytes)
    begin = reader.offset
    data = np.asarray(reader.take(n_cells * row, field)).reshape(n_cells, row)
    return LayerBytes(kind, header, begin, row, _read_only(data))


def _read_channels(reader: Reader, field: str, n_cells: int) -> LayerBytes:
    header = reader.offset
    kind = _kind(reader, "value_type", field)
    if kind.is_quantized:
        raise FormatError("value_type", header, f"type of {field}", "f32, f16 or bf16 while V is transposed", kind.name)
    at = reader.offset
    element = reader.number(U32, f"element size of {field}")
    if element != kind.block_bytes:
        raise FormatError("value_el_size", at, f"element size of {field}", f"{kind.block_bytes} bytes", element)
    channels = _size(reader, U32, "value_gqa", f"channels of {field}", 1)
    begin = reader.offset
    data = np.asarray(reader.take(n_cells * channels * element, field)).reshape(channels, n_cells, element)
    return LayerBytes(kind, header, begin, channels * element, _read_only(data))


def _kind(reader: Reader, name: str, field: str) -> GGMLType:
    at = reader.offset
    number = reader.number(I32, f"type of {field}")
    if number not in KINDS:
        raise FormatError(name, at, f"type of {field}", ", ".join(KV_TYPES), type_words(number))
    return KINDS[number]


def _size(reader: Reader, code: str, name: str, field: str, unit: int) -> int:
    at = reader.offset
    size = reader.number(code, field)
    if size % unit or size > MAX_TENSOR_BYTES:
        allowed = f"a multiple of {unit}, {MAX_TENSOR_BYTES:,} at most"
        raise FormatError(name, at, field, allowed, f"{size:,}")
    return size


def _read_only(data: Bytes) -> Bytes:
    data.flags.writeable = False
    return data
