"""Where each cell goes in a defragmentation: a pure function from cells to a plan.

Counterpart of `llama_kv_cache_unified::defrag_prepare`; the older cache plans the same way.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvmodel.errors import CacheAbort
from kvmodel.show import Card, Shown, plan_card

Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class DefragPlan(Shown):
    """Moves that fill the holes from the end of the cache.

    Attributes:
        ids: int64 [n], cell i moves to ids[i]; ids[i] = i or ids[i] = n means that it stays. Empty if nothing moves.
        moves: int64 [m, 3], maximal blocks (source, destination, length) in order of the source.
        n_moves: block moves counted against the budget.
        max_moves: the budget, 0 for none (quirk defrag-zero-budget).
        n_holes: empty cells that a full compaction would fill.
    """

    ids: NDArray[np.int64]
    moves: NDArray[np.int64]
    n_moves: int
    max_moves: int
    n_holes: int

    @property
    def empty(self) -> bool:
        """Whether nothing moves."""
        return not len(self.ids)

    def card(self) -> Card:
        """The moves, to be shown in Jupyter or printed."""
        return plan_card(self.moves, self.n_moves, self.n_holes, self.max_moves)

    @property
    def src(self) -> Index:
        """Cells that move."""
        return np.flatnonzero(self._moving)

    @property
    def dst(self) -> Index:
        """Where the cells of `src` go."""
        return self.ids[self._moving].astype(np.intp)

    @property
    def _moving(self) -> NDArray[np.bool_]:
        moving: NDArray[np.bool_] = (self.ids != len(self.ids)) & (self.ids != np.arange(len(self.ids)))
        return moving

    @property
    def truncated(self) -> bool:
        """Whether the budget ended the plan before every hole was filled."""
        return len(self.src) < self.n_holes


def move_budget(n_max_nodes: int, n_layer: int) -> int:
    """Block moves that fit into a graph of `n_max_nodes` nodes, in upstream's unsigned arithmetic.

    Six nodes a move and layer: source view, destination view and copy, for K and for V.

    Raises:
        CacheAbort: the cache holds no layer; upstream divides by zero.
    """
    if not n_layer:
        raise CacheAbort("defrag of a cache that holds no layers: upstream divides by zero and ends its process")
    return (n_max_nodes - 2 * n_layer) % 2**32 // (6 * n_layer)


def plan_defrag(filled: NDArray[np.bool_], max_moves: int, n_used: int | None = None) -> DefragPlan:
    """Fill every hole below the number of used cells with the last cells, block by block.

    A hole takes the last cells not yet taken, as many as it is long, in ascending order. Each maximal block of
    neighbours is one move.

    Args:
        filled: bool [used_max_p1], which cells are in use.
        max_moves: budget; the plan ends after that many blocks. 0 never ends it.
        n_used: the cache's own counter where it keeps one; by default the cells are counted.

    Raises:
        CacheAbort: the counter is larger than the number of cells in use, and the budget does not end the plan before
            that matters; upstream asserts.
    """
    n_kv, count = len(filled), int(np.count_nonzero(filled))
    n_used = count if n_used is None else n_used
    reach = min(n_used, count)
    holes = np.flatnonzero(~filled[:reach])
    if not len(holes):
        _assert_ended(n_used, count, ended=False)
        return DefragPlan(np.empty(0, np.int64), np.empty((0, 3), np.int64), 0, max_moves, 0)
    hole_of = np.cumsum(np.concatenate([[True], np.diff(holes) != 1])) - 1
    last = np.flatnonzero(filled[reach:])[-len(holes) :] + reach
    sources = _sources(last, np.bincount(hole_of))
    block = np.cumsum(np.concatenate([[True], (np.diff(sources) != 1) | (np.diff(hole_of) != 0)]))
    kept = block <= max_moves if max_moves else np.ones(len(block), np.bool_)
    n_moves = int(block[kept][-1])
    ended = bool(max_moves) and n_moves == max_moves
    last_hole = holes[hole_of == hole_of[kept][-1]]
    longer = int(last_hole[-1]) + 1 == count and not filled[count]
    _assert_ended(n_used, count, ended=ended and not longer)
    ids = np.full(n_kv, n_kv, np.int64)
    stays = np.flatnonzero(filled[: int(last_hole[0]) if ended else reach])
    ids[stays] = stays
    ids[sources[kept]] = holes[kept]
    return DefragPlan(ids, _blocks(ids), n_moves, max_moves, len(holes))


def _assert_ended(n_used: int, count: int, *, ended: bool) -> None:
    """A counter above the number of cells leads to a hole that nothing fills, unless the budget ends the plan first."""
    if n_used > count and not ended:
        raise CacheAbort(f"{n_used} cells are counted as used but {count} have an owner: upstream's defrag asserts")


def _sources(cells: Index, hole_lengths: NDArray[np.intp]) -> Index:
    """The cell that fills each hole cell: holes take chunks from the end of `cells`, each chunk ascending."""
    taken = np.cumsum(hole_lengths)
    chunk_start = len(cells) - taken
    within = np.arange(len(cells)) - np.repeat(taken - hole_lengths, hole_lengths)
    sources: Index = cells[np.repeat(chunk_start, hole_lengths) + within]
    return sources


def _blocks(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Maximal blocks (source, destination, length) in which source and destination count up together."""
    src = np.flatnonzero((ids != len(ids)) & (ids != np.arange(len(ids))))
    dst = ids[src]
    begins = np.flatnonzero(np.concatenate([[True], (np.diff(src) != 1) | (np.diff(dst) != 1)]))
    lengths = np.diff(np.append(begins, len(src)))
    return np.stack([src[begins], dst[begins], lengths], axis=1)
