"""State streams word by word, as `state_write` and `state_read` of llama-kv-cache-unified.cpp fetch them."""

import struct
from dataclasses import dataclass, field

from tests.reference.batch import Token
from tests.reference.cache import RefCache


class Refused(Exception):
    """A stream that is refused: why, and how many bytes were consumed."""

    def __init__(self, kind: str, consumed: int) -> None:
        super().__init__(kind, consumed)
        self.kind, self.consumed = kind, consumed


class Crash(Exception):
    """The process would end here."""


@dataclass
class RefTensors:
    """K and V of every layer: lists of rows, or of channels that are lists of elements.

    Sizes are bytes; `types` are the ggml numbers of K and V.
    """

    n_cells: int
    types: tuple[int, int]
    k_rows: list[int]
    v_trans: bool
    v_rows: list[int] = field(default_factory=list)
    v_element: int = 0
    v_channels: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.k = [[bytes(row)] * self.n_cells for row in self.k_rows]
        self.v = [[bytes(row)] * self.n_cells for row in self.v_rows]
        self.vt = [[[bytes(self.v_element)] * self.n_cells for _ in range(n)] for n in self.v_channels]


class Stream:
    """Fetches field after field."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, n: int) -> bytes:
        if n > len(self.data) - self.at:
            raise Refused("eof", self.at)
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, code: str) -> int:
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]

    def must(self, condition: bool, kind: str) -> None:
        if not condition:
            raise Refused(kind, self.at)


def write(cache: RefCache, tensors: RefTensors, n_seq_max: int, seq: int) -> bytes:
    cells = cache.cells
    chosen = [i for i in range(cells.n) if not cells.is_empty(i) and (seq == -1 or seq in cells.seqs[i])]
    out = struct.pack("<I", len(chosen))
    for i in chosen:
        ids = [s for s in range(n_seq_max) if s in cells.seqs[i] and seq in (-1, s)]
        out += struct.pack(f"<iI{len(ids)}i", cells.pos[i], len(ids), *ids)
    out += struct.pack("<II", tensors.v_trans, len(tensors.k_rows))
    for row, k in zip(tensors.k_rows, tensors.k, strict=True):
        out += struct.pack("<iQ", tensors.types[0], row) + b"".join(k[i] for i in chosen)
    for row, v in zip(tensors.v_rows, tensors.v, strict=True):
        out += struct.pack("<iQ", tensors.types[1], row) + b"".join(v[i] for i in chosen)
    for n, vt in zip(tensors.v_channels, tensors.vt, strict=True):
        out += struct.pack("<iII", tensors.types[1], tensors.v_element, n)
        out += b"".join(channel[i] for channel in vt for i in chosen)
    return out


def read(cache: RefCache, tensors: RefTensors, n_seq_max: int, data: bytes, seq: int) -> int:
    """Restore; return the bytes consumed."""
    stream = Stream(data)
    try:
        count = stream.number("I")
        if seq == -1:
            _read_all(cache, tensors, stream, count, n_seq_max)
        else:
            _read_sequence(cache, stream, count, seq)
        _read_data(cache, tensors, stream, count)
    except Refused as refusal:
        if refusal.kind != "eof":
            if seq == -1:
                cache.clear()
                tensors.clear()
            else:
                cache.seq_rm(seq, -1, -1)
        raise
    return stream.at


def _position(stream: Stream) -> int:
    """A position; the one rule here that upstream does not have is that it must not be negative."""
    pos = stream.number("i")
    stream.must(pos >= 0, "bad_pos")
    return pos


def _read_all(cache: RefCache, tensors: RefTensors, stream: Stream, count: int, n_seq_max: int) -> None:
    stream.must(count <= cache.cells.n, "too_many_cells")
    cache.clear()
    tensors.clear()
    for i in range(count):
        pos = _position(stream)
        n = stream.number("I")
        cache.cells.pos_set(i, pos)
        for _ in range(n):
            seq = stream.number("i")
            stream.must(0 <= seq < n_seq_max, "bad_seq_id")
            cache.cells.seq_add(i, seq)


def _read_sequence(cache: RefCache, stream: Stream, count: int, seq: int) -> None:
    cache.seq_rm(seq, -1, -1)
    tokens = []
    for _ in range(count):
        pos = _position(stream)
        stream.must(stream.number("I") == 1, "not_single_seq")
        stream.number("i")
        tokens.append(Token(pos, (seq,)))
    if not tokens:
        raise Crash
    cell = cache.find_slot(len(tokens)).cell
    stream.must(cell >= 0, "no_slot")
    cache.apply_ubatch(cell, tokens)
    cache.head = cell
    cells = cache.cells
    for i, token in ((cell, tokens[0]), (cell + len(tokens) - 1, tokens[-1])):
        if cells.pos[i] != token.pos or seq not in cells.seqs[i]:
            raise Crash


def _read_data(cache: RefCache, tensors: RefTensors, stream: Stream, count: int) -> None:
    v_trans = stream.number("I")
    stream.must(stream.number("I") == len(tensors.k_rows), "layer_count")
    stream.must(bool(v_trans) == tensors.v_trans, "v_trans")
    for row, k in zip(tensors.k_rows, tensors.k, strict=True):
        _read_block(stream, "key", tensors.types[0], row, k, cache.head, count)
    for row, v in zip(tensors.v_rows, tensors.v, strict=True):
        _read_block(stream, "value", tensors.types[1], row, v, cache.head, count)
    for n, vt in zip(tensors.v_channels, tensors.vt, strict=True):
        stream.must(stream.number("i") == tensors.types[1], "value_type")
        stream.must(stream.number("I") == tensors.v_element, "value_el_size")
        stream.must(stream.number("I") == n, "value_gqa")
        for channel in vt:
            elements = stream.take(count * tensors.v_element)
            for i in range(count):
                channel[cache.head + i] = elements[i * tensors.v_element : (i + 1) * tensors.v_element]


def _read_block(stream: Stream, what: str, kind: int, row: int, rows: list[bytes], head: int, count: int) -> None:
    stream.must(stream.number("i") == kind, f"{what}_type")
    stream.must(stream.number("Q") == row, f"{what}_row_size")
    block = stream.take(count * row)
    for i in range(count):
        rows[head + i] = block[i * row : (i + 1) * row]
