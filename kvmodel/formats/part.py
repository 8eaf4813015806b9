"""The cells of one cache inside a file, inspected without knowing the model: what the file itself says."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvmodel.formats.errors import FormatError
from kvmodel.formats.layer_bytes import LayerBytes, read_k, read_v
from kvmodel.formats.state_cells import encode_cells
from kvmodel.formats.state_table import CellRules, CellTable, read_table
from kvmodel.formats.stream import U32, Data, Reader
from kvmodel.limits import INT32_MAX, MAX_CELLS, MAX_LAYERS, MAX_SEQ

ANY_CELLS = CellRules(n_seq_max=MAX_SEQ, lowest_pos=-INT32_MAX - 1, one_cell_each=False)
"""What holds for the cells of any cache; a recurrent one has positions below 0 too."""

CHUNK = 1 << 16
"""Cells compared in one go."""


@dataclass(frozen=True, eq=False)
class PartFile:
    """One set of cells in a file: a whole cache, or one half of a pair.

    Attributes:
        offset, end: its first byte in the file, and the first one behind it.
        pos: int32 [n], positions, in the order of the cells; their indices are not in the file.
        seqs: uint64 [n], owners; a sequence file of January 2025, or of a recurrent cache, names none.
        v_trans: V is stored transposed.
        k, v: the layers in storage order.
    """

    offset: int
    end: int
    pos: NDArray[np.int32]
    seqs: NDArray[np.uint64]
    v_trans: bool
    k: tuple[LayerBytes, ...]
    v: tuple[LayerBytes, ...]

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.pos)

    @property
    def n_layer(self) -> int:
        """Number of layers."""
        return len(self.k)

    def pieces(self) -> Iterator[Data]:
        """Its bytes, written anew from what was read; K and V come straight from the file."""
        yield struct.pack("<I", self.n_cells)
        yield encode_cells(self.pos, self.seqs)
        yield struct.pack("<II", self.v_trans, self.n_layer)
        for layer in (*self.k, *self.v):
            if layer.transposed:
                yield struct.pack("<iII", layer.kind.number, layer.kind.block_bytes, layer.n_embd)
            else:
                yield struct.pack("<iQ", layer.kind.number, layer.row_bytes)
            yield layer.data.reshape(-1).data


def read_part(reader: Reader) -> PartFile:
    """One set of cells, without the bytes of K and V.

    Args:
        reader: stands at the number of cells.

    Raises:
        FormatError: the first field that cannot be.
    """
    begin = reader.offset
    table = _cells(reader)
    at = reader.offset
    v_trans, n_layer = (reader.number(U32, field) for field in ("v_trans", "number of layers"))
    if v_trans > 1:
        raise FormatError("v_trans", at, "v_trans", "0 or 1", v_trans)
    if n_layer > MAX_LAYERS:
        raise FormatError("layer_count", at + 4, "number of layers", f"{MAX_LAYERS:,} at most", f"{n_layer:,}")
    n = len(table.pos)
    k = tuple(read_k(reader, il, n) for il in range(n_layer))
    v = tuple(read_v(reader, il, n, bool(v_trans)) for il in range(n_layer))
    return PartFile(begin, reader.offset, table.pos, table.seqs, bool(v_trans), k, v)


def _cells(reader: Reader) -> CellTable:
    begin = reader.offset
    count = reader.number(U32, "cell_count")
    if count > MAX_CELLS:
        raise FormatError("too_many_cells", begin, "cell_count", f"{MAX_CELLS:,} at most", f"{count:,}")
    at, words = reader.offset, reader.words()
    table = read_table(reader, count, ANY_CELLS)
    if table.end is not None:
        raise table.end
    _check_order(table, words, at)
    for array in (table.pos, table.seqs):
        array.flags.writeable = False
    return table


def _check_order(table: CellTable, words: NDArray[np.int32], at: int) -> None:
    """Refuse owners that do not ascend: llama.cpp writes a set, and what it never writes cannot be written again."""
    for begin in range(0, len(table.pos), CHUNK):
        part = slice(begin, begin + CHUNK)
        anew = np.frombuffer(encode_cells(table.pos[part], table.seqs[part]), "<i4")
        same = words[: len(anew)] == anew
        if not same.all():
            wrong = int(same.argmin())
            raise FormatError(
                "owner_order", at + 4 * wrong, "seq_id", "ids ascending, each once in a cell", int(words[wrong])
            )
        words, at = words[len(anew) :], at + 4 * len(anew)
