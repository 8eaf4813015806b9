"""Fragmentation and the move plan, cell by cell (`init_update` and `defrag_prepare`)."""

import numpy as np

from tests.reference.cells import RefCells


def fragmentation(used: int, used_max_p1: int, n_pad: int) -> float:
    """1 - (used + n_pad) / used_max_p1 in single precision, never below 0; 0 for short caches."""
    if used_max_p1 < 2048:
        return 0.0
    share = np.float32(used + n_pad) / np.float32(used_max_p1)
    return max(0.0, float(np.float32(1) - share))


def move_plan(cells: RefCells, max_moves: int) -> tuple[list[int], int]:
    """Where every cell goes (used_max_p1 = nowhere), and the number of block moves; no plan without a move."""
    n_kv, n_used = cells.used_max_p1(), len(cells.used)
    ids = [n_kv] * n_kv
    n_moves = 0
    i0 = 0
    while i0 < n_used:
        if not cells.is_empty(i0):
            ids[i0] = i0
            i0 += 1
            continue
        hole = 1
        while i0 + hole < n_used and cells.is_empty(i0 + hole):
            hole += 1
        n_moves, full = _fill_hole(cells, ids, i0, hole, n_moves, max_moves)
        if not full or n_moves == max_moves:
            break
        i0 += hole
    return (ids, n_moves) if n_moves else ([], 0)


def _fill_hole(cells: RefCells, ids: list[int], i0: int, hole: int, n_moves: int, max_moves: int) -> tuple[int, bool]:
    """Fill one hole with the last cells that do not move yet; return the moves so far, and whether it is full."""
    n_kv = len(ids)
    waiting = [i for i in range(i0 + 1, n_kv) if not cells.is_empty(i) and ids[i] == n_kv]
    filled, in_block = 0, False
    for i in range(waiting[-hole], n_kv):
        if cells.is_empty(i) or ids[i] != n_kv:
            if n_moves == max_moves:
                return n_moves, False
            in_block = False
            continue
        ids[i] = i0 + filled
        if not in_block:
            n_moves += 1
            in_block = True
        filled += 1
        if filled == hole:
            break
    return n_moves, True
