"""The recurrent memory of mid-2025 once more, cell by cell (`llama_memory_recurrent`, release build)."""

import copy
from dataclasses import dataclass

from tests.reference.batch import Token, split_equal
from tests.reference.cells import INT32_MAX
from tests.reference.recurrent import RefRecurrent, SeqSets
from tests.reference.recurrent_edits import UINT32, RefAbort, State


@dataclass
class MemoryState(State):
    """One cell."""

    src0: int = -1


class RefMemory(RefRecurrent):
    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.cells: list[State] = [MemoryState() for _ in range(size)]
        self.rs_z = -1

    def seq_cp(self, src: int, dst: int) -> None:
        if src == dst:
            return
        super().seq_cp(src, dst)
        for cell in self.cells:
            cell.delta = 0

    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        if shift != 0:
            super().seq_add(seq, p0, p1, shift)

    def seq_div(self, seq: int, p0: int, p1: int, d: int) -> None:
        if d != 1:
            super().seq_div(seq, p0, p1, d)

    def seq_pos_min(self, seq: int) -> int:
        result = INT32_MAX
        for cell in self.cells:
            if seq in cell.ids:
                result = min(result, cell.pos)
        return -1 if result == INT32_MAX else result

    def seq_pos_max(self, seq: int) -> int:
        result = -1
        for cell in self.cells:
            if seq in cell.ids:
                result = max(result, cell.pos)
        return result

    def gather(self, sets: SeqSets, low: int) -> None:
        for s, ids in enumerate(sets.seqs):
            at, source = s + low, self.cells[ids[0]].tail
            if at == source:
                continue
            if at >= self.size:
                raise RefAbort
            here, there = self.cells[at], self.cells[source]
            here.pos, there.pos = there.pos, here.pos
            here.src, there.src = there.src, here.src
            here.ids, there.ids = there.ids, here.ids
            here.token, there.token = there.token, here.token
            for cell in self.cells:
                if cell.tail == source:
                    cell.tail = at
                elif cell.tail == at:
                    cell.tail = source

    def find_slot(self, sets: SeqSets) -> bool:
        if self.head > (self.used + 2 * len(sets.seqs)) % UINT32:
            self.head = 0
        if any(seq < 0 or seq >= self.size for ids in sets.seqs for seq in ids):
            return super().find_slot(sets)
        found = super().find_slot(sets)
        self.stage()
        return found

    def stage(self) -> None:
        low, high = self.head, (self.head + self.n - 1) % UINT32
        referred = [0] * self.size
        for cell in self.cells:
            if cell.src >= 0:
                referred[cell.src] += 1
        self.rs_z = -1
        for i in range(low, high + 1):
            if referred[i] == 0:
                self.rs_z = i
                break
        for i in range(low, high + 1):
            cell = self.cells[i]
            assert isinstance(cell, MemoryState)
            if cell.src < 0 and self.rs_z < 0:
                raise RefAbort
            cell.src0 = self.rs_z if cell.src < 0 else cell.src
            cell.src = i

    def init_batch(self, tokens: list[Token], n_ubatch: int) -> list[SeqSets] | None:
        """Sequence sets of every ubatch if all of them find their place, and nothing is changed."""
        ubatches = []
        for part in split_equal(tokens, n_ubatch):
            mine = [tokens[i] for row in part for i in row]
            owners = [tokens[row[0]].seqs for row in part]
            ubatches.append(SeqSets(owners, [token.pos for token in mine], [token.serial for token in mine]))
        saved = copy.deepcopy(self.cells), self.used, self.head, dict(self.blamed)
        fits = True
        for sets in ubatches:
            if not self.find_slot(sets):
                fits = False
                break
        self.cells, self.used, self.head, self.blamed = saved
        return ubatches if fits else None

    def decode(self, tokens: list[Token], n_ubatch: int) -> list[tuple[int, int]] | None:
        """Head and length of every slot; None if the batch finds no place. Positions are not checked."""
        ubatches = self.init_batch(tokens, n_ubatch)
        if ubatches is None:
            return None
        slots = []
        for sets in ubatches:
            self.find_slot(sets)
            slots.append((self.head, self.n))
        return slots
