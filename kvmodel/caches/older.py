"""The contract of the caches of January 2025: what their decode loop asks of either."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.caches.base import Part, Placed, Sequences
from kvmodel.defrag import DefragPlan


class Slot(Protocol):
    """What a search came to."""

    @property
    def found(self) -> bool:
        """Whether the ubatch can be computed."""
        ...

    @property
    def cell(self) -> int:
        """First cell of the slot."""
        ...


class OlderCache(Part, Sequences, Protocol):
    """What the transformer cache and the recurrent one of this generation have in common.

    Attributes:
        head, used, n: as upstream keeps them.
        has_shift, do_defrag: work that waits for the next update.
    """

    head: int
    used: int
    n: int
    has_shift: bool
    do_defrag: bool

    @property
    def split(self) -> str:
        """How a decode splits: simple, or equal for recurrent models."""
        ...

    @property
    def max_pos(self) -> int:
        """Largest position of any cell, -1 if all are empty."""
        ...

    @property
    def fragmentation(self) -> float:
        """Share of the leading cells that is unused."""
        ...

    def find_slot(self, ubatch: UBatch, number: int = 0, *, in_decode: bool = False) -> Slot:
        """Seek and fill. Mutates."""
        ...

    def set_inputs(self) -> object:
        """Compute the graph inputs that change the cache. Mutates."""
        ...

    def finish(self, ubatch: UBatch, number: int, before: Placed, *, advance: bool = True) -> None:
        """What follows a computation. Mutates."""
        ...

    def restore(self, before: Placed, slots: list[tuple[int, int]]) -> None:
        """Roll a failed decode back. Mutates."""
        ...

    def defrag(self) -> None:
        """Request a defrag. Mutates."""
        ...

    def apply_shift(self) -> NDArray[np.int32]:
        """Rotate by the pending deltas. Mutates."""
        ...

    def apply_defrag(self, n_max_nodes: int) -> DefragPlan:
        """Carry out the requested defrag. Mutates."""
        ...
