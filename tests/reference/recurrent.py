"""The recurrent cache once more, set by set: its search, its graph inputs and the decode around it."""

from dataclasses import dataclass

from tests.reference.batch import Token
from tests.reference.recurrent_edits import UINT32, RefAbort, RefStates
from tests.reference.sbatch import older_split_equal, older_split_seq

SWAP_LOSS = "recurrent-swap-loss"


@dataclass
class SeqSets:
    """A ubatch of equally long sequence sets: ids of each, positions and serials set by set."""

    seqs: list[tuple[int, ...]]
    pos: list[int]
    serials: list[int]

    @property
    def per(self) -> int:
        return len(self.pos) // len(self.seqs)


@dataclass
class Inputs:
    s_mask: list[bool]
    s_copy: list[int]


@dataclass
class Stored:
    """One ubatch of a decode: whether it found its place, head after the search, the inputs."""

    idx: list[int]
    found: bool
    head: int
    n: int = 0
    inputs: Inputs | None = None


class RefRecurrent(RefStates):
    def find_slot(self, sets: SeqSets) -> bool:
        self.blame("")
        if not self.leave_for_shared(sets):
            return False
        low, high = self.claim(sets)
        self.gather(sets, low)
        self.tag(sets, low)
        self.head = low
        self.n = (high - low + 1) % UINT32
        self.used = sum(1 for cell in self.cells if cell.ids)
        self.blame(SWAP_LOSS)
        return self.n >= len(sets.seqs)

    def leave_for_shared(self, sets: SeqSets) -> bool:
        for ids in sets.seqs:
            for j, seq in enumerate(ids):
                if seq < 0 or seq >= self.size:
                    return False
                if j > 0 and self.cells[seq].tail >= 0:
                    cell = self.cells[self.cells[seq].tail]
                    cell.ids.discard(seq)
                    self.cells[seq].tail = -1
                    self.blame("")
                    if not cell.ids:
                        self.free(cell)
                        self.use_less()
        return True

    def next_empty(self, cell: int) -> int:
        for _ in range(self.size):
            if cell >= self.size:
                cell -= self.size
            if not self.cells[cell].ids:
                break
            cell += 1
        return cell

    def claim(self, sets: SeqSets) -> tuple[int, int]:
        low, high = self.size - 1, 0
        empty = self.next_empty(self.head)
        for s, ids in enumerate(sets.seqs):
            seq = ids[0]
            meta = self.cells[seq]
            has_cell = False
            if meta.tail >= 0:
                if seq not in self.cells[meta.tail].ids:
                    raise RefAbort(self.blamed.get(seq, ""))
                has_cell = len(self.cells[meta.tail].ids) == 1
            if not has_cell:
                if empty >= self.size or self.cells[empty].ids:
                    raise RefAbort
                if meta.tail >= 0:
                    shared = self.cells[meta.tail]
                    self.cells[empty].pos, self.cells[empty].src = shared.pos, shared.src
                    self.cells[empty].token = shared.token
                    shared.ids.discard(seq)
                    self.cells[empty].ids.add(seq)
                meta.tail = empty
                if s + 1 < len(sets.seqs):
                    empty = self.next_empty(empty + 1)
            low, high = min(low, meta.tail), max(high, meta.tail)
        return low, high

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
            for seq in there.ids:
                self.cells[seq].tail = source
            for seq in here.ids:
                self.cells[seq].tail = at

    def tag(self, sets: SeqSets, low: int) -> None:
        for s, ids in enumerate(sets.seqs):
            cell = self.cells[s + low]
            cell.pos = sets.pos[sets.per * s + sets.per - 1]
            cell.token = sets.serials[sets.per * s + sets.per - 1]
            cell.ids = set()
            for seq in ids:
                cell.ids.add(seq)
                self.cells[seq].tail = s + low

    def set_inputs(self) -> Inputs:
        inputs = Inputs([], [])
        for i in range(self.head, self.head + self.n):
            inputs.s_mask.append(self.cells[i].src >= 0)
            if self.cells[i].src < 0:
                self.cells[i].src = i
        for i in range(self.head, self.head + self.n):
            if self.cells[i].src < 0 or self.cells[i].src >= self.size:
                self.cells[i].src = i
            inputs.s_copy.append(self.cells[i].src)
            if self.cells[i].src != i:
                self.cells[i].src = i
        return inputs

    def advance(self, n_tokens: int) -> None:
        self.head += n_tokens
        if self.head >= self.size:
            self.head = 0

    def restore(self, head: int, n: int) -> None:
        self.head, self.n = head, n
        self.seq_rm(-1, -1, -1)

    def decode(
        self, tokens: list[Token], n_ubatch: int, split: str = "equal", fail_at: int | None = None
    ) -> tuple[int, list[Stored]]:
        """Return code, and every ubatch up to the one that ended it."""
        start = self.head, self.n
        stored: list[Stored] = []
        for part in (older_split_equal if split == "equal" else older_split_seq)(tokens, n_ubatch):
            mine = [tokens[i] for i in part.idx]
            owners = [mine[k].seqs for k in range(0, len(mine), len(mine) // part.n_seqs)]
            if self.head > (self.used + 2 * len(mine)) % UINT32:
                self.head = 0
            found = self.find_slot(SeqSets(owners, [token.pos for token in mine], [token.serial for token in mine]))
            stored.append(Stored(part.idx, found, self.head))
            if not found:
                return 1, stored
            stored[-1].n = self.n
            stored[-1].inputs = self.set_inputs()
            if len(stored) - 1 == fail_at:
                self.restore(*start)
                return -3, stored
            self.advance(len(mine))
        return 0, stored
