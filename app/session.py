"""What one visitor looks at. The only module that touches Streamlit's state and the address of the page.

Widgets are made elsewhere with the keys below; what they hold is read and set here.
"""

from time import monotonic
from typing import Any, Literal
from urllib.parse import urlencode
from uuid import uuid4

import streamlit as st

from app import plays
from app.moment import Moment, moment_of
from app.sides import Pair
from app.visit import Visit
from kvmodel.library import shipped
from kvmodel.permalink import View, from_params, other_from
from kvmodel.scenario import Scenario, ScenarioError
from kvmodel.snapshot import PartSnapshot

STEP, KEYS = "step", "keys"
PICKED, COLOUR_PICKED, HALF_PICKED, SPEED_PICKED = "picked", "colour_picked", "half_picked", "speed_picked"
LOWER_PICKED, PICTURES = "lower_picked", "pictures"
CELL, QUERY, UBATCH, PANEL = "cell", "query", "ubatch", "panel"
OPENING, OPEN_FILE, OPEN_TEXT, FORM = "opening", "open_file", "open_text", "form"

SPEEDS = {0.5: "1 step in 2 s", 1.0: "1 step a second", 2.0: "2 steps a second", 4.0: "4 steps a second"}
"""Steps a second while playing."""

MAX_PRESSES = 1000
"""Key presses followed at once; a browser tells how many there were."""


def visit() -> Visit:
    """This visitor's place; at first it is where the address points, else the first shipped scenario."""
    if "visit" not in st.session_state:
        show(next(iter(shipped().values())))
        st.session_state["address"] = {}
    place: Visit = st.session_state["visit"]
    return place


def show(scenario: Scenario, view: View | None = None, told: plays.Told | None = None) -> None:
    """Look at a scenario before its first step, or where a permalink points; undo leads back to one's own."""
    place = Visit(scenario, plays.played(scenario, told).cursor())
    if view:
        place.look(**dict(view))
    before: Visit | None = st.session_state.get("visit")
    if before and before.scenario != scenario and before.scenario not in shipped().values():
        place.past = [*before.past, before.scenario]
    st.session_state["visit"] = place


def choose() -> None:
    """Take the shipped scenario that was picked."""
    show(shipped()[st.session_state[PICKED]])


def adopt_address(told: plays.Told) -> None:
    """Follow an address that was not set here: a permalink, or the browser's way back.

    Raises:
        ScenarioError: a part of it is not allowed; the scenario is shown if that part is another one.
    """
    place, address = visit(), st.query_params.to_dict()
    if not address or address == st.session_state["address"]:
        return
    st.session_state["address"] = address
    try:
        scenario, view = from_params(address)
    except ScenarioError:
        if named := {name: value for name, value in address.items() if name in ("scenario", "data")}:
            show(from_params(named)[0])
        raise
    if scenario == place.scenario:
        place.look(**dict(view))
    else:
        show(scenario, view, told)
    visit().other = other_from(address)


def set_address() -> None:
    """Put scenario, step, view and selection into the address; a scenario too long for one leaves it empty."""
    place = visit()
    if place.playing:
        return
    try:
        address = place.params()
    except ScenarioError:
        address = {}
    if address != st.session_state["address"]:
        st.session_state["address"] = address
        st.query_params.from_dict(address)


def permalink() -> str:
    """The address that shows what is seen now.

    Raises:
        ScenarioError: the scenario is too long for an address.
    """
    page = str(st.context.url).partition("?")[0]
    return f"{page}?{urlencode(visit().params())}"


def look_as(name: str, key: str) -> None:
    """Look at something else, by its name in the view, as the menu with that key says."""
    visit().look(**{name: st.session_state[key]})


def key_for(name: str, value: Any) -> str:
    """The key of a widget that starts with a value which other things change as well.

    The key is a new one whenever they did. With the same key the browser could send the value from before, which it
    does with every run until it has drawn the new one, and that would count as the visitor's choice.
    """
    shown = st.session_state.setdefault("shown", {})
    known, version = shown.get(name, (None, 0))
    shown[name] = (value, version + (value != known))
    return f"{name}.{shown[name][1]}"


def is_choice(name: str, key: str) -> bool:
    """Whether the widget with that key holds another value than it was made with; a key from before never does.

    Streamlit takes the value of a widget for a new one if the run that made it was cut short.
    """
    known, version = st.session_state["shown"][name]
    value = st.session_state[key]
    if key != f"{name}.{version}" or value == known:
        return False
    st.session_state["shown"][name] = (value, version)
    return True


def look_as_given(name: str, key: str, allowed: range | None = None) -> None:
    """Look at something else, by its name in the view, as the widget with that key says; not at what is not allowed."""
    value = st.session_state[key]
    if (allowed is None or value is None or value in allowed) and is_choice(name, key):
        visit().look(**{name: st.session_state[key]})


