"""Numbers in a file that no model can go on with: llama.cpp takes them over without a look, and computes nonsense."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kvmodel.formats.errors import FormatError
from kvmodel.formats.layer_bytes import LayerBytes
from kvmodel.formats.part import PartFile
from kvmodel.ggml import dequantize

CHUNK = 1 << 18
"""Blocks looked at in one go."""


def check_values(parts: Sequence[PartFile]) -> None:
    """Raise FormatError of kind not_finite at the first NaN or infinity in K or V."""
    for part in parts:
        for name, layers in (("K", part.k), ("V", part.v)):
            for il, layer in enumerate(layers):
                _check_layer(layer, f"{name} of layer {il}", part.n_cells)


def check_floats(values: NDArray[np.float32], field: str, offset: int) -> None:
    """Raise FormatError of kind not_finite at the first NaN in logits or embeddings that begin at `offset`."""
    wrong = np.isnan(values)
    if wrong.any():
        at = int(wrong.argmax())
        raise FormatError("not_finite", offset + 4 * at, f"number {at} of the {field}", "a number", "NaN")


def _check_layer(layer: LayerBytes, field: str, n_cells: int) -> None:
    size = layer.kind.block_bytes
    blocks = layer.data.reshape(-1, size)
    for begin in range(0, len(blocks), CHUNK):
        with np.errstate(all="ignore"):
            values = dequantize(layer.kind, blocks[begin : begin + CHUNK])
        wrong = ~np.isfinite(values)
        if wrong.any():
            block, element = divmod(int(wrong.argmax()), layer.kind.block)
            at = begin + block
            cell = at % n_cells if layer.transposed else at * size // layer.row_bytes
            found = "NaN" if np.isnan(values[block, element]) else str(values[block, element])
            raise FormatError("not_finite", layer.offset + at * size, f"{field}, cell {cell}", "finite numbers", found)
