"""Edits of a visitor's scenario: each is played first, and refused if it cannot be carried out."""

from app import session
from app.plays import Told, played
from kvmodel.configs import AnyCacheConfig, ContextConfig
from kvmodel.ops import AnyOp
from kvmodel.scenario import Scenario, ScenarioError
from kvmodel.timeline import Timeline


def insert(op: AnyOp, at: int, told: Told) -> None:
    """Insert an operation before the one with that index and go there.

    Raises:
        ScenarioError: it cannot be carried out, or there are too many; the scenario stays as it was.
    """
    _take(session.visit().scenario.with_op(op, at), at, told)


def change(op: AnyOp, at: int, told: Told) -> None:
    """Put an operation in the place of the one with that index; raises as `insert`."""
    _take(session.visit().scenario.with_op_changed(at, op), at, told)


def move(at: int, to: int, told: Told) -> None:
    """Give an operation another index and go there; raises as `insert`."""
    _take(session.visit().scenario.with_op_moved(at, to), to, told)


def remove(at: int, told: Told) -> None:
    """Remove the operation with that index; the step before it is shown."""
    place = session.visit()
    changed = place.scenario.without_op(at)
    place.edit(changed, played(changed, told), at)


def configure(cache: AnyCacheConfig, context: ContextConfig, told: Told) -> None:
    """Play the same operations under another configuration; the step stays."""
    place = session.visit()
    changed = place.scenario.with_config(cache, context)
    place.edit(changed, played(changed, told), place.view.step)


def compare_with(cache: AnyCacheConfig, context: ContextConfig, told: Told) -> None:
    """Choose the configuration that the operations are compared with."""
    place = session.visit()
    played(place.scenario.with_config(cache, context), told)
    place.other = (cache, context)


def adopt(changed: Scenario, told: Told) -> None:
    """Take a scenario that was made from the present one, and go to its end."""
    timeline = played(changed, told)
    session.visit().edit(changed, timeline, timeline.n_steps - 1)


def undo(told: Told) -> None:
    """Take back the last edit."""
    place = session.visit()
    if place.past:
        place.undo(played(place.past[-1], told))


def redo(told: Told) -> None:
    """Take the edit that was undone last again."""
    place = session.visit()
    if place.future:
        place.redo(played(place.future[-1], told))


def _take(changed: Scenario, op: int, told: Told) -> None:
    timeline = played(changed, told)
    if problem := _refusal(timeline, op):
        raise ScenarioError(problem)
    session.visit().edit(changed, timeline, op + 1)


def _refusal(timeline: Timeline, op: int) -> str:
    """Why an operation was not carried out, empty if it was."""
    if op < len(timeline.results):
        return timeline.results[op].error
    return f"step {len(timeline.results)} ended the timeline: {timeline.results[-1].error}"
