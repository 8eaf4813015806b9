"""Session and sequence files: what they say of themselves, and written again byte for byte."""

import mmap
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from kvmodel.errors import ParamError
from kvmodel.formats.session import StateFile, open_sequence, open_session, sniff
from tests.sessions import LIVE, hand_made
from tests.state_files import F16, PLAIN, sequence

FILES = sorted(LIVE.glob("*/*.bin"))


def opened(path: Path) -> StateFile:
    return open_session(path) if sniff(path).kind == "session" else open_sequence(path)


def test_every_recorded_file_is_here() -> None:
    kinds = [sniff(path).words for path in FILES]
    assert (len(FILES), kinds.count("a session file, version 9"), kinds.count("a sequence file, version 2")) == (
        20,
        8,
        12,
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-2:]))
def test_a_recorded_file_is_written_again_byte_for_byte(path: Path, tmp_path: Path) -> None:
    file = opened(path)
    assert file.to_bytes() == path.read_bytes()
    assert file.write(tmp_path / "again.bin") == file.nbytes
    assert (tmp_path / "again.bin").read_bytes() == path.read_bytes()
    file.check()


def test_a_recorded_session_says_what_was_run() -> None:
    """Two layers of 2 heads with 32 elements, 64 words; the last batch had 5 tokens, every one of them an output."""
    file = open_session(LIVE / "0.3.11" / "types-q8_0-f16-session.bin")
    assert (file.arch, file.tokens.tolist(), file.output_ids.tolist()) == ("llama", [3], [0, 1, 2, 3, 4])
    assert (file.logits.shape, file.embeddings.shape) == ((5 * 64,), (0,))
    [part] = file.parts
    assert part.pos.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4]
    assert part.seqs.tolist() == [1] * 6 + [2] * 5
    assert part.v_trans
    assert [(k.kind.name, k.row_bytes, k.n_embd) for k in part.k] == [("q8_0", 68, 64)] * 2
    assert [(v.kind.name, v.row_bytes, v.data.shape) for v in part.v] == [("f16", 128, (64, 11, 2))] * 2


def test_a_recorded_pair_has_two_halves() -> None:
    """Every sixth of 6 layers sees all 64 positions, the others those that the window of 16 left."""
    file = open_sequence(LIVE / "0.3.11" / "swa-slide-slot0.bin")
    assert [(part.n_cells, part.n_layer, int(part.pos.min()), int(part.pos.max())) for part in file.parts] == [
        (64, 1, 0, 63),
        (24, 5, 40, 63),
    ]


@pytest.mark.parametrize("version", ["0.3.7", "0.3.11"])
def test_a_recorded_state_has_rows_of_its_own_widths(version: str) -> None:
    """3 x 64 inputs of the convolution and 16 x 64 of the state; no owner is named."""
    file = open_sequence(LIVE / version / "recurrent-slot2.bin")
    [part] = file.parts
    assert (part.pos.tolist(), part.seqs.tolist(), file.tokens.tolist()) == ([5], [0], [4])
    assert [(k.n_embd, v.n_embd) for k, v in zip(part.k, part.v, strict=True)] == [(192, 1024)] * 2


def test_every_field_is_where_it_was_put() -> None:
    made = hand_made()
    data = made.packed()
    file = open_session(data)
    assert (file.tokens.tolist(), file.arch, file.output_ids.tolist()) == ([5, -1], "gemma3", [0, 7])
    assert (file.logits.tolist(), file.embeddings.tolist()) == ([0.5, -1.0], [2.0])
    assert file.state_offset == made.marks["cache"]
    for part in file.parts:
        assert list(zip(part.pos.tolist(), part.seqs.tolist(), strict=True)) == [(0, 3), (1, 1), (7, 4)]
    plain, turned = file.parts
    assert (plain.offset, plain.end, turned.end) == (made.marks["cache"], turned.offset, len(data))
    assert [plain.v_trans, turned.v_trans] == [False, True]
    assert data[plain.k[0].offset :].startswith(b"k0aA")
    assert data[turned.v[0].header :].startswith(struct.pack("<iII", F16, 2, 2))
    assert file.to_bytes() == data


