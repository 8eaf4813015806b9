"""Two plays of the same operations side by side: on two kinds of cache, or in two configurations.

A step differs if the operation gave back something else, or if cells, pending shifts, head, used or n_kv are not the
same after it. The older caches set n_kv in a decode only, so between the generations it counts after those.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvmodel.cells import EMPTY
from kvmodel.configs import OLDER
from kvmodel.errors import ParamError
from kvmodel.ops import Decode
from kvmodel.snapshot import Index, PartSnapshot
from kvmodel.timeline import FIGURES, OpResult, Timeline
from kvmodel.words import cells, upper_first

Counts = NDArray[np.int64]
NOTHING = {"pos": EMPTY, "seqs": np.uint64(0), "shift": np.int32(0)}
"""What an empty cell holds; of two caches the smaller one is taken to go on with such cells."""


@dataclass(frozen=True, eq=False)
class PartDifference:
    """What is not the same in two sets of cells.

    Attributes:
        cells: ascending, cells with another position or other owners.
        shifts: ascending, cells with another pending shift.
        counters: head, used and n_kv where they differ, both values.
    """

    cells: Index
    shifts: Index
    counters: Mapping[str, tuple[int, int]]

    @property
    def any(self) -> bool:
        """Whether there is a difference at all."""
        return bool(len(self.cells) or len(self.shifts) or self.counters)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two timelines of the same operations, step by step.

    Attributes:
        a, b: the timelines.
        labels: what sentences and tables call them.
        parts: which set of cells of `a` stands against which of `b`: those of one name, else the first of each.
        results: bool [steps], whether the operation gave back something else.
        cells, shifts: int64 [parts, steps], cells that differ in position or owners, and in their pending shift.
        counters: head, used and n_kv, each int64 [parts, 2, steps].
        n_kv_counts: bool [steps], whether n_kv means the same on both sides.
    """

    a: Timeline
    b: Timeline
    labels: tuple[str, str]
    parts: tuple[tuple[str, str], ...]
    results: NDArray[np.bool_]
    cells: Counts
    shifts: Counts
    counters: Mapping[str, Counts]
    n_kv_counts: NDArray[np.bool_]

    @property
    def n_steps(self) -> int:
        """Steps that both have, the empty cache included; one may have ended before the other."""
        return len(self.results)

    @property
    def differs(self) -> NDArray[np.bool_]:
        """Whether anything differs after each step, bool [steps]."""
        counters = {name: (values[:, 0] != values[:, 1]).any(axis=0) for name, values in self.counters.items()}
        counters["n_kv"] &= self.n_kv_counts
        counts = [(values > 0).any(axis=0) for values in (self.cells, self.shifts)]
        differs: NDArray[np.bool_] = np.logical_or.reduce([self.results, *counts, *counters.values()])
        return differs

    @property
    def first(self) -> int | None:
        """The first step with a difference, None if there is none."""
        differs = self.differs
        return int(differs.argmax()) if differs.any() else None

    def at(self, step: int) -> dict[tuple[str, str], PartDifference]:
        """What differs after one step; plays both up to it. With snapshots at hand, `difference` is quicker."""
        one, other = (side.cursor().seek(side.frame_of(step)).parts for side in (self.a, self.b))
        without = () if self.n_kv_counts[step] else ("n_kv",)
        return {(name, twin): difference(one[name], other[twin], without=without) for name, twin in self.parts}

    def told(self, step: int) -> list[str]:
        """The differences after one step in sentences; none if there is no difference."""
        lines = [self._results(step)] if self.results[step] else []
        for (name, _), found in self.at(step).items():
            where = f" in {name}" if len(self.parts) > 1 else ""
            if len(found.cells):
                lines.append(f"{upper_first(cells(found.cells))}{where}: another position or other owners.")
            if len(found.shifts):
                lines.append(f"{upper_first(cells(found.shifts))}{where}: another pending shift.")
            if found.counters:
                lines.append(f"{upper_first(self._counters(found.counters))}{where}.")
        return lines

    def _results(self, step: int) -> str:
        one, other = (_told(side.results[step - 1]) for side in (self.a, self.b))
        return f"{upper_first(self.labels[0])} {one}, {self.labels[1]} {other}."

    def _counters(self, counters: Mapping[str, tuple[int, int]]) -> str:
        sides = [", ".join(f"{name} {pair[i]:,}" for name, pair in counters.items()) for i in (0, 1)]
        return "; ".join(f"{told} in {label}" for told, label in zip(sides, self.labels, strict=True))


