"""Records of what a recurrent cache does with whole states; those of all caches are in `events.py`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.events import Event, SeqAdded, SeqCopied, SeqDivided, SeqRemoved, UBatchStored

Int32 = NDArray[np.int32]


@dataclass(frozen=True, eq=False, kw_only=True)
class StateBegun(Event):
    """`seq` had no state and gets the empty cell `cell`."""

    seq: int
    cell: int


@dataclass(frozen=True, eq=False, kw_only=True)
class StateCopied(Event):
    """`seq` shared the state in cell `shared` and gets a copy of its own in the empty cell `cell`.

    The bytes move when the ubatch is computed: the new cell has cell `src` as its source, -1 for none.
    """

    seq: int
    cell: int
    shared: int
    src: int


@dataclass(frozen=True, eq=False, kw_only=True)
class StateLeft(Event):
    """`seq` left the state in `cell` to share another one; `freed` if nobody owns the cell now."""

    seq: int
    cell: int
    freed: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class CellsSwapped(Event):
    """Cells `cell` and `other` exchanged contents, so that the state of `seq` comes to its place in the slot."""

    seq: int
    cell: int
    other: int


@dataclass(frozen=True, eq=False, kw_only=True)
class SlotFilled(Event):
    """The states of ubatch number `ubatch` stand in a row from cell `begin` on, tagged with their owners.

    Attributes:
        filled: the ubatch; one cell for each of its sequence sets.
        n: cells from the first state to the last one before they were brought together; the graph works on them.
        head_before: head before the search.
        start: cell from which empty cells were sought: head, or 0 if head was too far ahead of the used cells.
        found: False if the sets name so few different sequences that they have fewer cells than sets.
        jumps: sequence, position before and position now of every state whose positions do not follow.
    """

    ubatch: int
    begin: int
    filled: UBatch
    n: int
    head_before: int
    start: int
    found: bool
    jumps: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class SlotRefused(Event):
    """No slot for ubatch number `ubatch`: sequence `seq` is not below the number of cells."""

    ubatch: int
    seq: int
    n_cells: int
    head_before: int
    head: int


@dataclass(frozen=True, eq=False, kw_only=True)
class SourcesTaken(Event):
    """The graph inputs of the cells from `begin` on.

    Attributes:
        s_mask: bool [n], False where the state starts from zero.
        s_copy: int32 [n], the cell whose state is taken.
    """

    begin: int
    s_mask: NDArray[np.bool_]
    s_copy: Int32


@dataclass(frozen=True, eq=False, kw_only=True)
class StatesStored(UBatchStored):
    """The states in cells [begin, end) took in ubatch number `ubatch`; `n_kv` is the length of the slot."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SlotTakenBack(Event):
    """A computation failed: head and the length of the slot are those from before the decode; states are not kept."""

    head_before: int
    head: int
    n: int


@dataclass(frozen=True, eq=False, kw_only=True)
class SeqRmRefused(Event):
    """`seq_rm` returned False and changed nothing.

    Attributes:
        why: partial (only a part of the state), unknown (`seq` is not below the number of cells) or all (of all
            sequences only all positions can be removed).
        pos: position of the state, -1 where it plays no part.
    """

    seq: int
    p0: int
    p1: int
    why: str
    pos: int = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class StateRemoved(SeqRemoved):
    """`seq_rm`: as SeqRemoved; `tail_gone` if the tail of the sequence was taken away, which -1 never does."""

    tail_gone: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class StateShared(SeqCopied):
    """`seq_cp`: `dst` owns the state of `src` as well, whatever the range; `cells` is empty if `src` has none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StateShifted(SeqAdded):
    """`seq_add`: the position of one state changed to `pos`; it may be below 0, the state stays."""

    pos: int


@dataclass(frozen=True, eq=False, kw_only=True)
class StateDivided(SeqDivided):
    """`seq_div`: the position of one state changed to `pos`."""

    pos: int
