"""Files that are no state files, or damaged ones: a named error with its place, soon and in little memory."""

import io
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvmodel.formats.errors import FILE_KINDS, STATE_KINDS, FormatError
from kvmodel.formats.session import SessionFile, StateFile, open_sequence, open_session
from tests.state_files import F16, F32, NO_CELLS, PLAIN, Q8_0, TURNED, Layer, Part, Session, sequence
from tests.streams import patched

Opener = Callable[[bytes], StateFile]
MADE = Session([5, -1], b"gemma3", [0, 7], [0.5, -1.0], [2.0], [PLAIN, TURNED])
DATA = MADE.packed()
AT = MADE.marks
FIRST = AT["cache"]
SECOND = open_session(DATA).parts[1].offset
K = open_session(DATA).parts[0].k[0].header
V = open_session(DATA).parts[0].v[0].header
TURNED_V = open_session(DATA).parts[1].v[0].header
TWO_31, TWO_32 = 1 << 31, 1 << 32


def refused(opener: Opener, data: bytes) -> FormatError:
    with pytest.raises(FormatError) as told:
        opener(data)
    error = told.value
    assert error.kind in FILE_KINDS
    assert 0 <= error.offset <= len(data)
    assert f" at byte {error.offset:,} is " in str(error)
    return error


@pytest.mark.parametrize(
    ("at", "code", "value", "kind", "place"),
    [
        (0, "I", 0x46554747, "magic", 0),
        (4, "I", 8, "version", 4),
        (4, "I", TWO_31, "version", 4),
        (AT["tokens"], "I", TWO_31, "eof", AT["tokens"] + 4),
        (AT["arch"], "I", TWO_31, "arch", AT["arch"]),
        (AT["arch"] + 4, "B", 0xFF, "arch", AT["arch"] + 4),
        (AT["arch"] + 5, "B", 0, "arch", AT["arch"] + 4),
        (AT["outputs"], "I", TWO_31, "eof", AT["outputs"] + 4),
        (AT["outputs"] + 8, "i", -1, "output_id", AT["outputs"] + 8),
        (AT["logits"], "Q", TWO_31, "eof", AT["logits"] + 8),
        (AT["logits"], "Q", 2**64 - 1, "eof", AT["logits"] + 8),
        (AT["embeddings"], "Q", 2**62, "eof", AT["embeddings"] + 8),
        (FIRST, "I", TWO_31, "too_many_cells", FIRST),
        (FIRST + 8, "I", TWO_31, "bad_seq_id", K + 12),
        (FIRST + 12, "i", 64, "bad_seq_id", FIRST + 12),
        (FIRST + 12, "i", -1, "bad_seq_id", FIRST + 12),
        (FIRST + 12, "i", 1, "owner_order", FIRST + 8),
        (K - 8, "I", 2, "v_trans", K - 8),
        (K - 4, "I", TWO_31, "layer_count", K - 4),
        (K, "i", -1, "key_type", K),
        (K, "i", 2_000_000, "key_type", K),
        (K + 4, "Q", 3, "key_row_size", K + 4),
        (K + 4, "Q", TWO_31, "key_row_size", K + 4),
        (K + 4, "q", -2, "key_row_size", K + 4),
        (K + 4, "Q", 1 << 30, "eof", K + 12),
        (V, "i", -2, "value_type", V),
        (V + 4, "Q", 2**63, "value_row_size", V + 4),
        (TURNED_V, "i", Q8_0, "value_type", TURNED_V),
        (TURNED_V + 4, "I", TWO_31, "value_el_size", TURNED_V + 4),
        (TURNED_V + 4, "I", 4, "value_el_size", TURNED_V + 4),
        (TURNED_V + 8, "I", TWO_31, "value_gqa", TURNED_V + 8),
        (TURNED_V + 8, "I", 1 << 30, "eof", TURNED_V + 12),
    ],
)
def test_a_wrong_field_is_named_with_its_place(at: int, code: str, value: int, kind: str, place: int) -> None:
    error = refused(open_session, patched(DATA, at, code, value))
    assert (error.kind, error.offset) == (kind, place)


