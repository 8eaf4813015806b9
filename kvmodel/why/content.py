"""What one cell holds, as plain numbers and in words."""

from dataclasses import dataclass

from kvmodel.snapshot import Arrays
from kvmodel.spans import members
from kvmodel.words import joined


@dataclass(frozen=True)
class Content:
    """What a cell holds at one moment.

    Attributes:
        pos: its position, -1 for none.
        seqs: its owners, ascending.
        shift: the shift that waits for the next update (older caches: delta).
        token: serial number of its token, -1 for none; of a recurrent cache the last one taken in.
    """

    pos: int
    seqs: tuple[int, ...]
    shift: int
    token: int

    @property
    def empty(self) -> bool:
        """Whether nothing is in it."""
        return self.pos < 0 and not self.seqs

    def __str__(self) -> str:
        if self.empty:
            return "nothing"
        return f"position {self.pos} {f'of {owners(self.seqs)}' if self.seqs else 'without an owner'}"


def content_at(arrays: Arrays, at: int) -> Content:
    """One entry of the arrays of a part or of a delta."""
    shift = arrays["shift" if "shift" in arrays else "delta"]
    seqs = tuple(members(int(arrays["seqs"][at])))
    return Content(int(arrays["pos"][at]), seqs, int(shift[at]), int(arrays["token"][at]))


def owners(seqs: tuple[int, ...]) -> str:
    """Sequences in words: sequence 3, sequences 0 and 2."""
    return f"{'sequence' if len(seqs) == 1 else 'sequences'} {joined(map(str, seqs))}"
