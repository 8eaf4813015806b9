"""What edits and searches of the recurrent cache share: ids, tails, the counter of used cells.

`used` and `n` are unsigned 32-bit numbers upstream, and `used` is counted down for a cell that was free already when
a tail points at one.
"""

import numpy as np

from kvmodel.caches.recurrent_cells import Mask, RecurrentCells
from kvmodel.errors import check_int
from kvmodel.events import Emit, QuirkSeen
from kvmodel.events_recurrent import StateLeft
from kvmodel.limits import MAX_SEQ
from kvmodel.words import joined

UINT32 = 2**32


class RecurrentTails:
    """Cells and counters, and the sequences whose tail has gone wrong.

    Attributes:
        lost: sequences whose tail points at a cell they do not own, with the quirk that did it.
    """

    cells: RecurrentCells
    head: int
    used: int
    n: int
    lost: dict[int, str]
    emit: Emit
    name: str

    def seq_pos_min(self, seq: int) -> int:
        """Smallest position of `seq`, -1 if it has none. For display: this generation has no such call."""
        pos = self.cells.pos[self._owned(seq)]
        return int(pos.min()) if len(pos) else -1

    def seq_pos_max(self, seq: int) -> int:
        """Position of `seq`, and 0 if it has none or one below 0 (`llama_kv_cache_seq_pos_max`)."""
        return int(self.cells.pos[self._owned(seq)].max(initial=0))

    def check_integrity(self) -> list[str]:
        """Every broken invariant, as sentences; empty when all hold."""
        broken = self.cells.check_integrity()
        if self.used != self.cells.n_owned:
            broken.append(f"{self.used} cells count as used instead of {self.cells.n_owned}")
        return broken

    def _known(self, seq: int) -> bool:
        """Whether `seq` is an id of this cache: below the number of cells.

        Raises:
            ParamError: it is, but a set of sequences cannot hold it.
        """
        return 0 <= seq < len(self.cells) and check_int("seq", seq, 0, MAX_SEQ - 1) >= 0

    def _owned(self, seq: int) -> Mask:
        return self.cells.owned(seq) if self._known(seq) else np.zeros(len(self.cells), np.bool_)

    def _leave(self, seq: int) -> bool:
        """Take `seq` out of the cell at its tail; return whether nobody owns that now. Mutates."""
        cell = int(self.cells.tail[seq])
        freed = self.cells.untag(seq)
        self._count_freed(int(freed))
        self.lost.pop(seq, None)
        self.emit(StateLeft(seq=seq, cell=cell, freed=freed, cache=self.name))
        return freed

    def _count_freed(self, n: int) -> None:
        self.used = (self.used - n) % UINT32

    def _head_to_first(self, freed: Mask) -> int:
        """Let head go back to the first freed cell; return where it was. Mutates."""
        before = self.head
        if freed.any():
            self.head = min(before, int(freed.argmax()))
        return before

    def _quirk(self, quirk: str, detail: str) -> None:
        """Note the sequences that lost their cell just now. Mutates."""
        now = self.cells.astray()
        new = [seq for seq in now if seq not in self.lost]
        self.lost = {seq: self.lost.get(seq, quirk) for seq in now}
        if new:
            who = f"sequence{'s' if len(new) > 1 else ''} {joined(map(str, new))}"
            self.emit(QuirkSeen(quirk=quirk, detail=f"{who}: {detail}", cache=self.name))