@pytest.mark.parametrize("end", range(len(DATA)))
def test_a_session_cut_off_anywhere_is_told(end: int) -> None:
    """Between its two halves it is the file of a single cache."""
    if end == SECOND:
        assert len(open_session(DATA[:end]).parts) == 1
    else:
        assert refused(open_session, DATA[:end]).kind == "eof"


@pytest.mark.parametrize("part", [PLAIN, TURNED, NO_CELLS])
def test_a_sequence_cut_off_anywhere_is_told(part: Part) -> None:
    data = sequence([1, 2], part)
    for end in range(len(data)):
        assert refused(open_sequence, data[:end]).kind == "eof"


def test_owners_that_do_not_ascend_are_told() -> None:
    """llama.cpp writes a set in order, so it has not written these."""
    for owners in ((1, 0), (2, 2), (0, 3, 1)):
        data = sequence([], Part([(0, (0,)), (1, owners)], PLAIN.k[:0], PLAIN.v[:0]))
        error = refused(open_sequence, data)
        assert (error.kind, error.expected) == ("owner_order", "ids ascending, each once in a cell")


def test_bytes_behind_two_halves_are_told() -> None:
    error = refused(open_session, DATA + b"\0")
    assert (error.kind, error.offset, error.found) == ("trailing", len(DATA), "1 more bytes")


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("slot.bin", DATA)
    return buffer.getvalue()


def model(folder: Path) -> bytes:
    path = folder / "model.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tensor("a", np.zeros(4, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


@pytest.mark.parametrize("opener", [open_session, open_sequence])
def test_a_file_of_another_kind_is_named(opener: Opener, tmp_path: Path) -> None:
    told = {words: refused(opener, data) for data, words in ((zipped(), "ZIP"), (model(tmp_path), "GGUF"))}
    assert {words: words in str(error.found) for words, error in told.items()} == {"ZIP": True, "GGUF": True}
    assert refused(opener, bytes(100)).found == "0x00000000, no known kind of file"
    assert refused(opener, b"").kind == "eof"


def test_the_other_kind_of_state_file_is_named() -> None:
    assert refused(open_sequence, DATA).found == "0x6767736e, a session file, version 9"
    assert refused(open_session, sequence([])).expected == "0x6767736e, a session file"


def huge_counts() -> list[bytes]:
    """Files of half a megabyte or so whose fields promise more, and more cells than any cache has."""
    many = np.tile(np.array([0, 0], "<i4"), 100_000).tobytes()
    ids = struct.pack("<Iii", 1, 0, TWO_31 - 1) + np.zeros(150_000, "<i4").tobytes()
    head = sequence([])[:12]
    promising = [struct.pack("<I", n) + many for n in (TWO_31, TWO_32 - 1, 1 << 20, 100_001, 100_000)]
    return [
        *(head + data for data in (*promising, ids)),
        sequence([])[:8] + struct.pack("<I", TWO_32 - 1) + many,
        head + struct.pack("<III", 0, 0, 1024) + struct.pack("<iQ", F32, 1 << 30) * 1023,
    ]


