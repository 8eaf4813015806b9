"""GGUF headers against gguf's own reader and writer, and damaged ones: a named error at its place, in little memory."""

import os
import struct
import tracemalloc
from pathlib import Path

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.errors import KVModelError, ParamError
from kvmodel.formats import gguf_header_cursor
from kvmodel.formats.gguf_header import open_header, read_header
from kvmodel.formats.gguf_header_cursor import GGUF_KINDS, GGUFError
from kvmodel.geometry import Geometry
from kvmodel.limits import MAX_HEADER_KEYS, MAX_LAYERS
from kvmodel.models import from_gguf, from_gguf_bytes
from tests.gguf_files import (
    ARRAY,
    BOOL,
    F32,
    LLAMA,
    STRING,
    U8,
    U64,
    array,
    number,
    pair,
    raw,
    small,
    text,
    write_gguf,
)

START = 24
"""Bytes before the first key: magic, version and two counts."""

HUGE = 2**63
SMALL = small()


def refused(data: bytes) -> GGUFError:
    with pytest.raises(GGUFError) as told:
        read_header(data)
    error = told.value
    assert error.kind in GGUF_KINDS
    assert 0 <= error.offset <= len(data)
    assert f" at byte {error.offset:,} is " in str(error)
    return error


def test_values_are_those_that_ggufs_reader_finds(tmp_path):
    keys = LLAMA | {"attention.layers": [1, 0, 3], "attention.flags": [True, False], "rope.freq_base": 0.5}
    path = write_gguf(
        tmp_path / "model.gguf", keys=keys | {"causal": True, "kind": "größer"}, name="A model", tokens=2000
    )
    header, reader = open_header(path), gguf.GGUFReader(path)
    assert header.version == 3
    assert header.n_tensors == len(reader.tensors) == 1
    fields = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    assert set(header.values) | set(header.skipped) == set(fields)
    assert {key: list(value) if isinstance(value, tuple) else value for key, value in header.values.items()} == {
        key: value for key, value in fields.items() if key in header.values
    }
    assert header.values["llama.attention.flags"] == (True, False)
    assert header.values["llama.kind"] == "größer"


def test_vocabularies_and_templates_are_counted_and_not_kept(tmp_path):
    header = open_header(write_gguf(tmp_path / "model.gguf", tokens=2000))
    assert dict(header.skipped) == {
        "tokenizer.ggml.tokens": 2000,
        "tokenizer.ggml.scores": 2000,
        "tokenizer.chat_template": 500 * len("{{ messages }}"),
    }
    assert not any(key.startswith("tokenizer.") for key in header.values)


@pytest.mark.parametrize("count", [MAX_LAYERS, MAX_LAYERS + 1])
def test_an_array_is_kept_up_to_one_entry_for_each_layer(count):
    header = read_header(raw([pair("a", ARRAY, array(U8, count, bytes(count)))]))
    kept = count <= MAX_LAYERS
    assert ("a" in header.values, "a" in header.skipped) == (kept, not kept)


def test_tensors_are_not_needed(tmp_path):
    whole = write_gguf(tmp_path / "model.gguf", tokens=50).read_bytes()
    header = read_header(whole)
    assert header.n_bytes < len(whole)
    assert read_header(whole[: header.n_bytes]) == header


def test_every_shorter_piece_is_refused(tmp_path):
    whole = write_gguf(tmp_path / "model.gguf", name="A model", tokens=3).read_bytes()
    end = read_header(whole).n_bytes
    assert {refused(whole[:cut]).kind for cut in range(end)} == {"eof", "count"}


