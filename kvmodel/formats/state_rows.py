"""K and V in a state stream: for every layer its type and sizes, then the bytes of the cells.

Counterpart of `state_write_data` and `state_read_data` in llama-kv-cache-unified.cpp; the older caches write the same.
"""

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kvmodel.formats.errors import StateError
from kvmodel.formats.stream import I32, U32, U64, Reader
from kvmodel.ggml import type_words
from kvmodel.tensors import Layout, Tensors


def rows_size(layout: Layout, n_cells: int) -> int:
    """Bytes of the K and V part for `n_cells` cells."""
    header_v = struct.calcsize("<iII" if layout.v_trans else "<iQ")
    headers = len(layout.layers) * (struct.calcsize("<iQ") + header_v)
    return struct.calcsize("<II") + headers + n_cells * layout.cell_bytes


def encode_rows(layout: Layout, tensors: Tensors | None, cells: NDArray[np.intp]) -> Iterator[bytes]:
    """The K and V of some cells piece by piece, in stream order.

    Args:
        layout: types and sizes.
        tensors: the bytes; None writes zeros.
        cells: ascending.
    """
    part = _as_slice(cells)
    yield struct.pack("<II", layout.v_trans, len(layout.layers))
    for layer, size in enumerate(layout.k_row_bytes):
        yield struct.pack("<iQ", layout.type_k.number, size)
        yield tensors.k[layer][part].tobytes() if tensors else bytes(len(cells) * size)
    for layer, (size, n_embd) in enumerate(zip(layout.v_row_bytes, layout.n_embd_v, strict=True)):
        kind = layout.type_v
        if layout.v_trans:
            yield struct.pack("<iII", kind.number, kind.block_bytes, n_embd)
        else:
            yield struct.pack("<iQ", kind.number, size)
        yield _v_of(tensors, layer, part).tobytes() if tensors else bytes(len(cells) * size)


def _as_slice(cells: NDArray[np.intp]) -> NDArray[np.intp] | slice:
    """Neighbouring cells as a slice, which copies faster."""
    if len(cells) and cells[-1] - cells[0] == len(cells) - 1:
        return slice(int(cells[0]), int(cells[-1]) + 1)
    return cells


def _v_of(tensors: Tensors, layer: int, part: NDArray[np.intp] | slice) -> NDArray[np.uint8]:
    return tensors.v[layer][:, part] if tensors.layout.v_trans else tensors.v[layer][part]


def read_rows(reader: Reader, layout: Layout, tensors: Tensors | None, head: int, count: int) -> None:
    """Read K and V into the cells [head, head + count). Mutates `tensors`, on an early end partly.

    Args:
        reader: stands behind the cells.
        layout: what the stream must agree with.
        tensors: where the bytes go; with None they are skipped.
        head: first cell.
        count: cells that the stream announces.

    Raises:
        StateError: the first field that does not agree, or an early end.
    """
    begin = reader.offset
    v_trans = reader.number(U32, "v_trans")
    reader.expect(U32, "layer_count", "number of layers", len(layout.layers))
    read = reader.offset
    if count > layout.kv_size:
        limit = f"{layout.kv_size:,} at most"
        raise StateError("too_many_cells_data", begin, "cell_count", limit, f"{count:,}", consumed=read)
    if bool(v_trans) != layout.v_trans:
        raise StateError("v_trans", begin, "v_trans", int(layout.v_trans), v_trans, consumed=read)
    slot = slice(head, head + count)
    for layer, il in enumerate(layout.layers):
        _read_k(reader, layout, tensors, layer, il, slot)
    for layer, il in enumerate(layout.layers):
        (_read_v_channels if layout.v_trans else _read_v)(reader, layout, tensors, layer, il, slot)


def _read_k(reader: Reader, layout: Layout, tensors: Tensors | None, layer: int, il: int, slot: slice) -> None:
    size, count = layout.k_row_bytes[layer], slot.stop - slot.start
    reader.expect(I32, "key_type", f"K type of layer {il}", layout.type_k.number, type_words)
    reader.expect(U64, "key_row_size", f"K row size of layer {il}", size, _bytes)
    rows = reader.take(count * size, f"K of layer {il}")
    if tensors:
        tensors.k[layer][slot] = np.frombuffer(rows, np.uint8).reshape(count, size)


def _read_v(reader: Reader, layout: Layout, tensors: Tensors | None, layer: int, il: int, slot: slice) -> None:
    size, count = layout.v_row_bytes[layer], slot.stop - slot.start
    reader.expect(I32, "value_type", f"V type of layer {il}", layout.type_v.number, type_words)
    reader.expect(U64, "value_row_size", f"V row size of layer {il}", size, _bytes)
    rows = reader.take(count * size, f"V of layer {il}")
    if tensors:
        tensors.v[layer][slot] = np.frombuffer(rows, np.uint8).reshape(count, size)


def _read_v_channels(reader: Reader, layout: Layout, tensors: Tensors | None, layer: int, il: int, slot: slice) -> None:
    """Read transposed V. Upstream fetches one channel at a time, so the whole ones before an early end are stored."""
    element, channels, count = layout.type_v.block_bytes, layout.n_embd_v[layer], slot.stop - slot.start
    reader.expect(I32, "value_type", f"V type of layer {il}", layout.type_v.number, type_words)
    reader.expect(U32, "value_el_size", f"V element size of layer {il}", element, _bytes)
    reader.expect(U32, "value_gqa", f"V channels of layer {il}", channels)
    size = count * element
    whole = min(channels, reader.left // size) if size else channels
    rows = reader.take(whole * size, f"V of layer {il}")
    if tensors:
        tensors.v[layer][:whole, slot] = np.frombuffer(rows, np.uint8).reshape(whole, count, element)
    if whole < channels:
        raise reader.eof(f"V of layer {il}, channel {whole}", size)


def _bytes(n: int) -> str:
    return f"{n:,} bytes"
