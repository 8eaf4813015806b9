"""Session and sequence files put together by hand, field by field."""

import struct
from dataclasses import dataclass, field

Owners = tuple[int, ...]


@dataclass
class Layer:
    """K or V of one layer: type number, bytes of a cell (or of an element, and channels), the bytes themselves."""

    kind: int
    row: int
    data: bytes
    channels: int = 0

    def packed(self) -> bytes:
        if self.channels:
            return struct.pack("<iII", self.kind, self.row, self.channels) + self.data
        return struct.pack("<iQ", self.kind, self.row) + self.data


@dataclass
class Part:
    """One set of cells; its fields are written as they are, whatever they say."""

    cells: list[tuple[int, Owners]]
    k: list[Layer]
    v: list[Layer]
    v_trans: int = 0

    def packed(self) -> bytes:
        words = [len(self.cells)]
        for pos, owners in self.cells:
            words += [pos, len(owners), *owners]
        head = struct.pack(f"<I{len(words) - 1}i", *words) + struct.pack("<II", self.v_trans, len(self.k))
        return head + b"".join(layer.packed() for layer in (*self.k, *self.v))


@dataclass
class Session:
    tokens: list[int]
    arch: bytes
    outputs: list[int]
    logits: list[float]
    embeddings: list[float]
    parts: list[Part]
    marks: dict[str, int] = field(default_factory=dict)

    def packed(self) -> bytes:
        """The file; `marks` then says where the fields before the cache begin."""
        pieces = {
            "magic": b"nsgg",
            "version": struct.pack("<I", 9),
            "tokens": _counted("<I", "i", self.tokens),
            "arch": struct.pack("<I", len(self.arch)) + self.arch,
            "outputs": _counted("<I", "i", self.outputs),
            "logits": _counted("<Q", "f", self.logits),
            "embeddings": _counted("<Q", "f", self.embeddings),
            "cache": b"".join(part.packed() for part in self.parts),
        }
        at = 0
        for name, piece in pieces.items():
            self.marks[name] = at
            at += len(piece)
        return b"".join(pieces.values())


def _counted(count: str, code: str, values: list[int] | list[float]) -> bytes:
    return struct.pack(count, len(values)) + struct.pack(f"<{len(values)}{code}", *values)


def sequence(tokens: list[int], *parts: Part) -> bytes:
    """A sequence file."""
    return b"qsgg" + struct.pack("<I", 2) + _counted("<I", "i", tokens) + b"".join(part.packed() for part in parts)


F32, F16, Q8_0 = 0, 1, 8
CELLS: list[tuple[int, Owners]] = [(0, (0, 1)), (1, (0,)), (7, (2,))]
PLAIN = Part(CELLS, [Layer(F16, 4, b"k0aAk1bBk2cC")], [Layer(F32, 4, struct.pack("<3f", 0.5, -1, 2))])
TURNED = Part(
    CELLS,
    [Layer(Q8_0, 34, bytes(range(102)))],
    [Layer(F16, 2, b"a0a1a2b0b1b2", channels=2)],
    v_trans=1,
)
NO_CELLS = Part([], [Layer(F16, 4, b"")], [Layer(F16, 4, b"")])
