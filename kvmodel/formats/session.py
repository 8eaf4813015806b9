"""Session files and sequence files of llama.cpp: opened without the model, restored, written byte for byte.

A session file is a whole context: tokens, the model's architecture, outputs, and the cache. A sequence file (a slot of
llama-server) holds the cells of one sequence. Counterparts are `state_save_file`, `state_seq_save_file` and their
loading halves in llama-context.cpp; both generations write the same.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kvmodel.errors import ParamError
from kvmodel.formats.errors import FormatError, StateError
from kvmodel.formats.file_check import check_floats, check_values
from kvmodel.formats.file_fields import FieldReader, opened, stored
from kvmodel.formats.part import PartFile
from kvmodel.formats.part_card import layer_table, owner_table, part_maps
from kvmodel.formats.sniff import SEQUENCE_MAGIC, SEQUENCE_VERSION, SESSION_MAGIC, SESSION_VERSION, Source, sniff
from kvmodel.formats.state import HasParts, read_state, write_state
from kvmodel.formats.stream import Data
from kvmodel.limits import MAX_STATE_BYTES
from kvmodel.show import Card, Shown
from kvmodel.words import count

__all__ = ["SequenceFile", "SessionFile", "StateFile", "open_sequence", "open_session", "sniff"]

Int32 = NDArray[np.int32]
Float32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class StateFile(Shown):
    """What both kinds of file hold. Arrays are read-only; those of K and V are read where they are touched.

    Attributes:
        tokens: int32 [n], the tokens that the program gave along, which need not be those in the cells.
        parts: the cache: one set of cells, or of a pair the full half and the window half. A file that was cut off
            right between the halves cannot be told from that of a single cache.
        state_offset: where the cache begins, in bytes.
        data: the file.
    """

    tokens: Int32
    parts: tuple[PartFile, ...]
    state_offset: int
    data: memoryview

    @property
    def nbytes(self) -> int:
        """Size of the file."""
        return len(self.data)

    @property
    def state(self) -> memoryview:
        """The state stream of the cache, as `read_state` takes it."""
        return self.data[self.state_offset :]

    def header(self) -> Iterator[Data]:
        """The bytes before the cache, written anew from what was read."""
        raise NotImplementedError

    def pieces(self) -> Iterator[Data]:
        """The whole file piece by piece, K and V straight from where they were read."""
        yield from self.header()
        for part in self.parts:
            yield from part.pieces()

    def to_bytes(self) -> bytes:
        """The whole file.

        Raises:
            ParamError: it would exceed MAX_STATE_BYTES; `write` has no limit.
        """
        if self.nbytes > MAX_STATE_BYTES:
            raise ParamError("file", f"{self.nbytes:,} bytes", f"{MAX_STATE_BYTES:,} bytes at most in memory")
        return b"".join(self.pieces())

    def write(self, path: str | Path) -> int:
        """Write the file; return its size. It must not be the one that is open.

        Raises:
            OSError: it cannot be written.
        """
        with Path(path).open("wb") as file:
            return sum(file.write(piece) for piece in self.pieces())

    def check(self) -> None:
        """Look for what the layout allows and no model can go on with. Reads the whole file, a piece at a time.

        Raises:
            FormatError: kind not_finite, at the first such number; or no_cells, for a sequence file without any, from
                which llama.cpp ends its process.
        """
        check_values(self.parts)

    def _restore(self, cache: HasParts, seq: int) -> int:
        """Read the cache's stream; offsets of a refusal count from the start of the file."""
        at = self.state_offset
        try:
            return at + read_state(cache, self.state, seq)
        except StateError as refusal:
            told = (refusal.kind, refusal.offset + at, refusal.field, refusal.expected, refusal.found)
            raise StateError(*told, consumed=refusal.consumed + at) from None

    def _card(self, title: str, facts: list[str]) -> Card:
        words = [f"{count(self.nbytes, 'byte')}", count(len(self.tokens), "token"), *facts]
        tables = (owner_table(self.parts), layer_table(self.parts))
        return Card(title, ", ".join(words), part_maps(self.parts), tables)


@dataclass(frozen=True, eq=False, repr=False)
class SequenceFile(StateFile):
    """One sequence of a cache; restored, it may become any other."""

    @classmethod
    def of(cls, cache: HasParts, seq: int, tokens: ArrayLike = ()) -> "SequenceFile":
        """The file that `llama_state_seq_save_file` would write; without tensors the bytes of K and V are 0."""
        header = struct.pack("<II", SEQUENCE_MAGIC, SEQUENCE_VERSION)
        return open_sequence(b"".join([header, *stored("<I", tokens, "<i4"), write_state(cache, seq)]))

    def header(self) -> Iterator[Data]:
        """Magic, version and tokens."""
        yield struct.pack("<II", SEQUENCE_MAGIC, SEQUENCE_VERSION)
        yield from stored("<I", self.tokens, "<i4")

    def check(self) -> None:
        """As for every file; besides, there has to be a cell."""
        for part in self.parts:
            if not part.n_cells:
                raise FormatError("no_cells", part.offset, "cell_count", "1 or more in a sequence file", 0)
        super().check()

    def restore(self, cache: HasParts, seq: int) -> int:
        """Read it into a cache as sequence `seq` (`llama_state_seq_load_file`). Mutates.

        Returns:
            bytes consumed.

        Raises:
            StateError: the cache refuses it, and has lost `seq`; at an early end it is left half-read.
            CacheAbort: as `read_state`.
        """
        return self._restore(cache, seq)

    def card(self) -> Card:
        """Its cells and layers, to be shown in Jupyter or printed."""
        return self._card("Sequence file", [])


