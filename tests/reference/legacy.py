"""The older transformer cache in literal loops, as llama-kv-cache.cpp and llama.cpp of January 2025 walk it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tests.reference.batch import Token, split_simple
from tests.reference.cells import EMPTY, INT32_MAX, int32
from tests.reference.sbatch import older_split_equal, older_split_seq
from tests.reference.slots import Search


class Crash(Exception):
    """The C++ ends its process here."""


class RefLegacyCells:
    """Positions, deltas, owners and serial numbers, one list entry a cell."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.pos = [EMPTY] * n
        self.delta = [0] * n
        self.seqs: list[set[int]] = [set() for _ in range(n)]
        self.serial = [-1] * n

    def free(self, i: int) -> None:
        """No position and no owner. The delta stays."""
        self.pos[i], self.seqs[i], self.serial[i] = EMPTY, set(), -1

    def mv(self, src: int, dst: int) -> None:
        for array in (self.pos, self.delta, self.seqs, self.serial):
            array[dst] = array[src]
        self.delta[src] = 0
        self.free(src)


@dataclass
class Decoded:
    """Return code; per ubatch its tokens, what an update did before it, the search, head after it, and n."""

    ret: int = 0
    parts: list[list[int]] = field(default_factory=list)
    updates: list["Updated"] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    n: list[int] = field(default_factory=list)
    frag: float | None = None


@dataclass
class Updated:
    """The delta of every cell if they were rotated, the plan if there was one (empty: no move), and its moves."""

    k_shift: list[int] | None = None
    ids: list[int] | None = None
    n_moves: int = 0


@dataclass
class Seen:
    """The cache view: counts, the longest run without owner, and per cell position and first ids."""

    token_count: int = 0
    used_cells: int = 0
    max_contiguous: int = 0
    max_contiguous_idx: int = -1
    pos: list[int] = field(default_factory=list)
    seqs: list[list[int]] = field(default_factory=list)


