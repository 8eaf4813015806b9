"""Remedies that are tried before they are given: the scenario is played again with the remedy in it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from kvmodel.ops import AnyOp, Decode
from kvmodel.player import play
from kvmodel.scenario import Scenario
from kvmodel.timeline import Timeline

MAX_CELL_FRAMES = 1 << 25
"""Frames times cells of a scenario that is played again: a tenth of a second, and an advice may take ten of them."""

NOT_TRIED = "(Not tried: the scenario is long.)"


@dataclass(frozen=True)
class Remedy:
    """Something to do about a failed step.

    Attributes:
        sentence: what to do.
        scenario: the scenario up to the failed operation with the remedy in it, which ends with a decode that returns
            0; None where there is a choice that only the reader can make.
    """

    sentence: str
    scenario: Scenario | None = None


@dataclass(frozen=True, eq=False)
class Failure:
    """A step that failed, and the ways to change what led to it.

    Attributes:
        timeline: what was played.
        step: number of the step.
        batch: its operation.
    """

    timeline: Timeline
    step: int
    batch: Decode

    @property
    def too_long(self) -> bool:
        """Whether playing the scenario again takes too long to be tried."""
        cells = sum(part.n_cells for part in self.timeline.start.values()) + 1024
        return cells * self.timeline.frame_of(self.step) > MAX_CELL_FRAMES

    def instead(self, op: AnyOp, *before: AnyOp) -> Scenario:
        """The scenario with another operation in the place of the one that failed, and some before it."""
        return self._with_ops((*self.timeline.scenario.ops[: self.step - 1], *before, op))

    def then(self, *ops: AnyOp) -> Scenario:
        """The scenario up to the failed operation, and more after it."""
        return self._with_ops((*self.timeline.scenario.ops[: self.step], *ops))

    def _with_ops(self, ops: tuple[AnyOp, ...]) -> Scenario:
        return self.timeline.scenario.model_copy(update={"ops": ops})

    def configured(self, part: str, **fields: Any) -> Scenario | None:
        """The scenario up to the failed operation with other fields of its cache or context; None if not allowed."""
        config = getattr(self.timeline.scenario, part)
        try:
            changed = type(config).model_validate(config.model_dump() | fields)
        except ValidationError:
            return None
        return self.then().model_copy(update={part: changed})

    def first(self, remedies: Iterable[Remedy]) -> Iterator[Remedy]:
        """The first of several remedies that helps, none if none does; the first of all if trying takes too long."""
        for remedy in remedies:
            if remedy.scenario is not None and (self.too_long or helps(remedy.scenario)):
                yield self.marked(remedy)
                return

    def marked(self, remedy: Remedy) -> Remedy:
        """A remedy that says so if trying it takes too long."""
        return Remedy(f"{remedy.sentence} {NOT_TRIED}", remedy.scenario) if self.too_long else remedy


def helps(scenario: Scenario) -> bool:
    """Whether the last operation of a scenario, a decode, returns 0."""
    results = play(scenario).results
    return len(results) == len(scenario.ops) and results[-1].ret == 0
