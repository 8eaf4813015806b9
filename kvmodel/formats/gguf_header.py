"""The header of a GGUF model file: its keys and values, without touching a tensor.

gguf's own `GGUFReader` lays an array over every tensor and therefore needs the whole file; it also takes every count
on trust. A planner is given files of many gigabytes, first parts of split files and uploads of the first megabytes,
so the keys are read here, with gguf's numbers and names and with every count bounded before memory is taken. The
rules are those of `gguf_init_from_file_impl` in ggml/src/gguf.cpp.
"""

import mmap
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from gguf.constants import GGUF_MAGIC, GGUF_VERSION, GGUFValueType

from kvmodel.errors import ParamError
from kvmodel.formats.gguf_header_cursor import Cursor, GGUFError, Skipped
from kvmodel.formats.stream import U32, U64, Data
from kvmodel.limits import INT32_MAX, MAX_HEADER_KEYS, MAX_HEADER_STRING, MAX_LAYERS

MOST_PATH = 200
"""Characters of a path that a message shows."""

Value = int | float | bool | str | tuple[int | float | bool, ...]
"""A value of a header: a number, a truth value, a text, or one number for each layer."""

MAGIC = struct.pack(U32, GGUF_MAGIC)
OLDEST_VERSION = 2
MAX_KEY_BYTES = 65_535
SMALLEST_PAIR = 13
"""Bytes of the smallest key and value: an empty key's length, a type and one byte."""

SCALARS = {
    GGUFValueType.UINT8: "<u1",
    GGUFValueType.INT8: "<i1",
    GGUFValueType.UINT16: "<u2",
    GGUFValueType.INT16: "<i2",
    GGUFValueType.UINT32: "<u4",
    GGUFValueType.INT32: "<i4",
    GGUFValueType.FLOAT32: "<f4",
    GGUFValueType.BOOL: "?",
    GGUFValueType.UINT64: "<u8",
    GGUFValueType.INT64: "<i8",
    GGUFValueType.FLOAT64: "<f8",
}
"""NumPy's type of each value that has a fixed size."""


@dataclass(frozen=True)
class GGUFHeader:
    """What a GGUF file says about itself before its tensors.

    Attributes:
        version: of the format, 2 or 3.
        n_tensors: tensors of this file; of a split model, those of this part.
        values: values by key: numbers, truth values, short texts and numbers for each layer.
        skipped: by key, how many entries or bytes a value has that cannot say anything about layers (vocabularies,
            chat templates), and what it is.
        n_bytes: bytes from the start of the file to the end of the last value.
    """

    version: int
    n_tensors: int
    values: Mapping[str, Value]
    skipped: Mapping[str, Skipped]
    n_bytes: int


def read_header(data: Data) -> GGUFHeader:
    """Read the header from the first bytes of a GGUF file.

    Args:
        data: the file, or any prefix of it that holds all keys and values; what follows is not looked at.

    Raises:
        GGUFError: the bytes are no little-endian GGUF of version 2 or 3, end too early, or ask for too much.
    """
    cursor = Cursor(data)
    version = _version(cursor)
    n_tensors, n_kv = _counts(cursor)
    values: dict[str, Value] = {}
    for _ in range(n_kv):
        begin = cursor.offset
        key = _key(cursor)
        if key in values or key in cursor.skipped:
            raise GGUFError("duplicate", begin, key, "each key once", "there already")
        value = _value(cursor, key)
        if value is not None:
            values[key] = value
    kept, skipped = MappingProxyType(values), MappingProxyType(cursor.skipped)
    return GGUFHeader(version, n_tensors, kept, skipped, cursor.offset)


def open_header(path: str | os.PathLike[str]) -> GGUFHeader:
    """Read the header of a file, of any size; the file is mapped into memory and only its first pages are touched.

    Raises:
        ParamError: there is no such file, or it is not a plain one.
        GGUFError: see `read_header`.
    """
    file = Path(path)
    try:
        handle = file.open("rb") if file.is_file() else None
    except OSError as error:
        raise ParamError("path", str(path)[:MOST_PATH], f"a file that can be read ({error.strerror})") from error
    except ValueError as error:
        raise ParamError("path", str(path)[:MOST_PATH], f"a path ({error})") from error
    if handle is None:
        raise ParamError("path", str(path)[:MOST_PATH], "a plain file that is there")
    with handle:
        if not os.fstat(handle.fileno()).st_size:
            return read_header(b"")
        with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            return read_header(mapped)