class RefLegacy:
    """The cache with its counters, and the decode loop around it."""

    def __init__(self, size: int, padding: int, n_layer: int) -> None:
        self.padding, self.n_layer = padding, n_layer
        self.cells = RefLegacyCells(size)
        self.head = self.used = self.n = 0
        self.has_shift = self.do_defrag = False

    def cell_max(self) -> int:
        for i in range(self.cells.n, 0, -1):
            if self.cells.pos[i - 1] >= 0 and self.cells.seqs[i - 1]:
                return i
        return 0

    def max_pos(self) -> int:
        return max([-1, *self.cells.pos])

    def seq_pos_max(self, seq: int) -> int:
        result = 0
        for i in range(self.cells.n):
            if seq in self.cells.seqs[i]:
                result = max(result, self.cells.pos[i])
        return result

    def clear(self) -> None:
        for i in range(self.cells.n):
            self.cells.free(i)
        self.head = self.used = 0

    def _hits(self, p0: int, p1: int) -> Iterator[int]:
        low, high = max(p0, 0), INT32_MAX if p1 < 0 else p1
        for i in range(self.cells.n):
            if low <= self.cells.pos[i] < high:
                yield i

    def seq_rm(self, seq: int, p0: int, p1: int) -> None:
        new_head = self.cells.n
        for i in self._hits(p0, p1):
            if seq < 0:
                self.cells.seqs[i].clear()
            elif seq in self.cells.seqs[i]:
                self.cells.seqs[i].remove(seq)
            else:
                continue
            if not self.cells.seqs[i]:
                self.used -= 1
                self.cells.free(i)
                new_head = min(new_head, i)
        self.head = min(self.head, new_head) if new_head < self.cells.n else self.head

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        self.head = 0
        for i in self._hits(p0, p1):
            if src in self.cells.seqs[i]:
                self.cells.seqs[i].add(dst)

    def seq_keep(self, seq: int) -> None:
        new_head = self.cells.n
        for i in range(self.cells.n):
            if seq in self.cells.seqs[i]:
                self.cells.seqs[i] = {seq}
                continue
            if self.cells.pos[i] >= 0:
                self.used -= 1
            self.cells.free(i)
            new_head = min(new_head, i)
        self.head = min(self.head, new_head) if new_head < self.cells.n else self.head

    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        if max(p0, 0) == (INT32_MAX if p1 < 0 else p1):
            return
        new_head = self.cells.n
        for i in self._hits(p0, p1):
            if seq not in self.cells.seqs[i]:
                continue
            self.has_shift = True
            self.cells.pos[i] = int32(self.cells.pos[i] + shift)
            self.cells.delta[i] = int32(self.cells.delta[i] + shift)
            if self.cells.pos[i] < 0:
                self.used -= 1
                self.cells.free(i)
                new_head = min(new_head, i)
        self.head = new_head if new_head < self.cells.n else 0

    def seq_div(self, seq: int, p0: int, p1: int, d: int) -> None:
        for i in self._hits(p0, p1):
            if seq in self.cells.seqs[i]:
                self.has_shift = True
                old = self.cells.pos[i]
                self.cells.pos[i] = old // d
                self.cells.delta[i] = int32(self.cells.delta[i] + self.cells.pos[i] - old)

    def find_slot(self, tokens: list[Token]) -> Search:
        """Seek and fill; head moves on the way, whether there is a slot or not."""
        n, size = len(tokens), self.cells.n
        search = Search(self.head)
        if n > size:
            return search
        while True:
            if self.head + n > size:
                search.probes.append((self.head, size, "end"))
                search.tested += size - self.head
                self.head = 0
                continue
            stop = next((i for i in range(self.head, self.head + n) if self.cells.pos[i] >= 0), None)
            if stop is None:
                break
            search.probes.append((self.head, stop, "occupied"))
            search.tested += stop - self.head + 1
            self.head = stop + 1
            if search.tested % 2**32 >= size:
                return search
        search.cell = self.head
        for i, token in enumerate(tokens, self.head):
            self.cells.pos[i], self.cells.serial[i] = token.pos, token.serial
            self.cells.seqs[i].update(token.seqs)
        self.used += n
        return search

    def passed(self, n: int) -> None:
        """Head after a computation."""
        self.head += n
        if self.head >= self.cells.n:
            self.head = 0

    def longest_free(self) -> tuple[int, int]:
        """Length and first cell of the longest run without position, the first one of that length."""
        best, where = 0, -1
        for begin in range(self.cells.n):
            end = begin
            while end < self.cells.n and self.cells.pos[end] < 0:
                end += 1
            if end - begin > best:
                best, where = end - begin, begin
        return best, where

    def update(self, n_max_nodes: int) -> Updated:
        done = Updated()
        if self.has_shift:
            done.k_shift = list(self.cells.delta)
            self.cells.delta = [0] * self.cells.n
            self.has_shift = False
        if self.do_defrag:
            done.ids, done.n_moves = self.defrag((n_max_nodes - 2 * self.n_layer) % 2**32 // (6 * self.n_layer))
            self.do_defrag = False
        return done

    def defrag(self, max_moves: int) -> tuple[list[int], int]:
        """Move cells hole by hole while planning: where each went, and how many block moves that took."""
        n_kv, n_used = self.cell_max(), self.used
        ids = [n_kv] * n_kv
        n_moves = 0
        i0 = 0
        while i0 < n_used:
            if i0 >= self.cells.n:
                raise Crash
            if self.cells.seqs[i0]:
                ids[i0] = i0
                i0 += 1
                continue
            hole = 1
            while i0 + hole < min(n_used, self.cells.n) and not self.cells.seqs[i0 + hole]:
                hole += 1
            n_moves, full = self._fill_hole(ids, i0, hole, n_moves, max_moves)
            if not full or n_moves == max_moves:
                break
            i0 += hole
        return (ids, n_moves) if n_moves else ([], 0)

    def _fill_hole(self, ids: list[int], i0: int, hole: int, n_moves: int, max_moves: int) -> tuple[int, bool]:
        n_kv, found, first = len(ids), 0, len(ids)
        while found < hole:
            first -= 1
            if first <= i0:
                raise Crash
            found += bool(self.cells.seqs[first]) and ids[first] == n_kv
        filled, in_block = 0, False
        for i in range(first, n_kv):
            if not self.cells.seqs[i] or ids[i] != n_kv:
                if n_moves == max_moves:
                    return n_moves, False
                in_block = False
                continue
            ids[i] = i0 + filled
            self.cells.mv(i, i0 + filled)
            self.head = self.used
            n_moves += not in_block
            in_block = True
            filled += 1
            if filled == hole:
                break
        return n_moves, True

    def decode(
        self,
        tokens: list[Token],
        n_ubatch: int,
        *,
        split: str = "simple",
        fail_at: int | None = None,
        thold: float = -1.0,
        n_max_nodes: int = 8192,
        auto_update: bool = True,
    ) -> Decoded:
        """Ubatch after ubatch: update, search and store, n; the roll-back takes cells for positions."""
        done = Decoded(parts=split_older(tokens, n_ubatch, split))
        head, n, slots = self.head, self.n, []
        for k, part in enumerate(done.parts):
            done.updates.append(self.update(n_max_nodes) if auto_update else Updated())
            if self.head > self.used + 2 * len(part):
                self.head = 0
            search = self.find_slot([tokens[i] for i in part])
            done.searches.append(search)
            done.heads.append(self.head)
            if search.cell < 0:
                done.ret = 1
                return done
            slots.append((search.cell, search.cell + len(part)))
            padded = (self.cell_max() + self.padding - 1) // self.padding * self.padding
            self.n = min(self.cells.n, max(self.padding, padded))
            done.n.append(self.n)
            if k == fail_at:
                self.head, self.n = head, n
                for begin, end in slots:
                    self.seq_rm(-1, begin, end)
                done.ret = -3
                return done
            self.passed(len(part))
        if thold >= 0:
            done.frag = float(np.float32(1) - np.float32(self.used) / np.float32(self.n)) if self.n >= 128 else 0.0
            self.do_defrag |= done.frag > float(np.float32(thold))
        return done

    def view(self, n_seq_max: int) -> Seen:
        seen = Seen()
        begin = -1
        for i in range(self.cells.n):
            owners = sorted(self.cells.seqs[i])
            seen.token_count += len(owners)
            seen.pos.append(int32(self.cells.pos[i] + self.cells.delta[i]))
            seen.seqs.append([*owners, *[-1] * n_seq_max][:n_seq_max])
            seen.used_cells += bool(owners[:n_seq_max])
            if not owners and begin < 0:
                begin = i
            if not owners and i + 1 - begin > seen.max_contiguous:
                seen.max_contiguous, seen.max_contiguous_idx = i + 1 - begin, begin
            if owners:
                begin = -1
        return seen


def split_older(tokens: list[Token], n_ubatch: int, how: str) -> list[list[int]]:
    """Indices of the tokens of every ubatch; a split by sequences takes no token without one."""
    if how == "simple":
        return split_simple(tokens, n_ubatch)
    if not all(token.seqs for token in tokens):
        raise Crash
    splits = {"equal": older_split_equal, "seq": older_split_seq}
    return [part.idx for part in splits[how](tokens, n_ubatch)]
