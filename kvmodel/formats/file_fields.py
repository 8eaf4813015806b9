"""The fields of a file around its cache: magic, version, tokens, architecture, outputs."""

import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kvmodel.formats.errors import FormatError
from kvmodel.formats.part import PartFile, read_part
from kvmodel.formats.sniff import KINDS, Source, sniff
from kvmodel.formats.stream import U32, U64, Data, Reader
from kvmodel.limits import MAX_NAME_BYTES

MOST_PARTS = 2
"""Sets of cells in one file: a pair of caches has two."""


def opened(source: Source) -> memoryview:
    """A file mapped into memory, read-only, or bytes as they are.

    Raises:
        OSError: the file cannot be opened.
    """
    if not isinstance(source, str | os.PathLike):
        return memoryview(source).cast("B").toreadonly()
    with Path(source).open("rb") as file:
        if not file.read(1):
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def stored(code: str, values: ArrayLike, dtype: str) -> Iterator[Data]:
    """Values as a file holds them: their number, then themselves.

    Args:
        code: struct code of the number.
        values: one-dimensional.
        dtype: of one value.
    """
    array = np.ascontiguousarray(values, dtype)
    yield struct.pack(code, len(array))
    yield array.tobytes()


class FieldReader(Reader):
    """Reads the fields of one file in order.

    Attributes:
        data: the file.

    Args:
        data: the file.
        magic, version: what it must begin with.

    Raises:
        FormatError: kind magic or version.
    """

    def __init__(self, data: memoryview, magic: int, version: int) -> None:
        super().__init__(data)
        self.data = data
        found = self.number(U32, "magic")
        if found != magic:
            wanted = f"{magic:#010x}, a {KINDS[magic]} file"
            raise FormatError("magic", 0, "magic", wanted, f"{found:#010x}, {sniff(data[:8]).words}")
        found = self.number(U32, "version")
        if found != version:
            raise FormatError("version", 4, "version", version, f"{found:,}")

    def tokens(self) -> NDArray[np.int32]:
        """The program's tokens, int32 [n]."""
        tokens: NDArray[np.int32] = self._array(U32, "<i4", "tokens")
        return tokens

    def arch(self) -> str:
        """The model's architecture.

        Raises:
            FormatError: kind arch, if it is too long or no text.
        """
        at = self.offset
        n = self.number(U32, "length of the architecture's name")
        if n > MAX_NAME_BYTES:
            allowed = f"{MAX_NAME_BYTES} at most"
            raise FormatError("arch", at, "length of the architecture's name", allowed, f"{n:,}")
        name = bytes(self.take(n, "architecture"))
        if not name.isascii() or not name.decode("ascii").isprintable():
            raise FormatError("arch", at + 4, "architecture", "printable ASCII", repr(name)[:80])
        return name.decode("ascii")

    def output_ids(self) -> NDArray[np.int32]:
        """Batch positions of the outputs, int32 [n].

        Raises:
            FormatError: kind output_id, if one is below 0.
        """
        ids: NDArray[np.int32] = self._array(U32, "<i4", "outputs")
        if (ids < 0).any():
            wrong = int((ids < 0).argmax())
            at = self.offset - 4 * (len(ids) - wrong)
            raise FormatError("output_id", at, f"output {wrong}", "0 or more", int(ids[wrong]))
        return ids

    def floats(self, field: str) -> NDArray[np.float32]:
        """Logits or embeddings, float32 [n]."""
        values: NDArray[np.float32] = self._array(U64, "<f4", field)
        return values

    def parts(self) -> tuple[PartFile, ...]:
        """The cache: one set of cells, or two.

        Raises:
            FormatError: of a field of theirs, or kind trailing.
        """
        parts = [read_part(self)]
        while self.left and len(parts) < MOST_PARTS:
            parts.append(read_part(self))
        if self.left:
            allowed = "nothing behind the second half of the cache"
            raise FormatError("trailing", self.offset, "end of the file", allowed, f"{self.left:,} more bytes")
        return tuple(parts)

    def _array(self, code: str, dtype: str, field: str) -> Any:
        n = self.number(code, f"number of {field}")
        return np.asarray(self.take(n * np.dtype(dtype).itemsize, field)).view(dtype)