@dataclass(frozen=True, eq=False, repr=False)
class SessionFile(StateFile):
    """A whole context.

    Attributes:
        arch: architecture of the model, as llama.cpp names it.
        output_ids: int32 [n_outputs], the batch position of each output of the last decode.
        logits: float32 [n_outputs * n_vocab], or empty.
        embeddings: float32 [n_outputs * n_embd], or empty.
    """

    arch: str
    output_ids: Int32
    logits: Float32
    embeddings: Float32

    @classmethod
    def of(
        cls,
        cache: HasParts,
        arch: str,
        tokens: ArrayLike = (),
        output_ids: ArrayLike = (),
        logits: ArrayLike = (),
        embeddings: ArrayLike = (),
    ) -> "SessionFile":
        """The file that `llama_state_save_file` would write; without tensors the bytes of K and V are 0."""
        header = struct.pack("<II", SESSION_MAGIC, SESSION_VERSION)
        fields = _context_fields(tokens, arch, output_ids, logits, embeddings)
        return open_session(b"".join([header, *fields, write_state(cache)]))

    def header(self) -> Iterator[Data]:
        """Everything before the cache."""
        yield struct.pack("<II", SESSION_MAGIC, SESSION_VERSION)
        yield from _context_fields(self.tokens, self.arch, self.output_ids, self.logits, self.embeddings)

    def check(self) -> None:
        """As for every file; logits and embeddings are looked at too."""
        at = 12 + 4 * len(self.tokens) + 4 + len(self.arch) + 4 + self.output_ids.nbytes + 8
        check_floats(self.logits, "logits", at)
        check_floats(self.embeddings, "embeddings", at + self.logits.nbytes + 8)
        super().check()

    def restore(self, cache: HasParts, arch: str | None = None) -> int:
        """Replace a whole cache by it (`llama_state_load_file`). Mutates.

        Args:
            cache: of the same model.
            arch: architecture of that model; None takes any.

        Returns:
            bytes consumed.

        Raises:
            FormatError: another architecture; or kind trailing: the cache took what it needs, and bytes are left.
            StateError: the cache refuses it, and is empty now; at an early end it is left half-read.
        """
        if arch is not None and arch != self.arch:
            raise FormatError("arch", 12 + 4 * len(self.tokens), "architecture", arch, self.arch)
        consumed = self._restore(cache, -1)
        if consumed < self.nbytes:
            left = f"{self.nbytes - consumed:,} bytes that the cache has no use for"
            raise FormatError("trailing", consumed, "end of the file", "nothing more", left)
        return consumed

    def card(self) -> Card:
        """Its cells and layers, to be shown in Jupyter or printed."""
        facts = (
            count(len(values), noun)
            for values, noun in ((self.output_ids, "output"), (self.logits, "logit"), (self.embeddings, "embedding"))
        )
        return self._card(f"Session file of a {self.arch} model", list(facts))


def _context_fields(
    tokens: ArrayLike, arch: str, output_ids: ArrayLike, logits: ArrayLike, embeddings: ArrayLike
) -> Iterator[Data]:
    yield from stored("<I", tokens, "<i4")
    name = arch.encode()
    yield struct.pack("<I", len(name)) + name
    yield from stored("<I", output_ids, "<i4")
    yield from stored("<Q", logits, "<f4")
    yield from stored("<Q", embeddings, "<f4")


def open_session(source: Source) -> SessionFile:
    """Open a session file without reading its K and V.

    Args:
        source: a path, which is mapped into memory, or the bytes of a file.

    Raises:
        FormatError: the first field that cannot be; its `offset` counts from the start of the file.
        OSError: the file cannot be opened.
    """
    reader = FieldReader(opened(source), SESSION_MAGIC, SESSION_VERSION)
    tokens, arch, output_ids = reader.tokens(), reader.arch(), reader.output_ids()
    logits, embeddings = reader.floats("logits"), reader.floats("embeddings")
    at = reader.offset
    return SessionFile(tokens, reader.parts(), at, reader.data, arch, output_ids, logits, embeddings)


def open_sequence(source: Source) -> SequenceFile:
    """Open a sequence file without reading its K and V.

    Args:
        source: a path, which is mapped into memory, or the bytes of a file.

    Raises:
        FormatError: the first field that cannot be; its `offset` counts from the start of the file.
        OSError: the file cannot be opened.
    """
    reader = FieldReader(opened(source), SEQUENCE_MAGIC, SEQUENCE_VERSION)
    tokens, at = reader.tokens(), reader.offset
    return SequenceFile(tokens, reader.parts(), at, reader.data)