def test_rows_are_those_of_the_cells_however_they_lie() -> None:
    plain, turned = open_session(hand_made().packed()).parts
    assert plain.k[0].rows(np.array([2, 0])).tobytes() == b"k2cCk0aA"
    assert turned.v[0].rows(slice(1, 3)).tobytes() == b"a1b1a2b2"
    assert plain.v[0].values().tolist() == [[0.5], [-1.0], [2.0]]
    expected = np.array([2, 3, 4], np.int8) * np.array([0x0100], "<u2").view("<f2")[0].astype(np.float32)
    assert turned.k[0].values(slice(0, 1))[0, :3].tolist() == expected.tolist()


def test_nothing_of_an_open_file_can_be_changed() -> None:
    file = open_session(bytearray(hand_made().packed()))
    part = file.parts[0]
    for array in (file.tokens, file.logits, part.pos, part.seqs, part.k[0].data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert file.data.readonly


def test_a_file_may_come_from_a_path_or_from_memory(tmp_path: Path) -> None:
    data = sequence([9], PLAIN)
    path = tmp_path / "slot.bin"
    path.write_bytes(data)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for source in (path, str(path), data, bytearray(data), memoryview(data), mapped):
        assert open_sequence(source).to_bytes() == data
        assert sniff(source).kind == "sequence"
    with pytest.raises(FileNotFoundError):
        open_sequence(tmp_path / "none.bin")


GIB = 1 << 30


def test_gigabytes_open_without_being_read(tmp_path: Path) -> None:
    """65,536 cells and three layers of 8,192 f16 elements: 6 GiB, of which the file system stores next to nothing."""
    n, row, path = 1 << 16, 1 << 14, tmp_path / "large.bin"
    cells = np.column_stack([np.arange(n), np.ones(n), np.zeros(n)]).astype("<i4")
    with path.open("wb") as file:
        file.write(sequence([])[:12] + struct.pack("<I", n) + cells.tobytes() + struct.pack("<II", 0, 3))
        for layer in range(6):
            file.write(struct.pack("<iQ", F16, row))
            begin = file.tell()
            file.seek(begin + 12_345 * row)
            file.write(struct.pack("<2e", layer, -layer))
            file.truncate(begin + n * row)
            file.seek(begin + n * row)
    tracemalloc.start()
    file = open_sequence(path)
    row_of_v = file.parts[0].v[2].values(slice(12_345, 12_346))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert file.nbytes > 6 * GIB
    assert peak < 10 << 20
    assert (row_of_v.shape, row_of_v[0, :3].tolist()) == ((1, 8192), [5.0, -5.0, 0.0])
    assert file.parts[0].pos[-1] == n - 1
    with pytest.raises(ParamError, match=r"file is '6,4.* bytes'; allowed: 2,147,483,648 bytes at most"):
        file.to_bytes()


@pytest.mark.parametrize(
    ("data", "kind", "version", "words"),
    [
        (hand_made().packed(), "session", 9, "a session file, version 9"),
        (sequence([]), "sequence", 2, "a sequence file, version 2"),
        (b"nsgg\1\0\0\0", "session", 1, "a session file, version 1"),
        (b"nsgg\1\0", "session", None, "a session file"),
        (b"", "other", None, "an empty file"),
        (b"GGUF\3\0\0\0", "other", None, "a GGUF model file"),
        (b"PK\3\4\x14\0", "other", None, "a ZIP archive"),
        (b"ggsn\0\0\0\x09", "other", None, "a session file of a big-endian machine"),
        (b"x", "other", None, "no known kind of file"),
    ],
)
def test_the_first_bytes_tell_what_a_file_is(data: bytes, kind: str, version: int | None, words: str) -> None:
    found = sniff(data)
    assert (found.kind, found.version, found.words) == (kind, version, words)
