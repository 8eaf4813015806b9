"""What one visitor looks at: a scenario, the step, how it is shown. The only module that touches Streamlit's state.

Widgets are made elsewhere with the keys below; what they hold is read and set here.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.library import shipped
from kvmodel.ops import AnyOp
from kvmodel.player import play
from kvmodel.scenario import Scenario, ScenarioError
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Cursor, OpResult, Timeline

STEP, PICKED, COLOUR_PICKED, HALF_PICKED = "step", "picked", "colour_picked", "half_picked"
OPENING, OPEN_FILE, OPEN_TEXT, OPEN_REFUSED = "opening", "open_file", "open_text", "open_refused"

MAX_TIMELINES = 16
"""Timelines kept for all visitors; the largest take some ten MiB each, and a lost one is played again."""

MAX_UNDO = 200
"""Scenarios kept to go back to; they share their operations."""

Colour = Literal["sequence", "position", "shift", "changed"]


@dataclass
class Visit:
    """The scenario of one visitor, a place in it, and what it was before each edit."""

    scenario: Scenario
    cursor: Cursor
    past: list[Scenario] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Moment:
    """One step of a timeline, as the page shows it.

    Attributes:
        timeline, step: which one.
        parts: the cells after the step; of a pair both halves.
        changed: for every part the cells that the step changed, intp.
        ubatches: frames of the step that stored a ubatch, each with what it stored.
        result: what the operation gave back, None before the first.
    """

    timeline: Timeline
    step: int
    parts: tuple[PartSnapshot, ...]
    changed: dict[str, NDArray[np.intp]]
    ubatches: tuple[tuple[int, UBatch], ...]
    result: OpResult | None


@st.cache_resource(
    max_entries=MAX_TIMELINES, show_spinner="Playing the scenario", hash_funcs={Scenario: Scenario.to_json}
)
def _played(scenario: Scenario) -> Timeline:
    """The timeline of a scenario, shared by all visitors who look at the same document."""
    return play(scenario)


def _visit() -> Visit:
    if "visit" not in st.session_state:
        _show(next(iter(shipped().values())))
    visit: Visit = st.session_state["visit"]
    return visit


def _show(scenario: Scenario) -> None:
    """Start afresh with a scenario, before its first step."""
    st.session_state["visit"] = Visit(scenario, _played(scenario).cursor())
    go(0)


def scenario() -> Scenario:
    """The scenario with this visitor's edits."""
    return _visit().scenario


def edits() -> int:
    """Number of edits that can be undone."""
    return len(_visit().past)


def choose() -> None:
    """Take the shipped scenario that was picked."""
    _show(shipped()[st.session_state[PICKED]])


def open_given() -> None:
    """Take the scenario that was uploaded or pasted; a document that is none leaves the present one and says why."""
    file, text = st.session_state[OPEN_FILE], st.session_state[OPEN_TEXT]
    try:
        _show(Scenario.from_json(file.getvalue() if file else text))
    except ScenarioError as problem:
        st.session_state[OPEN_REFUSED] = str(problem)
    else:
        st.session_state[OPENING] = False


def forget_refusal() -> None:
    """Drop the message about a document that was refused."""
    st.session_state.pop(OPEN_REFUSED, None)


def open_refused() -> str:
    """Why the last document was refused, empty if it was not."""
    return str(st.session_state.get(OPEN_REFUSED, ""))


def append(op: AnyOp) -> None:
    """Play one more operation at the end and go there.

    Raises:
        ScenarioError: there are too many, or the operation cannot be carried out; the scenario stays as it is.
    """
    visit = _visit()
    grown = visit.scenario.with_op(op)
    timeline = _played(grown)
    if problem := timeline.results[-1].error:
        ended = f"step {len(timeline.results)} ended the timeline: " if len(timeline.results) < len(grown.ops) else ""
        raise ScenarioError(ended + problem)
    visit.past = [*visit.past[1 - MAX_UNDO :], visit.scenario]
    _replace(visit, grown, timeline)


def undo() -> None:
    """Take back the last edit."""
    visit = _visit()
    if visit.past:
        before = visit.past.pop()
        _replace(visit, before, _played(before))


def _replace(visit: Visit, scenario: Scenario, timeline: Timeline) -> None:
    visit.scenario, visit.cursor = scenario, timeline.cursor()
    go(last_step())


def step() -> int:
    """The current step; 0 is the empty cache."""
    return min(int(st.session_state.get(STEP, 0)), last_step())


def last_step() -> int:
    """The last step that was played."""
    return _visit().cursor.timeline.n_steps - 1


def go(step: int) -> None:
    """Go to a step; beyond either end, to that end."""
    st.session_state[STEP] = max(0, min(step, last_step()))


def move(steps: int) -> None:
    """Go so many steps forward, or back."""
    go(step() + steps)


def moment() -> Moment:
    """What there is to see at the current step."""
    cursor, at = _visit().cursor, step()
    timeline = cursor.timeline
    frames = timeline.frames_of(at)
    parts = cursor.seek(frames[-1]).parts
    return Moment(
        timeline,
        at,
        tuple(parts.values()),
        {name: timeline.changed(frames[0], frames[-1], name) for name in parts},
        tuple((i, ubatch) for i in frames if (ubatch := timeline.frames[i].ubatch) is not None),
        timeline.results[at - 1] if at else None,
    )


def parts_at(frame: int) -> tuple[PartSnapshot, ...]:
    """The cells after one frame of the timeline; of a pair both halves."""
    return tuple(_visit().cursor.seek(frame).parts.values())


def half(parts: tuple[PartSnapshot, ...]) -> PartSnapshot:
    """The part that mask, sequences and memory speak of: the only one, or the half that was picked."""
    picked = st.session_state.get("half")
    return next((part for part in parts if part.name == picked), parts[-1])


def choose_half() -> None:
    """Let mask, sequences and memory speak of the half that was picked."""
    st.session_state["half"] = st.session_state[HALF_PICKED]


def colour() -> Colour:
    """What the colours of the cells stand for."""
    shown: Colour = st.session_state.get("colour", "sequence")
    return shown


def choose_colour() -> None:
    """Let the colours stand for what was picked."""
    st.session_state["colour"] = st.session_state[COLOUR_PICKED]


def as_tables() -> bool:
    """Whether tables stand in for the pictures."""
    return bool(st.session_state.get("tables", False))


def swap_tables() -> None:
    """Put tables in the place of the pictures, or the other way."""
    st.session_state["tables"] = not as_tables()


def theme() -> Literal["light", "dark"]:
    """The theme the visitor sees."""
    return "dark" if st.context.theme.type == "dark" else "light"
