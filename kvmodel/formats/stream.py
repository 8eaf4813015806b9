"""A stream of little-endian fields, read one after the other; every end that comes too early is a named error."""

import mmap
import struct
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kvmodel.formats.errors import StateError

Data = bytes | bytearray | memoryview | mmap.mmap
"""What can be read: anything that lies in memory as bytes, a memory map too."""

U32, I32, U64 = "<I", "<i", "<Q"


class Reader:
    """Reads fields from a buffer without copying it.

    Attributes:
        offset: bytes consumed.

    Args:
        data: the stream from its first byte on.
    """

    def __init__(self, data: Data) -> None:
        self._data = memoryview(data).cast("B")
        self.offset = 0

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self.offset

    def eof(self, field: str, needed: int) -> StateError:
        """The error of a stream that ends inside `field`, at the present offset."""
        found = f"{self.left} of {needed:,} bytes, where the stream ends"
        return StateError("eof", self.offset, field, f"{needed:,} bytes", found, consumed=self.offset)

    def take(self, n: int, field: str) -> memoryview:
        """The next `n` bytes.

        Raises:
            StateError: kind eof; nothing is consumed.
        """
        if n > self.left:
            raise self.eof(field, n)
        self.offset += n
        return self._data[self.offset - n : self.offset]

    def number(self, code: str, field: str) -> int:
        """The next whole number of the given struct code."""
        return int(struct.unpack(code, self.take(struct.calcsize(code), field))[0])

    def expect(self, code: str, kind: str, field: str, wanted: int, words: Callable[[int], str] = str) -> None:
        """Read a number that must be `wanted`.

        Args:
            code: struct code.
            kind: kind of the error if it is another one.
            field: what the number is.
            wanted: the only value allowed.
            words: how the error writes a value.
        """
        begin = self.offset
        found = self.number(code, field)
        if found != wanted:
            raise StateError(kind, begin, field, words(wanted), words(found), consumed=self.offset)

    def words(self) -> NDArray[np.int32]:
        """Every whole 32-bit word that is left, int32, unread and not copied."""
        count = self.left // 4
        return np.frombuffer(self._data, "<i4", count, self.offset) if count else np.empty(0, np.int32)
