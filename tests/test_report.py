"""Reports: everything an issue needs to know of one step."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.errors import ParamError
from kvmodel.library import IDS, load
from kvmodel.limits import MAX_REPORT_CHARS
from kvmodel.player import play
from kvmodel.report import to_markdown
from kvmodel.scenario import Scenario
from kvmodel.timeline import Timeline
from tests.random_scenarios import any_scenario
from tests.reports import SMALL, section


@pytest.fixture(scope="module")
def full() -> Timeline:
    return play(load("cache-full"))


def test_a_failed_decode_is_told_in_full(full: Timeline) -> None:
    report = to_markdown(full, 2)
    assert report.startswith("# The cache is full, and what helps: step 2 of 6\n\nDescription: A decode that finds")
    assert "context.decode(Batch.from_runs([(0, 20, [1])], auto_pos=True))" in section(report, "Call")
    assert section(report, "Call").endswith("It returned 1.")
    assert "- Ubatch 1: 8 cells in a row sought from head, cell 24; found cells 24-31." in report
    assert section(report, "Why it failed").split("\n")[2:] == [
        "- In kv, try 1, ubatch 2:",
        "  - 4 cells in a row sought from head, cell 32.",
        "  - The end of the cache is reached.",
        "  - Cells 0-28 are still seen by their sequences.",
        "  - Cells 29-31 are too few before the end of the cache.",
        "  - Cell 0 is still seen by its sequence.",
        "  - No slot: 0 cells free.",
        "",
        "Of 20 tokens in the batch, the first 16 would have fit.",
    ]
    assert "- Send at most 16 tokens in one decode." in section(report, "What to do")
    assert section(report, "Cells after the step").split("\n") == [
        "| cells of | number | used | head | n_kv | shift pending | fragmentation |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| kv | 32 | 16 | 16 | 32 | no | 0.000 |",
        "",
        "| cells of | sequence | positions | number |",
        "| --- | --- | --- | --- |",
        "| kv | 0 | 0-15 | 16 |",
        "",
        "```text",
        "kv:",
        "cells 0-15: sequence 0, positions 0 to 15",
        "cells 16-31: empty",
        "```",
    ]


def test_the_configuration_is_complete(full: Timeline) -> None:
    rows = dict(
        re.findall(r"^\| (\S+|llama.cpp of) \| (.*) \|$", section(to_markdown(full, 0), "Configuration"), re.MULTILINE)
    )
    del rows["setting"], rows["---"]
    expected = full.scenario.cache.model_dump() | full.scenario.context.model_dump(exclude={"n_max_nodes"})
    assert rows == {"llama.cpp of": "mid-2025"} | {name: str(value) for name, value in expected.items()}
    assert "| llama.cpp of | January 2025 |" in to_markdown(play(load("older-partial-decode")), 0)


def test_the_document_goes_along(full: Timeline) -> None:
    document = section(to_markdown(full, 3), "Scenario").removeprefix("```json\n").removesuffix("\n```\n")
    assert Scenario.from_json(document) == full.scenario


def test_the_empty_cache_has_no_call(full: Timeline) -> None:
    report = to_markdown(full, 0)
    assert "The cache is empty: no call was made yet." in report
    assert "## Call" not in report
    assert "cells 0-31: empty" in report


def test_a_beat_shows_the_cells_on_the_way() -> None:
    ops = [{"op": "decode", "tokens": [{"n": 6}]}]
    timeline = play(Scenario.model_validate(SMALL | {"ops": ops}))
    found = section(to_markdown(timeline, 1, 4), "Cells at beat 4 of 6")
    assert found.startswith("Found cells 0-5.\n\n| cells of |")
    assert "cells 0-31: empty" in found
    stored = section(to_markdown(timeline, 1, 5), "Cells at beat 5 of 6")
    assert stored.startswith("Ubatch 0 (6 tokens) is stored")
    assert "cells 0-5: sequence 0, positions 0 to 5" in stored
    assert to_markdown(timeline, 1, 0) == to_markdown(timeline, 1)


@pytest.mark.parametrize(
    ("step", "beat", "message"),
    [
        (7, None, "step is 7; allowed: a whole number from 0 to 6"),
        (-1, None, "step is -1; allowed: a whole number from 0 to 6"),
        ("1", None, "step is '1'; allowed: a whole number from 0 to 6"),
        (2, 18, "beat is 18; allowed: a whole number from 0 to 17"),
        (2, -1, "beat is -1; allowed: a whole number from 0 to 17"),
        (0, 1, "beat is 1; allowed: a whole number from 0 to 0"),
    ],
)
def test_what_is_not_there_is_told(full: Timeline, step: Any, beat: int | None, message: str) -> None:
    with pytest.raises(ParamError) as told:
        to_markdown(full, step, beat)
    assert str(told.value) == message


def test_a_pair_tells_of_both_halves() -> None:
    report = to_markdown(play(load("window-pair-no-slot")), 2)
    assert "- In swa, try 1, ubatch 0:" in report
    assert "| base | 96 | 40 | 40 | 64 | no | 0.000 |\n| swa | 32 | 32 | 8 | 32 | no | 0.000 |" in report
    assert "swa:\ncells 0-7: sequence 0, positions 32 to 39\ncells 8-31: sequence 0, positions 8 to 31" in report


@pytest.mark.parametrize(
    ("ops", "step", "returned"),
    [
        ([{"op": "seq_rm", "seq": 0}], 1, "It returned True."),
        ([{"op": "seq_keep", "seq": 0}], 1, "It returned nothing."),
        ([{"op": "update"}], 1, "It returned nothing: nothing to update"),
        (
            [{"op": "decode", "tokens": [{"n": 1}]}, {"op": "decode", "tokens": [{"n": 1, "pos": 9}]}],
            2,
            "It returned -1: sequence 0",
        ),
        (
            [{"op": "decode", "tokens": [{"n": 9}]}],
            1,
            "llama.cpp would end its process here: the batch has 9 tokens; allowed: n_batch = 8 at most",
        ),
    ],
)
def test_what_a_call_returned(ops: list[dict[str, Any]], step: int, returned: str) -> None:
    timeline = play(Scenario.model_validate(SMALL | {"ops": ops, "context": {"n_batch": 8}}))
    assert f"\n\n{returned}" in section(to_markdown(timeline, step), "Call")


@pytest.mark.parametrize("scenario_id", IDS)
def test_every_shipped_step_has_a_report(scenario_id: str) -> None:
    timeline = play(load(scenario_id))
    for step in range(timeline.n_steps):
        report = to_markdown(timeline, step)
        assert len(report) <= MAX_REPORT_CHARS
        assert ("## Why it failed" in report) == bool(step and timeline.results[step - 1].failed)


@given(any_scenario, st.data())
def test_any_step_has_a_report(scenario: Scenario, data: st.DataObject) -> None:
    timeline = play(scenario)
    report = to_markdown(timeline, data.draw(st.integers(0, timeline.n_steps - 1)))
    assert len(report) <= MAX_REPORT_CHARS
    assert json.loads(section(report, "Scenario").removeprefix("```json\n").removesuffix("\n```\n"))["title"] == "drawn"
