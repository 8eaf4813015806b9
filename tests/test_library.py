"""The shipped scenarios: complete, readable, and doing what their notes say."""

import json
from importlib.resources import files

import pytest

from kvmodel.errors import ParamError
from kvmodel.events import CellsOverwritten, DefragApplied, Retried, ShiftApplied
from kvmodel.library import IDS, load, shipped
from kvmodel.ops import Decode
from kvmodel.player import play
from kvmodel.scenario import Scenario
from kvmodel.timeline import Timeline

FOLDER = files("kvmodel") / "scenarios"


@pytest.fixture(scope="module")
def timelines() -> dict[str, Timeline]:
    return {scenario_id: play(scenario) for scenario_id, scenario in shipped().items()}


def returned(timeline: Timeline) -> list[int]:
    """Return codes of the decodes, in order."""
    pairs = zip(timeline.scenario.ops, timeline.results, strict=True)
    return [result.ret for op, result in pairs if isinstance(op, Decode)]


def steps_with(timeline: Timeline, kind: type) -> list[int]:
    return [
        step for step in range(timeline.n_steps) if any(isinstance(event, kind) for event in timeline.events_of(step))
    ]


def test_every_file_is_listed() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(f"{scenario_id}.json" for scenario_id in IDS)
    assert list(shipped()) == list(IDS)


def test_an_unknown_id_is_told() -> None:
    with pytest.raises(ParamError, match="scenario is 'none'; allowed: chat-context-shift, "):
        load("none")


@pytest.mark.parametrize("scenario_id", IDS)
def test_a_scenario_explains_itself(scenario_id: str) -> None:
    scenario = load(scenario_id)
    assert scenario.title[0].isupper()
    assert not scenario.title.endswith(".")
    assert len(scenario.description) > 80
    notes = [op.note for op in scenario.ops if op.note]
    assert len(notes) >= 4
    assert [note for note in notes if not note.endswith((".", "?"))] == []


@pytest.mark.parametrize("scenario_id", IDS)
def test_a_scenario_survives_its_own_json(scenario_id: str) -> None:
    scenario = load(scenario_id)
    assert Scenario.from_json(scenario.to_json()) == scenario
    assert json.loads(FOLDER.joinpath(f"{scenario_id}.json").read_bytes())["version"] == 1


@pytest.mark.parametrize("scenario_id", IDS)
def test_a_scenario_plays_to_its_end(scenario_id: str, timelines: dict[str, Timeline]) -> None:
    timeline = timelines[scenario_id]
    assert timeline.n_steps == len(timeline.scenario.ops) + 1
    assert [result.error for result in timeline.results if result.error] == []


@pytest.mark.parametrize(
    ("scenario_id", "codes"),
    [
        ("chat-context-shift", [0] * 13),
        ("parallel-prefix", [0] * 7),
        ("fragment-defrag", [0] * 15),
        ("sliding-window", [0] * 8 + [1, 0]),
        ("chunked-attention", [0] * 6),
        ("cache-full", [0, 1, 0, 1, 0]),
        ("recorded-fragment-then-defrag", [0] * 17 + [1]),
        ("recorded-self-extend", [0, 0]),
        ("recorded-refused-batches", [0, -1, -1, 0, -1]),
    ],
)
def test_decodes_end_as_their_notes_say(scenario_id: str, codes: list[int], timelines: dict[str, Timeline]) -> None:
    assert returned(timelines[scenario_id]) == codes


def test_the_chat_shifts_its_context(timelines: dict[str, Timeline]) -> None:
    timeline = timelines["chat-context-shift"]
    cursor = timeline.cursor()
    full = cursor.seek(timeline.frame_of(11)).first
    assert (full.used, full.n_cells, full.pos.max()) == (63, 64, 62)
    shifted = cursor.seek(timeline.frame_of(13)).first
    assert (shifted.used, shifted.pos.max(), sorted(set(shifted.shift.tolist()))) == (37, 36, [-26, 0])
    assert steps_with(timeline, ShiftApplied) == [14]
    words = [timeline.tokens[serial].text for serial in shifted.token.tolist() if serial >= 0]
    assert "".join(words).startswith("You are a kind ghost who tends a library.")


def test_the_prompt_is_shared_by_four(timelines: dict[str, Timeline]) -> None:
    timeline = timelines["parallel-prefix"]
    part = timeline.cursor().seek(timeline.frame_of(4)).first
    assert part.seqs.tolist() == [0b1111] * 6 + [0] * 58
    left = timeline.cursor().seek(timeline.frame_of(10)).first
    assert left.owners(0) == (0, 2, 3)


def test_fragments_are_closed_twice(timelines: dict[str, Timeline]) -> None:
    timeline = timelines["fragment-defrag"]
    assert steps_with(timeline, DefragApplied) == [15, 18]
    assert steps_with(timeline, Retried) == [18]
    assert timeline.series("n_kv", "kv")[13:16].tolist() == [64, 96, 64]


def test_windows_overwrite_themselves(timelines: dict[str, Timeline]) -> None:
    assert steps_with(timelines["sliding-window"], CellsOverwritten) == [3, 4, 5, 6, 7, 11]
    assert steps_with(timelines["chunked-attention"], CellsOverwritten) == [5, 6]


def test_the_server_defragments_by_threshold(timelines: dict[str, Timeline]) -> None:
    timeline = timelines["server-slots"]
    assert timeline.start["kv"].n_cells == 4096
    assert set(returned(timeline)) == {0}
    assert steps_with(timeline, DefragApplied) == [26, 32]
    assert steps_with(timeline, ShiftApplied) == [39]
