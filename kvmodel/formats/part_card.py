"""How the cells of a file show themselves: maps, sequences and layers."""

from collections.abc import Iterator, Sequence

import numpy as np

from kvmodel.cells import seq_bit
from kvmodel.formats.layer_bytes import LayerBytes
from kvmodel.formats.part import PartFile
from kvmodel.show import Table, cell_map
from kvmodel.spans import members, union
from kvmodel.words import count, run

HALVES = ("full half", "window half")


def _named(parts: Sequence[PartFile]) -> Iterator[tuple[str, PartFile]]:
    return zip(HALVES if len(parts) > 1 else ("",), parts, strict=True)


def part_maps(parts: Sequence[PartFile]) -> str:
    """One map of the cells for every part; `?` is a cell without an owner in the file."""
    maps = [
        (f"{name}, {count(part.n_cells, 'cell')}\n" if name else "") + cell_map(part.pos, part.seqs)
        for name, part in _named(parts)
    ]
    return "\n".join(maps)


def owner_table(parts: Sequence[PartFile]) -> Table:
    """The sequences of every part, with their positions and numbers of cells."""
    rows = [(name, *row) for name, part in _named(parts) for row in _owners(part)]
    return Table.of(("half", "sequence", "positions", "cells"), rows) if rows else Table((), ())


def _owners(part: PartFile) -> Iterator[tuple[str, str, int]]:
    """Sequence, positions and number of cells; cells without an owner last."""
    groups = [(str(seq), (part.seqs & seq_bit(seq)) != 0) for seq in members(union(part.seqs))]
    for name, mask in [*groups, ("not named", part.seqs == 0)]:
        if mask.any():
            pos = part.pos[mask]
            yield name, run(int(pos.min()), int(pos.max())), int(np.count_nonzero(mask))


def layer_table(parts: Sequence[PartFile]) -> Table:
    """Types, row sizes and places of K and V, one row a layer."""
    columns = ("half", "layer", "K", "bytes a cell", "at byte", "V", "bytes a cell", "at byte")
    rows = [
        (name, il, *_layer(k), *_layer(v))
        for name, part in _named(parts)
        for il, (k, v) in enumerate(zip(part.k, part.v, strict=True))
    ]
    return Table.of(columns, rows)


def _layer(layer: LayerBytes) -> tuple[str, str, str]:
    kind = f"{layer.kind.name}, transposed" if layer.transposed else layer.kind.name
    return kind, f"{layer.row_bytes:,}", f"{layer.offset:,}"