def choose_ubatch(key: str) -> None:
    """Look at the ubatch whose number, counted from 1, was typed."""
    if is_choice(UBATCH, key):
        visit().look(ubatch=int(st.session_state[key]) - 1)


def go_to_slider(key: str) -> None:
    """Go to the step at which the slider stands."""
    if is_choice(STEP, key):
        visit().go(int(st.session_state[key]))


def counting() -> dict[str, Any]:
    """What the browser counts keys by: a name for this visit, since its page may outlast one."""
    return {"visit": st.session_state.setdefault("keys_visit", uuid4().hex)}


def follow_keys() -> None:
    """Go where the keys lead that were pressed since they were counted last."""
    pressed = dict(st.session_state[KEYS]["pressed"])
    jumps, steps = st.session_state.get("keys_seen", (0, 0))
    st.session_state["keys_seen"] = (pressed["jumps"], pressed["steps"])
    if pressed["jumps"] != jumps:
        visit().go(0 if pressed["to"] == "first" else visit().last_step)
        steps = 0
    by = int(pressed["steps"] - steps)
    for _ in range(min(abs(by), MAX_PRESSES)):
        visit().move(1 if by > 0 else -1)


def speed() -> float:
    """Steps a second while playing."""
    return float(st.session_state.get("speed", 1.0))


def choose_speed() -> None:
    """Play at the speed that was picked."""
    st.session_state["speed"] = st.session_state[SPEED_PICKED]


def swap_playing() -> None:
    """Play from here, from the start if this is the end; or pause."""
    visit().swap_playing(monotonic(), 1 / speed())


def tick() -> None:
    """While playing, go on if it is time."""
    visit().tick(monotonic(), 1 / speed())


def seconds() -> float | None:
    """Seconds between two steps while playing, None while not."""
    return 1 / speed() if visit().playing else None


def moment() -> Moment:
    """What there is to see at the current place."""
    return moment_of(visit())


def parts_at(frame: int) -> tuple[PartSnapshot, ...]:
    """The cells after one frame of the timeline; of a pair both halves."""
    return tuple(visit().cursor.seek(frame).parts.values())


def half(parts: tuple[PartSnapshot, ...]) -> PartSnapshot:
    """The part that mask, sequences and memory speak of: the only one, or the half that was picked."""
    return next((part for part in parts if part.name == visit().view.half), parts[-1])


def pair(told: plays.Told | None = None) -> Pair:
    """Both plays of the comparison; played and compared again after an edit or a choice of settings."""
    place = visit()
    kept: Pair | None = st.session_state.get("pair")
    if kept is None or not kept.of_these(place.timeline, place.other):
        kept = st.session_state["pair"] = Pair.of(place.timeline, plays.played(place.compared, told), place.other)
    return kept


def begin(key: str, value: Any) -> None:
    """Let the widget with that key start with a value, and keep what was typed since; before it is made."""
    st.session_state.setdefault(key, value)


def fill(values: dict[str, Any]) -> None:
    """Let the widgets with those keys show values; before they are made."""
    st.session_state.update(values)


def close_opener() -> None:
    """Shut the popover in which a scenario is opened, when it is made next."""
    st.session_state["close_opener"] = True


def shut_opener() -> None:
    """Let the popover be shut and empty if it is to be; before it is made."""
    if st.session_state.pop("close_opener", False):
        st.session_state[OPENING], st.session_state[OPEN_TEXT] = False, ""
        st.session_state["n_opened"] = st.session_state.get("n_opened", 0) + 1


def file_key() -> str:
    """The key of the place for a file; a new one after each opening, since a file stays in its place."""
    n = st.session_state.get("n_opened", 0)
    return f"{OPEN_FILE}.{n}" if n else OPEN_FILE


def picture_format() -> str:
    """What a picture is saved as: png or svg."""
    return str(st.session_state.get(PICTURES, "png"))


def note_given(place: str, key: str) -> None:
    """Remember that of the inputs of one place the one with that key was given something last."""
    if st.session_state[key]:
        st.session_state[f"given.{place}"] = key


def given_last(place: str) -> str | None:
    """The key of the input of that place that was given something last; None if none was."""
    key: str | None = st.session_state.get(f"given.{place}")
    return key


def selected(key: str) -> dict[str, Any]:
    """What a visitor selected in a chart, as Streamlit tells it."""
    return dict(st.session_state.get(key, {}).get("selection", {}))


def theme() -> Literal["light", "dark"]:
    """The theme the visitor sees."""
    return "dark" if st.context.theme.type == "dark" else "light"
