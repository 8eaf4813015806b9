"""Two plays of the same operations, held side by side. No Streamlit."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kvmodel.compare import Comparison, compare
from kvmodel.configs import AnyCacheConfig, ContextConfig, Kind
from kvmodel.scenario import Scenario, ScenarioError
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Cursor, OpResult, Timeline

OTHERS: dict[Kind, tuple[Kind, ...]] = {
    "unified": ("legacy", "iswa"),
    "iswa": ("unified", "legacy"),
    "legacy": ("unified",),
    "recurrent": ("memory_recurrent",),
    "memory_recurrent": ("recurrent",),
}
"""The kinds that a scenario is compared with first, the likeliest one first."""

Settings = tuple[AnyCacheConfig, ContextConfig]


@dataclass(frozen=True, eq=False)
class Side:
    """One side at one step.

    Attributes:
        label: what it is called.
        timeline: the whole play.
        parts: its cells.
        changed: for every part the cells that the step changed.
        differs: for every part that is compared the cells that differ from the other side.
        result: what the operation gave back, None before the first.
        ended: whether this side has no such step, since its timeline ended before.
    """

    label: str
    timeline: Timeline
    parts: tuple[PartSnapshot, ...]
    changed: dict[str, NDArray[np.intp]]
    differs: dict[str, NDArray[np.intp]]
    result: OpResult | None
    ended: bool


@dataclass
class Pair:
    """Both plays with their cursors, and what differs between them; `other` are the settings that were chosen."""

    comparison: Comparison
    other: Settings | None = None
    cursors: tuple[Cursor, Cursor] = field(init=False)

    def __post_init__(self) -> None:
        self.cursors = (self.comparison.a.cursor(), self.comparison.b.cursor())

    @classmethod
    def of(cls, a: Timeline, b: Timeline, other: Settings | None = None) -> "Pair":
        """Two plays of the same operations."""
        return cls(compare(a, b), other)

    def of_these(self, a: Timeline, other: Settings | None) -> bool:
        """Whether that play under those settings is what is compared."""
        return self.comparison.a is a and self.other == other

    def sides(self, step: int) -> tuple[Side, Side]:
        """Both sides after a step; a side that ended before it stays at its end."""
        at = min(step, self.comparison.n_steps - 1)
        found = self.comparison.at(at)
        differs = [
            {pair[i]: np.union1d(difference.cells, difference.shifts) for pair, difference in found.items()}
            for i in (0, 1)
        ]
        one, other = (self._side(i, step, differs[i]) for i in (0, 1))
        return one, other

    def _side(self, i: int, step: int, differs: dict[str, NDArray[np.intp]]) -> Side:
        timeline = (self.comparison.a, self.comparison.b)[i]
        at = min(step, timeline.n_steps - 1)
        frames = timeline.frames_of(at)
        parts = self.cursors[i].seek(frames[-1]).parts
        return Side(
            self.comparison.labels[i],
            timeline,
            tuple(parts.values()),
            {name: timeline.changed(frames[0], frames[-1], name) for name in parts},
            {name: _inside(differs[name], part.n_cells) for name, part in parts.items() if name in differs},
            timeline.results[at - 1] if at else None,
            at < step,
        )


def _inside(cells: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    return cells[cells < n]


def first_other(scenario: Scenario) -> Settings:
    """The settings of the other side until some are chosen: another kind if one is possible, else the same."""
    for kind in OTHERS[scenario.cache.kind]:
        try:
            return scenario.on(kind).cache, scenario.context
        except ScenarioError:
            continue
    return scenario.cache, scenario.context