def compare(a: Timeline, b: Timeline, *, labels: tuple[str, str] | None = None) -> Comparison:
    """Compare two timelines of the same operations.

    Args:
        a: one of them.
        b: the other.
        labels: what to call them; left out, their kinds of cache.

    Raises:
        ParamError: the operations are not the same.
    """
    if a.scenario.ops != b.scenario.ops:
        raise ParamError("b", b.scenario.title, "a timeline of the operations of a")
    kinds = (a.scenario.cache.kind, b.scenario.cache.kind)
    names = labels or (kinds if kinds[0] != kinds[1] else ("the first", "the second"))
    pairs = tuple((name, name) for name in a.start if name in b.start) or ((next(iter(a.start)), next(iter(b.start))),)
    n = min(a.n_steps, b.n_steps)
    counts = [_counts(a, b, pair, n) for pair in pairs]
    return Comparison(
        a,
        b,
        names,
        pairs,
        np.array([False, *(_key(a.results[i]) != _key(b.results[i]) for i in range(n - 1))]),
        np.stack([cells for cells, _ in counts]),
        np.stack([shifts for _, shifts in counts]),
        {counter: _counters(a, b, pairs, n, counter) for counter in FIGURES},
        _n_kv_counts(a, b, n),
    )


def difference(one: PartSnapshot, other: PartSnapshot, *, without: Collection[str] = ()) -> PartDifference:
    """What differs between two sets of cells; `without` names counters to leave out."""
    n = max(one.n_cells, other.n_cells)
    mine, theirs = (_padded(part, n) for part in (one, other))
    differs = {name: mine[name] != theirs[name] for name in NOTHING}
    values = {name: (int(one.counters[name]), int(other.counters[name])) for name in FIGURES if name not in without}
    return PartDifference(
        np.flatnonzero(differs["pos"] | differs["seqs"]),
        np.flatnonzero(differs["shift"]),
        {name: pair for name, pair in values.items() if pair[0] != pair[1]},
    )


def _padded(part: PartSnapshot, n: int) -> dict[str, NDArray[Any]]:
    """Writable copies of position, owners and shift, with empty cells up to `n`."""
    arrays: dict[str, NDArray[Any]] = {"pos": part.pos, "seqs": part.seqs, "shift": part.shift}
    return {
        name: np.concatenate([array, np.full(n - len(array), NOTHING[name], array.dtype)])
        for name, array in arrays.items()
    }


def _counts(a: Timeline, b: Timeline, pair: tuple[str, str], n_steps: int) -> tuple[Counts, Counts]:
    """Cells and shifts that differ after every step, from the deltas of both sides."""
    n = max(a.start[pair[0]].n_cells, b.start[pair[1]].n_cells)
    sides = [_Side(side, name, n) for side, name in zip((a, b), pair, strict=True)]
    differ, moved = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    counts = np.zeros((2, n_steps), np.int64)
    for step in range(1, n_steps):
        touched = np.concatenate([side.advance(step) for side in sides])
        mine, theirs = (side.arrays for side in sides)
        differ[touched] = (mine["pos"][touched] != theirs["pos"][touched]) | (
            mine["seqs"][touched] != theirs["seqs"][touched]
        )
        moved[touched] = mine["shift"][touched] != theirs["shift"][touched]
        counts[:, step] = np.count_nonzero(differ), np.count_nonzero(moved)
    return counts[0], counts[1]


class _Side:
    """One set of cells that is played step by step."""

    def __init__(self, timeline: Timeline, name: str, n: int) -> None:
        self.timeline, self.name = timeline, name
        start = timeline.start[name]
        self.arrays = _padded(start, n)
        self.shift = "shift" if "shift" in start.arrays else "delta"

    def advance(self, step: int) -> Index:
        """Go on to a step; return the cells that changed."""
        hit = [np.empty(0, np.intp)]
        for frame in self.timeline.frames_of(step):
            delta = self.timeline.frames[frame].parts[self.name].delta
            for name in NOTHING:
                self.arrays[name][delta.cells] = delta.after[self.shift if name == "shift" else name]
            hit.append(delta.cells)
        return np.concatenate(hit)


def _counters(a: Timeline, b: Timeline, pairs: tuple[tuple[str, str], ...], n: int, counter: str) -> Counts:
    both = [[side.series(counter, name)[:n] for side, name in zip((a, b), pair, strict=True)] for pair in pairs]
    return np.array(both).astype(np.int64)


def _n_kv_counts(a: Timeline, b: Timeline, n: int) -> NDArray[np.bool_]:
    """Everywhere if both are of one generation, else after decodes."""
    one, other = (side.scenario.cache.kind in OLDER for side in (a, b))
    return np.array([one == other, *(one == other or isinstance(op, Decode) for op in a.scenario.ops[: n - 1])])


def _key(result: OpResult) -> tuple[str, bool]:
    """What counts of a result: the value with its type, and whether it ended the timeline."""
    return repr(result.ret), bool(result.error)


def _told(result: OpResult) -> str:
    if result.error:
        return f"ended ({result.error})"
    reason = f" ({result.message})" if result.message else ""
    return f"returned {result.ret}{reason}"
