"""One visitor's place: a scenario, where in it, what is selected, and what it was before each edit. No Streamlit."""

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from app.sides import Settings, first_other
from kvmodel.beats import Beats, beats
from kvmodel.permalink import View, scenario_params, view_params
from kvmodel.scenario import Scenario, ScenarioError
from kvmodel.timeline import Cursor, Timeline

MAX_UNDO = 200
"""Scenarios kept to go back to; they share their operations."""

EARLY = 0.25
"""Share of the time between two steps by which a timer may come early."""


@dataclass(frozen=True)
class Named:
    """A scenario and what names it in a link, or why none can."""

    scenario: Scenario
    params: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    @classmethod
    def of(cls, scenario: Scenario) -> "Named":
        """Find it out."""
        try:
            return cls(scenario, scenario_params(scenario))
        except ScenarioError as problem:
            return cls(scenario, problem=str(problem))


@dataclass
class Visit:
    """A visitor's scenario, played, and a place in it.

    Attributes:
        scenario: with this visitor's edits.
        cursor: of its timeline.
        view: step, beat and whatever else a permalink carries.
        inside: whether a step goes beat by beat instead of by operation.
        playing: whether steps follow by themselves; `due` is when the next one does, in seconds of a clock.
        other: the settings that the operations are compared with, None until they are chosen.
        past, future: scenarios to undo and redo to, the nearest one last.
    """

    scenario: Scenario
    cursor: Cursor
    view: View = field(default_factory=View)
    inside: bool = False
    playing: bool = False
    due: float = 0.0
    other: Settings | None = None
    past: list[Scenario] = field(default_factory=list)
    future: list[Scenario] = field(default_factory=list)
    _named: "Named | None" = field(default=None, repr=False)

    @property
    def timeline(self) -> Timeline:
        """The played scenario."""
        return self.cursor.timeline

    @property
    def last_step(self) -> int:
        """The last step that was played."""
        return self.timeline.n_steps - 1

    @property
    def at_start(self) -> bool:
        """Whether there is nothing before this place."""
        return (self.view.step, self.view.beat) == (0, 0)

    @property
    def at_end(self) -> bool:
        """Whether there is nothing after this place."""
        return (self.view.step, self.view.beat) == (self.last_step, 0)

    @property
    def compared(self) -> Scenario:
        """The same operations under the settings that they are compared with."""
        cache, context = self.other or first_other(self.scenario)
        return self.scenario.with_config(cache, context)

    def params(self) -> dict[str, str]:
        """The parameters of a link to this place. The scenario is packed once an edit.

        Raises:
            ScenarioError: the scenario is too large for a link.
        """
        if self._named is None or self._named.scenario is not self.scenario:
            self._named = Named.of(self.scenario)
        if self._named.problem:
            raise ScenarioError(self._named.problem)
        return self._named.params | view_params(self.view, self.other)

    def beats(self) -> Beats:
        """The beats of the current step."""
        return beats(self.timeline, self.view.step)

    def look(self, **changes: Any) -> None:
        """Change what is looked at; the step and the beat are brought into what there is. Mutates."""
        view = self.view.model_copy(update=changes)
        step = max(0, min(view.step, self.last_step))
        beat = max(0, min(view.beat, len(beats(self.timeline, step)))) if view.beat else 0
        self.view = view.model_copy(update={"step": step, "beat": beat})

    def go(self, step: int, beat: int = 0) -> None:
        """Go to the end of a step, or to one of its beats, and pause; a choice for one step is let go. Mutates."""
        self.playing = False
        self.look(step=step, beat=beat, ubatch=None, query=None)

    def move(self, by: int) -> None:
        """Go one place forward (1) or back (-1) at the chosen grain, and pause. Mutates."""
        step, beat = self.view.step, self.view.beat
        if self.inside:
            self.go(*self._inside(step, beat, by))
        else:
            self.go(step if beat and by > 0 else step + by)

    def _inside(self, step: int, beat: int, by: int) -> tuple[int, int]:
        """The next place beat by beat: the beats of a step come before its end, which is beat 0."""
        if by > 0:
            if not beat:
                return (step + 1, min(1, len(beats(self.timeline, step + 1)))) if step < self.last_step else (step, 0)
            return (step, beat + 1) if beat < len(self.beats()) else (step, 0)
        if not beat:
            return step, len(self.beats()) if step else 0
        return (step, beat - 1) if beat > 1 else (step - 1, 0)

    def edit(self, scenario: Scenario, timeline: Timeline, step: int) -> None:
        """Take an edited scenario and go to a step of it. Mutates."""
        self.past = [*self.past[1 - MAX_UNDO :], self.scenario]
        self.future = []
        self._take(scenario, timeline, step)

    def undo(self, timeline: Timeline) -> None:
        """Go back to the scenario before the last edit, which was played as `timeline`. Mutates."""
        self._swap(self.past, self.future, timeline)

    def redo(self, timeline: Timeline) -> None:
        """Take the edit that was undone last again. Mutates."""
        self._swap(self.future, self.past, timeline)

    def _swap(self, source: list[Scenario], target: list[Scenario], timeline: Timeline) -> None:
        scenario = source.pop()
        target.append(self.scenario)
        self._take(scenario, timeline, _changed_step(self.scenario, scenario) or self.view.step)

    def _take(self, scenario: Scenario, timeline: Timeline, step: int) -> None:
        self.scenario, self.cursor = scenario, timeline.cursor()
        self.go(step)

    def swap_grain(self) -> None:
        """Step beat by beat instead of by operation, or the other way. Mutates."""
        self.inside = not self.inside

    def swap_tables(self) -> None:
        """Put tables in the place of the pictures, or the other way. Mutates."""
        self.look(tables=not self.view.tables)

    def swap_playing(self, now: float, seconds: float) -> None:
        """Play from here, from the start if this is the end; or pause. Mutates."""
        playing = self.playing
        if self.at_end:
            self.go(0)
        self.playing, self.due = not playing, now + seconds

    def tick(self, now: float, seconds: float) -> None:
        """While playing: go on if it is time, or nearly, since a timer is not exact; stop at the end. Mutates."""
        if not self.playing or now < self.due - seconds * EARLY:
            return
        self.move(1)
        self.playing, self.due = not self.at_end, now + seconds


def _changed_step(before: Scenario, after: Scenario) -> int | None:
    """The first step at which the operations of two scenarios differ, None if they do not."""
    pairs = zip_longest(before.ops, after.ops)
    return next((step for step, (one, other) in enumerate(pairs, 1) if one != other), None)
