"""Whole states cell by cell, and the edits of their sequences (`llama_kv_cache` with `recurrent`, January 2025).

A failed assertion raises; what was changed before it stays changed. Counters are unsigned 32-bit numbers.
"""

from dataclasses import dataclass, field

from tests.reference.cells import INT32_MAX

UINT32 = 2**32
DANGLING = "recurrent-dangling-tail"


class RefAbort(Exception):
    """Upstream would end its process, or do what its language leaves open."""

    def __init__(self, quirk: str = "") -> None:
        self.quirk = quirk
        super().__init__(quirk)


@dataclass
class State:
    """One cell."""

    pos: int = -1
    delta: int = 0
    src: int = -1
    tail: int = -1
    ids: set[int] = field(default_factory=set)
    token: int = -1


class RefStates:
    def __init__(self, size: int) -> None:
        self.size = size
        self.cells = [State() for _ in range(size)]
        self.head = 0
        self.used = 0
        self.n = 0
        self.blamed: dict[int, str] = {}

    def blame(self, quirk: str) -> None:
        """Keep in mind since when each tail is wrong."""
        wrong = [s for s in range(self.size) if self.cells[s].tail >= 0 and s not in self.cells[self.cells[s].tail].ids]
        self.blamed = {s: self.blamed.get(s, quirk) for s in wrong}

    def free(self, cell: State) -> None:
        cell.pos, cell.src, cell.token = -1, -1, -1

    def use_less(self) -> None:
        self.used = (self.used - 1) % UINT32

    def clear(self) -> None:
        for cell in self.cells:
            self.free(cell)
            cell.ids, cell.tail = set(), -1
        self.head = self.used = 0

    def seq_rm(self, seq: int, p0: int, p1: int) -> bool:
        self.blame("")
        p0 = max(p0, 0)
        p1 = INT32_MAX if p1 < 0 else p1
        if seq < 0:
            if p0 != p1 and (p0 != 0 or p1 != INT32_MAX):
                return False
        elif seq >= self.size or not self.rm_tail(seq, p0, p1):
            return False
        first = self.size
        for i, cell in enumerate(self.cells):
            if not p0 <= cell.pos < p1 or (seq >= 0 and seq not in cell.ids):
                continue
            cell.ids = set() if seq < 0 else cell.ids - {seq}
            if not cell.ids:
                if cell.pos >= 0:
                    self.use_less()
                self.free(cell)
                first = min(first, i)
        self.head = min(self.head, first)
        self.blame(DANGLING)
        return True

    def rm_tail(self, seq: int, p0: int, p1: int) -> bool:
        """Forget the tail if its state goes; False if only a part of it would."""
        tail = self.cells[seq].tail
        if tail < 0:
            return True
        pos = self.cells[tail].pos
        if 0 < p0 <= pos or 0 < p1 <= pos:
            return False
        if p0 <= pos < p1:
            self.cells[seq].tail = -1
        return True

    def seq_cp(self, src: int, dst: int) -> None:
        if not (0 <= dst < self.size and 0 <= src < self.size):
            return
        if self.cells[dst].tail >= 0:
            cell = self.cells[self.cells[dst].tail]
            cell.ids.discard(dst)
            self.cells[dst].tail = -1
            self.blame("")
            if not cell.ids:
                self.free(cell)
                cell.delta = -1
                self.use_less()
        if self.cells[src].tail >= 0:
            self.cells[self.cells[src].tail].ids.add(dst)
            self.cells[dst].tail = self.cells[src].tail

    def seq_keep(self, seq: int) -> None:
        first = self.size
        for i, cell in enumerate(self.cells):
            if i != seq:
                cell.tail = -1
            if seq not in cell.ids:
                if cell.pos >= 0:
                    self.use_less()
                self.free(cell)
                cell.ids = set()
                first = min(first, i)
            else:
                cell.ids = {seq}
        self.head = min(self.head, first)
        self.blame("")

    def state_in(self, seq: int, p0: int, p1: int) -> State | None:
        p0 = max(p0, 0)
        p1 = INT32_MAX if p1 < 0 else p1
        if p0 == p1 or not 0 <= seq < self.size or self.cells[seq].tail < 0:
            return None
        cell = self.cells[self.cells[seq].tail]
        return cell if seq in cell.ids and p0 <= cell.pos < p1 else None

    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        cell = self.state_in(seq, p0, p1)
        if cell is not None:
            cell.pos += shift

    def seq_div(self, seq: int, p0: int, p1: int, d: int) -> None:
        cell = self.state_in(seq, p0, p1)
        if cell is not None:
            if d == 0:
                raise RefAbort
            cell.pos = int(cell.pos / d)

    def seq_pos_max(self, seq: int) -> int:
        result = 0
        for cell in self.cells:
            if seq in cell.ids:
                result = max(result, cell.pos)
        return result

    def cell_max(self) -> int:
        for i in range(self.size, 0, -1):
            if self.cells[i - 1].pos >= 0 and self.cells[i - 1].ids:
                return i
        return 0

    def max_pos(self) -> int:
        result = -1
        for cell in self.cells:
            result = max(result, cell.pos)
        return result

    def wrong_tails(self) -> list[tuple[int, int, int]]:
        """Sequence, tail, and the cell that has it: upstream's debug check."""
        found = [-1] * self.size
        for i, cell in enumerate(self.cells):
            for seq in cell.ids:
                found[seq] = i
        return [(s, self.cells[s].tail, found[s]) for s in range(self.size) if self.cells[s].tail != found[s]]

    def twice_owned(self) -> list[int]:
        """Sequences that own more than one cell."""
        return [s for s in range(self.size) if sum(s in cell.ids for cell in self.cells) > 1]
