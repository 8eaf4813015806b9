"""GGUF files for tests: whole ones by gguf's own writer, and headers put together byte by byte."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np

U8, I32, U32, F32, BOOL, STRING, ARRAY, U64 = 0, 5, 4, 6, 7, 8, 9, 10
"""The numbers of the value types, as they stand in files (enum gguf_type)."""

LLAMA = {
    "context_length": 8192,
    "embedding_length": 64,
    "block_count": 2,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
}
"""The keys of a small model: two layers, two KV heads of 16 elements each."""


def write_gguf(
    path: Path, arch: str = "llama", keys: Mapping[str, Any] = LLAMA, *, name: str = "", tokens: int = 0
) -> Path:
    """A file with the given keys, a vocabulary of `tokens` entries and one tensor."""
    writer = gguf.GGUFWriter(str(path), arch)
    if name:
        writer.add_name(name)
    for key, value in keys.items():
        _add(writer, f"{arch}.{key}", value)
    if tokens:
        writer.add_token_list([f"token {index}" for index in range(tokens)])
        writer.add_token_scores([0.5] * tokens)
        writer.add_chat_template("{{ messages }}" * 500)
    writer.add_tensor("token_embd.weight", np.ones((8, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def text(value: bytes | str) -> bytes:
    """A length and as many bytes."""
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def pair(key: bytes | str, kind: int, value: bytes) -> bytes:
    """A key with its value, already packed."""
    return text(key) + struct.pack("<I", kind) + value


def number(key: str, value: int) -> bytes:
    """A key with an unsigned number of 32 bits."""
    return pair(key, U32, struct.pack("<I", value))


def array(kind: int, count: int, entries: bytes) -> bytes:
    """The value of an array: the type of its entries, how many it claims to have, and their bytes."""
    return struct.pack("<IQ", kind, count) + entries


def raw(
    pairs: Sequence[bytes] = (),
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    n_tensors: int = 0,
    n_kv: int | None = None,
) -> bytes:
    """A header from its parts, which need not be right."""
    count = len(pairs) if n_kv is None else n_kv
    return magic + struct.pack("<IQQ", version, n_tensors, count) + b"".join(pairs)


def small(arch: str = "llama", keys: Mapping[str, int] = LLAMA) -> bytes:
    """A whole header of a model, whose keys are all numbers of 32 bits."""
    pairs = [pair("general.architecture", STRING, text(arch))]
    return raw([*pairs, *(number(f"{arch}.{key}", value) for key, value in keys.items())])
