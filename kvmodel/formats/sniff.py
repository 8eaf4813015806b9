"""What kind of file something is, by its first bytes."""

import os
import struct
from dataclasses import dataclass
from pathlib import Path

from kvmodel.formats.stream import Data

SESSION_MAGIC, SESSION_VERSION = 0x6767736E, 9
"""`ggsn`: a whole context (LLAMA_SESSION_MAGIC and _VERSION in llama.h)."""

SEQUENCE_MAGIC, SEQUENCE_VERSION = 0x67677371, 2
"""`ggsq`: one sequence (LLAMA_STATE_SEQ_MAGIC and _VERSION in llama.h)."""

KINDS = {SESSION_MAGIC: "session", SEQUENCE_MAGIC: "sequence"}

LOOKS_LIKE = (
    (b"GGUF", "a GGUF model file"),
    (b"lmgg", "a model file from before GGUF"),
    (b"tjgg", "a model file from before GGUF"),
    (b"fmgg", "a model file from before GGUF"),
    (b"algg", "a LoRA adapter from before GGUF"),
    (b"ggsn", "a session file of a big-endian machine"),
    (b"ggsq", "a sequence file of a big-endian machine"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip-compressed"),
    (b"(\xb5/\xfd", "zstd-compressed"),
    (b"\x89PNG", "a PNG picture"),
    (b"{", "JSON or text"),
    (b"llama_", "a log"),
)
"""First bytes of what is taken for a state file by mistake."""

Source = str | os.PathLike[str] | Data
"""A file by its path, or its bytes."""


@dataclass(frozen=True)
class Sniffed:
    """What the first bytes of a file say.

    Attributes:
        kind: session, sequence, or other.
        version: of the format, None where it is no state file or ends before it.
        words: what it is, for a message.
    """

    kind: str
    version: int | None
    words: str


def sniff(source: Source) -> Sniffed:
    """Tell a session file, a sequence file and everything else apart.

    Args:
        source: a path, or the first bytes of a file.

    Raises:
        OSError: the file cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        with Path(source).open("rb") as file:
            head = file.read(8)
    else:
        head = bytes(memoryview(source).cast("B")[:8])
    magic = int.from_bytes(head[:4], "little") if len(head) >= 4 else None
    if magic not in KINDS:
        return Sniffed("other", None, _words(head))
    version = struct.unpack_from("<I", head, 4)[0] if len(head) == 8 else None
    kind = KINDS[magic]
    return Sniffed(kind, version, f"a {kind} file" + ("" if version is None else f", version {version}"))


def _words(head: bytes) -> str:
    if not head:
        return "an empty file"
    likeness = [words for begin, words in LOOKS_LIKE if head.startswith(begin)]
    return likeness[0] if likeness else "no known kind of file"
