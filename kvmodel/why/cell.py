"""The story of one cell: what it holds, who put it there and when, and everything that became of the cell."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from kvmodel.errors import check_int
from kvmodel.mask import masked_swa
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline
from kvmodel.types import SWAType
from kvmodel.why.changes import Change, Written, came_from, change_at, contents, written
from kvmodel.why.content import Content, content_at
from kvmodel.why.window import shown, window_of
from kvmodel.words import count, lower_first

MOST_CHANGES = 200
"""Changes that a story tells; of a longer history the latest."""

MOST_CELLS = 4
"""Former cells that a sentence names before it only counts the moves before."""


@dataclass(frozen=True)
class Seen:
    """Whether the next token of an owner would see the cell through the window.

    Attributes:
        seq: the owner.
        next_pos: position of its next token.
        visible: whether that token sees the cell.
        sentence: with the figures of the rule.
    """

    seq: int
    next_pos: int
    visible: bool
    sentence: str


@dataclass(frozen=True)
class CellStory:
    """One cell of one part after one frame.

    Attributes:
        name, cell, frame: which cell, and when.
        now: what it holds.
        text: text of its token as the scenario has it, empty if there is none; not in any sentence.
        seen: for every owner whether the window still shows the cell; empty without a window.
        written: who stored what it holds, None for an empty cell.
        came_from: cells that the content was in before, the latest first.
        freed: the change by which it became empty, None if it holds something or never did.
        history: the latest changes up to the frame, in order.
        n_changes: how many there were.
        is_state: the cell is one of a recurrent cache.
    """

    name: str
    cell: int
    frame: int
    now: Content
    text: str
    seen: tuple[Seen, ...]
    written: Written | None
    came_from: tuple[int, ...]
    freed: Change | None
    history: tuple[Change, ...]
    n_changes: int
    is_state: bool = False

    @property
    def expired(self) -> bool:
        """Whether the window hides the cell from the next token of every owner."""
        return bool(self.seen) and not any(seen.visible for seen in self.seen)

    @property
    def sentences(self) -> list[str]:
        """The story without its history, as a list of sentences."""
        return list(self._sentences())

    def _sentences(self) -> Iterator[str]:
        token = f", token {self.now.token}" if self.now.token >= 0 else ""
        state = "a state at " if self.is_state and not self.now.empty else ""
        yield f"Cell {self.cell} holds {state}{self.now}{token}."
        if self.now.shift:
            yield f"A shift of {self.now.shift:+d} waits for the next update."
        yield from (seen.sentence for seen in self.seen)
        if self.written:
            yield self.written.sentence
        if self.came_from:
            yield f"Since then it has moved: it was in {_way(self.came_from)}."
        if self.freed:
            yield f"It became free in {lower_first(self.freed.sentence)}"
        elif self.now.empty:
            yield "It was never used."


def cell_story(timeline: Timeline, frame: int, name: str, cell: int) -> CellStory:
    """Tell what a cell holds after a frame, and why.

    Args:
        timeline: what was played.
        frame: the moment to look at.
        name: of the part: `kv`, `base` or `swa`.
        cell: index of a cell.

    Raises:
        ParamError: there is no such frame, part or cell.
    """
    part = timeline.part(name)
    frame = check_int("frame", frame, 0, len(timeline.frames) - 1)
    cell = check_int("cell", cell, 0, part.n_cells - 1)
    frames = list(takewhile(lambda number: number <= frame, timeline.history(cell, name)))
    now = contents(timeline, frames[-1], name, cell)[1] if frames else content_at(part.arrays, cell)
    by = written(timeline, now.token)
    return CellStory(
        name,
        cell,
        frame,
        now,
        timeline.tokens[now.token].text if now.token >= 0 else "",
        tuple(_seen(timeline, frame, part, cell, now)),
        by,
        came_from(timeline, frame, by.frame, name, cell) if by else (),
        _freed(timeline, frames, name, cell) if now.empty else None,
        tuple(change_at(timeline, number, name, cell) for number in frames[-MOST_CHANGES:]),
        len(frames),
        part.is_recurrent,
    )


def _seen(timeline: Timeline, frame: int, part: PartSnapshot, cell: int, now: Content) -> Iterator[Seen]:
    swa_type, n_swa = window_of(part)
    if swa_type is SWAType.NONE or now.empty:
        return
    spans = timeline.frames[frame].parts[part.name].spans
    for seq in now.seqs:
        next_pos = int(spans[seq, 1]) + 1
        visible = not masked_swa(np.array([now.pos], np.int32), next_pos, swa_type, n_swa)[0]
        sees = f"The next token of sequence {seq} (position {next_pos}) {'sees' if visible else 'does not see'}"
        yield Seen(seq, next_pos, visible, f"{sees} cell {cell}: {shown(part, next_pos)}.")


def _freed(timeline: Timeline, frames: list[int], name: str, cell: int) -> Change | None:
    """The last change that emptied the cell."""
    for number in reversed(frames):
        before, after = contents(timeline, number, name, cell)
        if after.empty and not before.empty:
            return change_at(timeline, number, name, cell)
    return None


def _way(came_from: tuple[int, ...]) -> str:
    """Where it came from, back to the first cell, or some steps back."""
    told = [f"cell {cell}" for cell in came_from[:MOST_CELLS]]
    more = f" ({count(len(came_from) - MOST_CELLS, 'move')} before that)" if len(came_from) > MOST_CELLS else ""
    return f"{', before that in '.join(told)}{more}"