@pytest.mark.parametrize("data", huge_counts(), ids=range(len(huge_counts())))
def test_a_refusal_is_soon_and_takes_little(data: bytes) -> None:
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        refused(open_sequence, data)
        times.append(time.perf_counter() - begin)
    tracemalloc.start()
    refused(open_sequence, data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert min(times) < 0.1
    assert peak < 50 << 20


@pytest.mark.parametrize(
    ("part", "which", "at", "code", "value", "told"),
    [
        (0, "k", 6, "H", 0x7E00, "K of layer 0, cell 1 at byte {} is NaN; allowed: finite numbers"),
        (0, "v", 8, "I", 0xFF800000, "V of layer 0, cell 2 at byte {} is -inf; allowed: finite numbers"),
        (1, "k", 34, "H", 0x7C00, "K of layer 0, cell 1 at byte {} is NaN; allowed: finite numbers"),
        (1, "v", 8, "H", 0x7E01, "V of layer 0, cell 1 at byte {} is NaN; allowed: finite numbers"),
    ],
)
def test_a_number_that_is_none_is_found(part: int, which: str, at: int, code: str, value: int, told: str) -> None:
    zeros = [Part(one.cells, *(blank(layers) for layers in (one.k, one.v)), one.v_trans) for one in MADE.parts]
    data = Session([], b"llama", [0], [0.0], [], zeros).packed()
    place = getattr(open_session(data).parts[part], which)[0].offset + at
    data = patched(data, place, code, value)
    file = open_session(data)
    assert not np.isfinite(getattr(file.parts[part], which)[0].values()).all()
    with pytest.raises(FormatError) as found:
        file.check()
    assert (found.value.kind, found.value.offset) == ("not_finite", place)
    assert str(found.value) == told.format(f"{place:,}")
    assert file.to_bytes() == data


def blank(layers: list[Layer]) -> list[Layer]:
    """Zeros; a block of them whose scale is infinite gives no number."""
    return [Layer(layer.kind, layer.row, bytes(len(layer.data)), layer.channels) for layer in layers]


def test_a_logit_that_is_no_number_is_found() -> None:
    """An infinite one may be a token that is ruled out."""
    made = Session([1], b"llama", [0], [float("-inf"), float("nan")], [float("nan")], [NO_CELLS])
    file = open_session(made.packed())
    with pytest.raises(FormatError, match="number 1 of the logits") as found:
        file.check()
    assert found.value.offset == made.marks["logits"] + 8 + 4
    made.logits = []
    with pytest.raises(FormatError, match="number 0 of the embeddings") as found:
        open_session(made.packed()).check()
    assert found.value.offset == made.marks["embeddings"] + 8


PARTS = [PLAIN, TURNED, NO_CELLS, Part([(3, (1, 63))], [Layer(F16, 2, b"ab")] * 2, [Layer(F16, 2, b"cd", 1)] * 2, 1)]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good file with bytes changed, taken out or put in."""
    parts = draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=2))
    tokens = draw(st.lists(st.integers(-5, 5), max_size=3))
    data = bytearray(sequence(tokens, *parts))
    if draw(st.booleans()):
        data = bytearray(Session(tokens, b"llama", [0], [1.5], [], parts).packed())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        piece = draw(st.binary(max_size=8) | st.sampled_from([bytes(4), b"\xff" * 8, b"\0\0\0\x80", b"\1\0\0\0"]))
        data[at : at + draw(st.sampled_from([0, len(piece), len(piece), 4]))] = piece
    return bytes(data)


def outcome(opener: Opener, data: bytes) -> StateFile | FormatError:
    """What opening gives; any other error is a failure."""
    try:
        return opener(data)
    except FormatError as error:
        return error


@settings(max_examples=400)
@given(data=damaged())
def test_a_damaged_file_is_refused_by_name_or_is_written_again_as_it_is(data: bytes) -> None:
    for opener in (open_session, open_sequence):
        found = outcome(opener, data)
        if isinstance(found, FormatError):
            assert found.kind in FILE_KINDS
            assert 0 <= found.offset <= len(data)
        else:
            assert found.to_bytes() == data
            assert str(found).startswith("Session" if isinstance(found, SessionFile) else "Sequence")


@settings(max_examples=200)
@given(tail=st.binary(max_size=300), begin=st.sampled_from([b"", DATA[:8], sequence([])[:8], sequence([])[:12]]))
def test_random_bytes_are_refused_by_name(tail: bytes, begin: bytes) -> None:
    data = begin + tail
    for opener in (open_session, open_sequence):
        found = outcome(opener, data)
        assert found.kind in FILE_KINDS if isinstance(found, FormatError) else found.to_bytes() == data


def test_the_kinds_of_a_stream_are_kinds_of_a_file_or_of_a_restore() -> None:
    assert len(set(FILE_KINDS)) == len(FILE_KINDS)
    assert {"eof", "bad_seq_id", "key_type"} <= set(FILE_KINDS) & set(STATE_KINDS)