def _version(cursor: Cursor) -> int:
    magic = cursor.take(len(MAGIC), "magic")
    if magic != MAGIC:
        raise GGUFError("magic", 0, "magic", MAGIC, magic)
    begin = cursor.offset
    version = cursor.number(U32, "version")
    if version and not version & 0xFFFF:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        raise GGUFError("endian", begin, "version", "a little-endian file", f"{swapped} in big-endian order")
    if not OLDEST_VERSION <= version <= GGUF_VERSION:
        raise GGUFError("version", begin, "version", f"{OLDEST_VERSION} to {GGUF_VERSION}", version)
    return version


def _counts(cursor: Cursor) -> tuple[int, int]:
    """Tensors, which a prefix need not hold, and keys, which it must."""
    begin = cursor.offset
    n_tensors = cursor.number(U64, "tensor count")
    if n_tensors > INT32_MAX:
        raise GGUFError("count", begin, "tensor count", f"at most {INT32_MAX:,}", f"{n_tensors:,}")
    begin = cursor.offset
    n_kv = cursor.count(SMALLEST_PAIR, "key count")
    if n_kv > MAX_HEADER_KEYS:
        raise GGUFError("count", begin, "key count", f"at most {MAX_HEADER_KEYS:,}", f"{n_kv:,}")
    return n_tensors, n_kv


def _key(cursor: Cursor) -> str:
    begin = cursor.offset
    length = cursor.count(1, "length of a key")
    if not 0 < length <= MAX_KEY_BYTES:
        raise GGUFError("key", begin, "length of a key", f"1 to {MAX_KEY_BYTES:,}", f"{length:,}")
    raw = cursor.take(length, "key")
    try:
        return raw.decode("ascii")
    except UnicodeDecodeError as error:
        raise GGUFError("key", begin, "key", "ASCII letters", raw[: MAX_HEADER_STRING // 64]) from error


def _value(cursor: Cursor, key: str) -> Value | None:
    """The next value; None for one that is only skipped over."""
    kind = cursor.kind(f"type of {key}")
    if kind is GGUFValueType.ARRAY:
        return _array(cursor, key)
    if kind is GGUFValueType.STRING:
        return _text(cursor, key)
    dtype = np.dtype(SCALARS[kind])
    raw = cursor.take(dtype.itemsize, key)
    scalar: int | float | bool = np.frombuffer(raw, dtype)[0].item()
    return scalar


def _text(cursor: Cursor, key: str) -> str | None:
    begin = cursor.offset
    length = cursor.count(1, f"length of {key}")
    if length > MAX_HEADER_STRING:
        cursor.need(length, key)
        cursor.skipped[key] = Skipped(length, "a text of {n} bytes")
        return None
    try:
        return cursor.take(length, key).decode()
    except UnicodeDecodeError as error:
        raise GGUFError("text", begin, key, "UTF-8", "bytes that are none") from error


def _array(cursor: Cursor, key: str) -> Value | None:
    begin = cursor.offset
    kind = cursor.kind(f"type of the entries of {key}")
    if kind is GGUFValueType.ARRAY:
        raise GGUFError("type", begin, key, "an array of numbers or texts", "an array of arrays")
    if kind is GGUFValueType.STRING:
        cursor.skipped[key] = Skipped(cursor.skip_texts(key), "an array of {n} texts")
        return None
    dtype = np.dtype(SCALARS[kind])
    count = cursor.count(dtype.itemsize, f"entries of {key}")
    begin = cursor.need(count * dtype.itemsize, key)
    if count > MAX_LAYERS:
        cursor.skipped[key] = Skipped(count, "an array of {n} entries")
        return None
    return tuple(np.frombuffer(bytes(cursor.data[begin : cursor.offset]), dtype).tolist())
