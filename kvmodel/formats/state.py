"""State streams: a cache, or one sequence of it, written to bytes and read back.

Counterpart of `state_write` and `state_read` of llama.cpp's caches, what a refused stream leaves behind included. The
stream holds positions, owners, K and V; pending shifts and head are no part of it. A pair of caches writes its full
half, then its window half, and reading stops at the first failure.
"""

import struct
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.memory_recurrent import RecurrentMemory
from kvmodel.caches.recurrent import RecurrentCache
from kvmodel.caches.unified import UnifiedCache
from kvmodel.errors import CacheAbort, ParamError, check_int
from kvmodel.events import QuirkSeen, StateRead, StateRefused, StateWritten
from kvmodel.formats.errors import StateError
from kvmodel.formats.state_cells import encode_cells, read_single
from kvmodel.formats.state_older import LegacyPlaces, MemoryPlaces, RecurrentPlaces
from kvmodel.formats.state_places import Places
from kvmodel.formats.state_rows import encode_rows, read_rows, rows_size
from kvmodel.formats.state_table import read_table
from kvmodel.formats.state_unified import UnifiedPlaces
from kvmodel.formats.stream import U32, Data, Reader
from kvmodel.limits import MAX_SEQ, MAX_STATE_BYTES


def places_of(part: object) -> Places:
    """The rules of one set of cells.

    Raises:
        ParamError: there is no state stream for such a cache.
    """
    match part:
        case UnifiedCache():
            return UnifiedPlaces(part)
        case LegacyCache():
            return LegacyPlaces(part)
        case RecurrentCache():
            return RecurrentPlaces(part)
        case RecurrentMemory():
            return MemoryPlaces(part)
    raise ParamError("cache", type(part).__name__, "a unified, iSWA, legacy or recurrent cache")


class HasParts(Protocol):
    """Any cache: one set of cells, or a pair."""

    @property
    def parts(self) -> tuple[object, ...]:
        """The sets of cells inside."""
        ...


def write_state(cache: HasParts, seq: int = -1) -> bytes:
    """The cache as a stream. Changes nothing.

    Args:
        cache: any of the kinds. Without tensors the bytes of K and V are 0.
        seq: write the cells of this sequence only, and it as their only owner; -1 writes everything.

    Raises:
        ParamError: `seq` is out of range, or the stream would exceed MAX_STATE_BYTES.
    """
    seq = check_int("seq", seq, -1, MAX_SEQ - 1)
    every = [places_of(part) for part in cache.parts]
    total = sum(rows_size(places.cache.layout, len(places.chosen(seq))) for places in every)
    if total > MAX_STATE_BYTES:
        raise ParamError("state", f"{total:,} bytes", f"{MAX_STATE_BYTES:,} bytes at most")
    return b"".join(piece for places in every for piece in _encode(places, seq))


def _encode(places: Places, seq: int) -> Iterator[bytes]:
    cache, cells = places.cache, places.chosen(seq)
    yield struct.pack(U32, len(cells))
    meta = encode_cells(cache.cells.pos[cells], places.owners(cells, seq))
    yield meta
    yield from encode_rows(cache.layout, cache.tensors, cells)
    n_bytes = 4 + len(meta) + rows_size(cache.layout, len(cells))
    with_data = cache.tensors is not None
    cache.emit(StateWritten(seq=seq, cells=cells, n_bytes=n_bytes, with_data=with_data, cache=cache.name))


def read_state(cache: HasParts, data: Data, seq: int = -1) -> int:
    """Restore a stream. Mutates.

    Args:
        cache: any of the kinds. Without tensors the K and V in the stream are checked and skipped.
        data: the stream; what follows it is not looked at.
        seq: restore as this sequence, into one slot of cells; -1 replaces the whole cache, from cell 0 on.

    Returns:
        bytes consumed.

    Raises:
        StateError: the stream is refused. An early end leaves what was read (quirk state-truncated); any other
            reason clears the cache, or removes `seq`.
        CacheAbort: a single sequence of 0 cells (quirk state-empty-seq), or one that upstream would find damaged.
    """
    seq = check_int("seq", seq, -1, MAX_SEQ - 1)
    reader = Reader(data)
    for part in cache.parts:
        _restore(reader, places_of(part), seq)
    return reader.offset


def _restore(reader: Reader, places: Places, seq: int) -> None:
    cache, layout, begin = places.cache, places.cache.layout, reader.offset
    try:
        count = reader.number(U32, "cell_count")
        if seq < 0:
            _read_all(reader, places, count)
        else:
            _read_sequence(reader, places, count, seq)
        read_rows(reader, layout, cache.tensors, cache.head, count)
    except StateError as refusal:
        _clean_up(places, refusal, seq)
        raise
    cells = np.arange(cache.head, cache.head + count)
    n_bytes = reader.offset - begin
    cache.emit(StateRead(seq=seq, cells=cells, n_bytes=n_bytes, head=cache.head, cache=cache.name))


def _read_all(reader: Reader, places: Places, count: int) -> None:
    cache, at = places.cache, reader.offset - 4
    if count > cache.size:
        allowed = f"{cache.size:,} at most"
        raise StateError("too_many_cells", at, "cell_count", allowed, f"{count:,}", consumed=reader.offset)
    table = read_table(reader, count, places.rules)
    places.put_all(table)
    if table.end is not None:
        raise table.end


def _read_sequence(reader: Reader, places: Places, count: int, seq: int) -> None:
    cache, at = places.cache, reader.offset - 4
    cache.seq_rm(seq, -1, -1)
    pos = read_single(reader, count, places.n_ids, places.lowest_pos)
    if not count:
        detail = "upstream looks at the first cell of the slot and ends its process"
        raise CacheAbort(f"the stream restores sequence {seq} from 0 cells: {detail}", quirk="state-empty-seq")
    allowed = places.put_sequence(pos, seq)
    if allowed:
        raise StateError("no_slot", at, "cell_count", allowed, f"{count:,}", consumed=reader.offset)
    if not places.holds(pos, seq):
        raise CacheAbort(f"storing sequence {seq} removed part of it at once; upstream asserts that it is all there")


def _clean_up(places: Places, refusal: StateError, seq: int) -> None:
    """What upstream does after a refusal; an early end is thrown past it."""
    cache, left = places.cache, "half-read"
    if refusal.kind != "eof":
        left = "cleared" if seq < 0 else "removed"
        if seq < 0:
            cache.clear(data=True)
        else:
            cache.seq_rm(seq, -1, -1)
    cache.emit(
        StateRefused(
            seq=seq, kind=refusal.kind, message=str(refusal), offset=refusal.offset, left=left, cache=cache.name
        )
    )
    if left == "half-read":
        detail = "the stream ended too early, and what was read before that stays in the cache"
        cache.emit(QuirkSeen(quirk="state-truncated", detail=detail, cache=cache.name))
