"""A place in the bytes of a GGUF header: reads that never go past their end, nor past what a header may take."""

import struct
from dataclasses import dataclass, field
from typing import Self

from gguf.constants import GGUFValueType

from kvmodel.formats.errors import FormatError
from kvmodel.formats.stream import U32, U64, Data
from kvmodel.limits import MAX_HEADER_BYTES

GGUF_KINDS = ("eof", "magic", "endian", "version", "count", "key", "duplicate", "type", "text", "too_large")
"""Every reason to refuse a header, roughly in the order in which they can be met."""

LENGTH = struct.Struct(U64)


class GGUFError(FormatError):
    """A header that cannot be read; `kind` is one of GGUF_KINDS."""


class Skipped(int):
    """How long a value is that was only moved past.

    Attributes:
        words: what it is, for a message, such as "an array of 32,000 texts".
    """

    words: str

    def __new__(cls, length: int, words: str) -> Self:
        """A length, with `{n}` in the words standing for it."""
        made = super().__new__(cls, length)
        made.words = words.format(n=f"{length:,}")
        return made


@dataclass
class Cursor:
    """A place in the bytes of a header; every read checks that the bytes are there.

    Attributes:
        data: the file, or its first bytes.
        offset: bytes read.
        skipped: what was only moved past, by key.
    """

    data: Data
    offset: int = 0
    skipped: dict[str, Skipped] = field(default_factory=dict)

    def need(self, n: int, name: str) -> int:
        """Move past the next `n` bytes and return where they begin."""
        begin, left = self.offset, len(self.data) - self.offset
        if n > left:
            raise GGUFError("eof", begin, name, f"{n:,} bytes", f"{left:,} bytes, where the data ends")
        if begin + n > MAX_HEADER_BYTES:
            raise GGUFError("too_large", begin, name, f"a header of at most {MAX_HEADER_BYTES:,} bytes", f"{n:,} bytes")
        self.offset += n
        return begin

    def number(self, code: str, name: str) -> int:
        """The next whole number of the given struct code."""
        return int(struct.unpack_from(code, self.data, self.need(struct.calcsize(code), name))[0])

    def take(self, n: int, name: str) -> bytes:
        """The next `n` bytes."""
        begin = self.need(n, name)
        return bytes(self.data[begin : begin + n])

    def count(self, each: int, name: str) -> int:
        """A number of entries of at least `each` bytes, which must still be there."""
        begin = self.offset
        found, left = self.number(U64, name), len(self.data) - self.offset
        if found * each > left:
            raise GGUFError("count", begin, name, f"at most {left // each:,}, as {left:,} bytes are left", f"{found:,}")
        return found

    def kind(self, name: str) -> GGUFValueType:
        """The next value type."""
        begin = self.offset
        found = self.number(U32, name)
        if found not in tuple(GGUFValueType):
            raise GGUFError("type", begin, name, f"a value type from 0 to {max(GGUFValueType)}", found)
        return GGUFValueType(found)

    def skip_texts(self, key: str) -> int:
        """Move past an array of texts; return how many there are. Vocabularies are long: the loop does no more."""
        count = self.count(8, f"entries of {key}")
        data, at, end = self.data, self.offset, min(len(self.data), MAX_HEADER_BYTES)
        for _ in range(count):
            step = 8 + LENGTH.unpack_from(data, at)[0] if at + 8 <= end else end
            if at + step > end:
                self.offset = at
                self.need(self.count(1, f"length of a text of {key}"), key)  # raises: the text is not there
            at += step
        self.offset = at
        return count