def test_a_file_of_gigabytes_costs_no_memory(tmp_path):
    path = write_gguf(tmp_path / "model.gguf", tokens=20)
    os.truncate(path, 8 << 30)
    tracemalloc.start()
    try:
        geometry = from_gguf(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert geometry.heads == (2, 2)
    assert peak < 1 << 20


@pytest.mark.parametrize(
    ("data", "kind", "offset", "told"),
    [
        (b"", "eof", 0, "magic"),
        (b"GGU", "eof", 0, "3 bytes, where the data ends"),
        (raw(magic=b"ggml"), "magic", 0, "b'ggml'; allowed: b'GGUF'"),
        (raw(magic=b"FUGG"), "magic", 0, "magic"),
        (raw(version=0), "version", 4, "2 to 3"),
        (raw(version=1), "version", 4, "version at byte 4 is 1"),
        (raw(version=4), "version", 4, "version at byte 4 is 4"),
        (raw(version=3 << 24), "endian", 4, "3 in big-endian order; allowed: a little-endian file"),
        (raw(version=2)[:4], "eof", 4, "version"),
        (raw(n_tensors=HUGE), "count", 8, "tensor count"),
        (raw(n_kv=HUGE), "count", 16, "at most 0, as 0 bytes are left"),
        (raw(n_kv=1), "count", 16, "key count"),
        (raw([bytes(20)] * 2000, n_kv=MAX_HEADER_KEYS + 1), "count", 16, "at most 1,024"),
        (raw([struct.pack("<Q", HUGE) + bytes(99)]), "count", START, "length of a key"),
        (raw([text(b"") + bytes(20)]), "key", START, "1 to 65,535"),
        (raw([pair(b"x" * 65_536, U8, b"\x00")]), "key", START, "65,536"),
        (raw([pair(b"\xff\xfe", U8, b"\x00")]), "key", START, "ASCII"),
        (raw([pair("a", 13, bytes(8))]), "type", START + 9, "type of a at byte 33 is 13; allowed: a value type from 0"),
        (raw([pair("a", 2**31, bytes(8))]), "type", START + 9, "type of a"),
        (raw([pair("a", ARRAY, array(ARRAY, 1, array(U8, 1, b"\x00")))]), "type", START + 13, "an array of arrays"),
        (raw([pair("a", ARRAY, array(99, 1, b"\x00"))]), "type", START + 13, "type of the entries of a"),
        (raw([pair("a", ARRAY, array(U64, HUGE, b""))]), "count", START + 17, "entries of a"),
        (raw([pair("a", ARRAY, array(F32, 3, bytes(8)))]), "count", START + 17, "at most 2, as 8 bytes are left"),
        (raw([pair("a", ARRAY, array(STRING, HUGE, b""))]), "count", START + 17, "entries of a"),
        (raw([pair("a", ARRAY, array(STRING, 1, struct.pack("<Q", 9)))]), "count", START + 25, "length of a text of a"),
        (raw([pair("a", STRING, struct.pack("<Q", HUGE) + bytes(9))]), "count", START + 13, "length of a"),
        (raw([pair("a", STRING, text(b"\xc3("))]), "text", START + 13, "UTF-8"),
        (raw([number("a", 1), number("a", 2)]), "duplicate", START + 17, "a at byte 41 is there already"),
        (raw([number("a", 1)])[:-1] + b"", "eof", START + 13, "4 bytes"),
    ],
)
def test_a_damaged_header_is_refused_at_its_place(data, kind, offset, told):
    error = refused(data)
    assert (error.kind, error.offset) == (kind, offset)
    assert told in str(error)


def test_a_repeated_key_is_seen_even_where_its_value_is_skipped():
    long = pair("a", STRING, text(b"x" * 5000))
    assert refused(raw([long, long])).kind == "duplicate"


def test_a_header_beyond_the_bound_is_refused(monkeypatch):
    data = raw([pair("a", STRING, text(b"x" * 5000))])
    monkeypatch.setattr(gguf_header_cursor, "MAX_HEADER_BYTES", len(data))
    assert read_header(data).skipped == {"a": 5000}
    monkeypatch.setattr(gguf_header_cursor, "MAX_HEADER_BYTES", len(data) - 1)
    assert refused(data).kind == "too_large"


def test_a_claim_of_many_texts_takes_no_memory():
    data = raw([pair("a", ARRAY, array(STRING, 250_000, bytes(8 * 250_000)))])
    tracemalloc.start()
    try:
        header = read_header(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert header.skipped == {"a": 250_000}
    assert peak < 1 << 18


def test_booleans_are_booleans():
    assert read_header(raw([pair("a", BOOL, b"\x01"), pair("b", BOOL, b"\x00")])).values == {"a": True, "b": False}


@pytest.mark.parametrize("path", ["none.gguf", ".", "a\0b", "/dev/zero"])
def test_a_path_that_leads_to_no_plain_file(path, tmp_path):
    with pytest.raises(ParamError, match="allowed: a plain file that is there"):
        open_header(tmp_path / path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(ParamError, match="allowed: a plain file"):
        open_header(tmp_path / "pipe.gguf")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = write_gguf(tmp_path / "model.gguf")

    def refuse(self, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ParamError, match=r"allowed: a file that can be read \(Permission denied\)"):
        open_header(path)


def test_an_empty_file(tmp_path):
    (tmp_path / "empty.gguf").touch()
    with pytest.raises(GGUFError, match="magic at byte 0 is 0 bytes"):
        open_header(tmp_path / "empty.gguf")


def outcome(read, data):
    """What a reader returns, or the error it tells."""
    try:
        return read(data)
    except KVModelError as error:
        return error


@given(st.integers(0, len(SMALL) - 1), st.binary(min_size=1, max_size=12))
def test_a_change_anywhere_gives_a_geometry_or_a_named_error(at, change):
    found = outcome(from_gguf_bytes, SMALL[:at] + change + SMALL[at + len(change) :])
    assert isinstance(found, (Geometry, GGUFError, ParamError))
    assert 0 < len(str(found)) < 5000


@given(st.binary(max_size=200), st.sampled_from([1, 3]))
def test_any_bytes_behind_a_right_start_are_read_or_refused(rest, n_kv):
    found = outcome(read_header, raw([rest], n_kv=n_kv))
    kind = "read" if not isinstance(found, GGUFError) else found.kind
    assert kind in {"read", *GGUF_KINDS}
    assert kind != "read" or len(found.values) + len(found.skipped) == n_kv


@pytest.mark.parametrize("path", ["a" * 3000, "a\0b"])
def test_a_path_that_no_system_takes_is_refused(path: str) -> None:
    with pytest.raises(ParamError, match="path is"):
        open_header(path)
