"""The cells in a state stream: position, number of owners, owners; one record a cell, in 32-bit words.

Counterpart of `state_write_meta` and of the single-sequence half of `state_read_meta` in llama-kv-cache-unified.cpp.
"""

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import seq_bit
from kvmodel.formats.errors import StateError
from kvmodel.formats.stream import Reader
from kvmodel.limits import INT32_MAX

FIELDS = ("pos", "n_seq_id", "seq_id")
"""The words of a cell with one owner."""


def encode_cells(pos: NDArray[np.int32], seqs: NDArray[np.uint64]) -> bytes:
    """Cells as a stream holds them, owners ascending.

    Args:
        pos: int32 [n], positions.
        seqs: uint64 [n], the owners to write.
    """
    n_ids = np.bitwise_count(seqs).astype(np.int64)
    ends = np.cumsum(2 + n_ids)
    starts = ends - 2 - n_ids
    words = np.empty(int(ends[-1]) if len(ends) else 0, "<i4")
    words[starts], words[starts + 1] = pos, n_ids
    everyone = int(np.bitwise_or.reduce(seqs, initial=np.uint64(0)))
    for seq in range(everyone.bit_length()):
        bit = seq_bit(seq)
        owned = np.flatnonzero(seqs & bit)
        rank = np.bitwise_count(seqs[owned] & (bit - np.uint64(1)))
        words[starts[owned] + 2 + rank] = seq
    return words.tobytes()


def read_single(reader: Reader, count: int, n_ids: int, lowest_pos: int) -> NDArray[np.int32]:
    """Positions of the cells of one sequence; their ids are read and dropped.

    Args:
        reader: stands at the first cell.
        count: cells that the stream announces.
        n_ids: owners that each must have: 1, in the older generation 0.
        lowest_pos: smallest position allowed.

    Returns:
        int32 [count].

    Raises:
        StateError: kind not_single_seq, bad_pos or eof, whichever is met first.
    """
    base, width = reader.offset, 2 + n_ids
    words = reader.words()[: count * width]
    pos, n_seq_id = words[::width], words[1::width]
    wrong = first_true(n_seq_id != n_ids)
    low = first_true(pos[: wrong + 1] < lowest_pos)
    if low < len(pos[: wrong + 1]):
        raise bad_pos(base + 4 * low * width, low, int(pos[low]), lowest_pos)
    if wrong < len(n_seq_id):
        at, found = base + 4 * (wrong * width + 1), int(n_seq_id[wrong]) % 2**32
        raise StateError("not_single_seq", at, f"n_seq_id of cell {wrong}", n_ids, f"{found:,}", consumed=at + 4)
    reader.take(4 * len(words), "cells")
    if len(words) < count * width:
        raise reader.eof(f"{FIELDS[len(words) % width]} of cell {len(words) // width}", 4)
    return pos.astype(np.int32)


def first_true(flags: NDArray[np.bool_]) -> int:
    """Index of the first True, the length if there is none."""
    return int(flags.argmax()) if flags.any() else len(flags)


def bad_pos(at: int, cell: int, pos: int, lowest: int) -> StateError:
    """The error of a position below `lowest` at byte `at`."""
    return StateError("bad_pos", at, f"pos of cell {cell}", f"{lowest} to {INT32_MAX:,}", pos, consumed=at + 4)
