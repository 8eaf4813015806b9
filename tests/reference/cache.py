"""The cache around the cells: edits, trial and real stores, updates, decode (`llama_kv_cache_unified`)."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tests.reference.batch import Refusal, Token, bad_ids, complete, refusal, split_simple
from tests.reference.cells import INT32_MAX, MAX_SEQ, RefCells
from tests.reference.defrag import fragmentation, move_plan
from tests.reference.slots import Search, find_slot
from tests.reference.window import Window


@dataclass(frozen=True)
class Params:
    """Cells, padding unit of n_kv, window, layers held."""

    size: int
    n_pad: int = 1
    window: Window = field(default_factory=Window)
    n_layer: int = 1


@dataclass
class Decode:
    """Outcome of a decode: refused, failed_prepare or success; each ubatch with its slot."""

    status: str
    refusal: Refusal | None = None
    ubatches: list[list[int]] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)


@dataclass
class Update:
    """What an update did: the shift of every cell or None, the plan and its block moves, and whether it changed."""

    k_shift: list[int] | None
    ids: list[int] | None
    n_moves: int
    changed: bool


class RefCache:
    def __init__(self, params: Params) -> None:
        self.params = params
        self.cells = RefCells(params.size)
        self.head = 0
        self.searches: list[Search] = []

    @property
    def n_kv(self) -> int:
        unit = self.params.n_pad
        padded = (self.cells.used_max_p1() + unit - 1) & ~(unit - 1)
        return min(self.params.size, max(unit, padded))

    def _hits(self, p0: int, p1: int) -> Iterator[int]:
        """Cells in a range as the caller writes it, while the caller changes them."""
        low = max(p0, 0)
        high = INT32_MAX if p1 < 0 else p1
        for i in range(self.cells.n):
            if self.cells.pos_in(i, low, high):
                yield i

    def clear(self) -> None:
        self.cells.reset()
        self.head = 0

    def seq_rm(self, seq: int, p0: int, p1: int) -> None:
        freed = []
        for i in self._hits(p0, p1):
            if seq < 0:
                self.cells.rm(i)
                freed.append(i)
            elif seq in self.cells.seqs[i] and self.cells.seq_rm(i, seq):
                freed.append(i)
        self._head_back_to(freed)

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        if src == dst:
            return
        for i in self._hits(p0, p1):
            if src in self.cells.seqs[i]:
                self.cells.seq_add(i, dst)

    def seq_keep(self, seq: int) -> None:
        self._head_back_to([i for i in range(self.cells.n) if self.cells.seq_keep(i, seq)])

    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        if shift == 0 or max(p0, 0) == (INT32_MAX if p1 < 0 else p1):
            return
        freed = [i for i in self._hits(p0, p1) if seq in self.cells.seqs[i] and self.cells.pos_add(i, shift)]
        self.head = freed[0] if freed else 0

    def seq_div(self, seq: int, p0: int, p1: int, d: int) -> None:
        if d == 1:
            return
        for i in self._hits(p0, p1):
            if seq in self.cells.seqs[i]:
                self.cells.pos_div(i, d)

    def _head_back_to(self, freed: list[int]) -> None:
        if freed and freed[0] < self.head:
            self.head = freed[0]

    def find_slot(self, n: int) -> Search:
        return find_slot(self.cells, self.head, n, self.params.window)

    def prepare(self, ubatches: list[list[Token]]) -> list[int] | None:
        """The slot of every ubatch, or None; the cells are put back, purged ones and lost shifts are not."""
        self.searches = []
        undo = []
        for ubatch in ubatches:
            search = self.find_slot(len(ubatch))
            self.searches.append(search)
            if search.cell < 0:
                break
            undo.append((self.head, search.cell, self.cells.keep(search.cell, len(ubatch))))
            self.apply_ubatch(search.cell, ubatch)
        for head, begin, kept in reversed(undo):
            self.cells.put_back(begin, kept)
            self.head = head
        return [begin for _, begin, _ in undo] if len(undo) == len(ubatches) else None

    def apply_ubatch(self, begin: int, ubatch: list[Token]) -> None:
        newest_lost = [-1] * MAX_SEQ
        for i, token in enumerate(ubatch, begin):
            if not self.cells.is_empty(i):
                [owner] = self.cells.seqs[i]
                newest_lost[owner] = max(newest_lost[owner], self.cells.pos[i])
                self.cells.rm(i)
            self.cells.pos_set(i, token.pos, token.serial)
            for seq in token.seqs:
                self.cells.seq_add(i, seq)
        for seq, newest in enumerate(newest_lost):
            oldest = self.cells.pos_min(seq)
            if newest >= 0 and oldest <= newest:
                self.seq_rm(seq, oldest, newest + 1)
        self.head = begin + len(ubatch)

    def decode(self, tokens: list[Token], n_ubatch: int, *, embd: bool = False, auto_pos: bool = False) -> Decode:
        """The whole of a decode but the computation."""
        pos_min, pos_max = self.cells.pos_min, self.cells.pos_max
        refused = bad_ids(tokens)
        if refused is None:
            tokens = complete(tokens, pos_max) if auto_pos else tokens
            refused = refusal(tokens, embd, pos_min, pos_max)
        if refused is not None:
            return Decode("refused", refused)
        parts = split_simple(tokens, n_ubatch)
        ubatches = [[tokens[i] for i in part] for part in parts]
        heads = self.prepare(ubatches)
        if heads is None:
            return Decode("failed_prepare")
        for head, ubatch in zip(heads, ubatches, strict=True):
            self.apply_ubatch(head, ubatch)
        return Decode("success", None, parts, heads)

    def max_moves(self, n_max_nodes: int) -> int:
        """Block moves of a graph budget; a negative difference turns into a huge unsigned one."""
        return (n_max_nodes - 2 * self.params.n_layer) % 2**32 // (6 * self.params.n_layer)

    def update(self, *, optimize: bool, thold: float, n_max_nodes: int) -> Update:
        """Pending shifts, then a defrag planned before them."""
        wasted = fragmentation(len(self.cells.used), self.cells.used_max_p1(), self.params.n_pad)
        ids, n_moves = None, 0
        if optimize or (thold > 0 and wasted > float(np.float32(thold))):
            ids, n_moves = move_plan(self.cells, self.max_moves(n_max_nodes))
        k_shift = self.k_shift() if self.cells.has_shift else None
        if k_shift is not None:
            self.cells.reset_shift()
        if ids:
            for i, target in enumerate(ids):
                if target not in (i, len(ids)):
                    self.cells.mv(i, target)
            self.head = 0
        return Update(k_shift, ids, n_moves, k_shift is not None or bool(ids))

    def k_shift(self) -> list[int]:
        return [0 if self.cells.is_empty(i) else self.cells.shift[i] for i in range(self.cells.n)]
