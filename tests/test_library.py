"""The shipped scenarios: complete, readable, and doing what their notes say."""

import json
from importlib.resources import files

import numpy as np
import pytest

from kvmodel.compare import compare
from kvmodel.errors import ParamError
from kvmodel.events import CellsOverwritten, DefragApplied, PrepareFailed, Retried, ShiftApplied
from kvmodel.events_recurrent import StateCopied
from kvmodel.generations import make_context
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
        ("window-pair", [0] * 8),
        ("window-pair-no-slot", [0, 1, 0, 1, 0, 0]),
        ("older-partial-decode", [0, 0, 0, 0, 1, 0]),
        ("shared-states", [0] * 6),
        ("recorded-window-pair", [0] * 8 + [1, 0]),
        ("recorded-older-fragments", [0] * 16 + [1, 1]),
        ("recorded-states", [0] * 3),
        ("case-window-without-a-run", [0, 1, 0, 0, 0]),
        ("case-defrag-in-passes", [0, 0, 1, 1, 0]),
        ("case-one-large-hole", [0, 0, 1, 0]),
        ("case-really-full", [0, 0, *[1] * 10, 0]),
        ("case-self-extend-fills-up", [0, 0, 1]),
        ("case-shift-bookkeeping", [0] * 4),
        ("case-position-gap", [0] * 7 + [-1, -1, 0]),
        ("case-recurrent-removal", [0, 0]),
        ("case-remove-any-sequence", [0] * 3),
        ("case-position-twice", [0, -1, 0]),
        ("case-reuse-moves", [0, 0]),
        ("case-other-cells", [0] * 4),
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


def test_one_half_of_the_pair_is_a_ring(timelines: dict[str, Timeline]) -> None:
    timeline = timelines["window-pair"]
    assert [part.n_cells for part in timeline.start.values()] == [96, 32]
    assert [len(part.params.layers) for part in timeline.start.values()] == [4, 22]
    full = timeline.cursor().seek(timeline.frame_of(5)).parts
    assert full["base"].pos[:56].tolist() == [*range(56)]
    assert sorted(full["swa"].pos.tolist()) == [*range(24, 56)]
    cut = timeline.cursor().seek(timeline.frame_of(9)).parts
    assert (cut["base"].used, sorted(cut["swa"].pos[cut["swa"].pos >= 0].tolist())) == (24, [20, 21, 22, 23])


@pytest.mark.parametrize(("swa_full", "returns"), [(False, [0, 1, 0, 1, 0, 0]), (True, [0, 0, 0, 1, 1, 0])])
def test_a_full_window_half_would_have_had_a_slot(swa_full: bool, returns: list[int]) -> None:
    scenario = load("window-pair-no-slot")
    cache = scenario.cache.model_copy(update={"swa_full": swa_full})
    timeline = play(scenario.model_copy(update={"cache": cache}))
    assert returned(timeline) == returns
    halves = [[e.cache for e in timeline.events_of(step) if isinstance(e, PrepareFailed)] for step in (2, 4)]
    assert halves == ([["swa"] * 2, ["base"] * 2] if not swa_full else [[], ["base"] * 2])
    assert make_context(timeline.scenario).cache.can_shift == swa_full


def test_the_older_cache_keeps_deltas_and_half_a_batch(timelines: dict[str, Timeline]) -> None:
    timeline = timelines["older-partial-decode"]
    cursor = timeline.cursor()
    freed = cursor.seek(timeline.frame_of(6)).first
    assert [(cell, freed.pos[cell], freed.shift[cell]) for cell in (19, 20, 23, 24)] == [
        (19, 15, -4),
        (20, -1, -4),
        (23, -1, -4),
        (24, 8, 0),
    ]
    assert not cursor.seek(timeline.frame_of(7)).first.shift.any()
    partly = cursor.seek(timeline.frame_of(9)).first
    assert (partly.used, partly.spans[2].tolist()) == (58, [0, 31])
    assert cursor.seek(timeline.frame_of(11)).first.used == 64
    comparison = compare(timeline, play(timeline.scenario.on("unified")))
    assert (comparison.first, np.flatnonzero(comparison.results).tolist()) == (2, [8, 9, 11])


def test_states_are_shared_copied_and_swapped(timelines: dict[str, Timeline]) -> None:
    timeline = timelines["shared-states"]
    cursor = timeline.cursor()
    assert [cursor.seek(timeline.frame_of(step)).first.tail.tolist() for step in (3, 4, 5, 12)] == [
        [0, 0, 0, -1],
        [0, 1, 0, -1],
        [0, 2, 1, -1],
        [3, 2, 1, 0],
    ]
    assert cursor.seek(timeline.frames_of(4)[0]).first.src.tolist() == [0, 0, -1, -1]
    assert steps_with(timeline, StateCopied) == [4, 5, 9]
    assert [(step, timeline.results[step - 1].ret) for step in (6, 7)] == [(6, False), (7, True)]
