"""Every control of the Stepper without a browser: what it changes, and that it changes nothing else."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from kvmodel.beats import beats
from kvmodel.player import play
from kvmodel.scenario import Scenario
from tests.page import SCENARIO, open_app, pick, press, unescaped, words

TWO = {
    **SCENARIO,
    "ops": [*SCENARIO["ops"], {"op": "seq_rm", "seq": 0, "p0": 0, "p1": 2, "note": "two go"}, {"op": "clear"}],
}


@pytest.fixture
def page() -> AppTest:
    return open_app(TWO)


def step_of(page: AppTest) -> int:
    return page.slider[0].value


def panel(page: AppTest, name: str) -> AppTest:
    """Choose what stands beside the map."""
    [control] = [group for group in page.button_group if group.label == "Beside the map"]
    return control.set_value(name).run()


def number(page: AppTest, label: str) -> Any:
    [found] = [one for one in page.number_input if one.label == label]
    return found


def labels(page: AppTest) -> list[str]:
    return [button.label for button in page.button]


def test_inside_every_press_is_one_beat(page: AppTest) -> None:
    press(page, "Step inside")
    for beat in beats(play(Scenario.model_validate(TWO)), 1):
        press(page, "Next")
        assert f"**:green[{beat.sentence}]**" in words(page)
        assert step_of(page) == 1
    press(page, "Next")
    assert "Cells after" in words(page)
    press(page, "Previous")
    assert "Inside the operation" in words(page)
    press(page, "Step by operation")
    press(page, "Previous")
    assert step_of(page) == 0


def test_play_and_pause(page: AppTest) -> None:
    press(page, "Play")
    assert "Pause" in labels(page)
    press(page, "Pause")
    assert "Play" in labels(page)
    assert step_of(page) == 0


def test_play_at_the_end_begins_again(page: AppTest) -> None:
    press(page, "Last")
    press(page, "Play")
    assert step_of(page) == 0


@pytest.mark.parametrize(("option", "told"), [(0.5, "1 step in 2 s"), (4.0, "4 steps a second")])
def test_the_speed_is_told(page: AppTest, option: float, told: str) -> None:
    pick(page, "speed_picked", option)
    assert page.menu_button(key="speed_picked").label == told


def test_a_cell_that_is_typed_is_told(page: AppTest) -> None:
    press(page, "Next")
    panel(page, "why")
    number(page, "Cell").set_value(3).run()
    told = words(page)
    assert "Cell 3 holds position 3 of sequence 0, token 3" in told.replace("\\", "")
    assert "four" in told
    number(page, "Asked by new token").set_value(1).run()
    assert "Token 1 “six” (position 5, sequence 0) sees cell 3" in words(page).replace("\\", "")


def test_the_history_of_a_cell_leads_to_its_steps(page: AppTest) -> None:
    press(page, "Last")
    panel(page, "why")
    number(page, "Cell").set_value(0).run()
    told = [label.replace("\\", "") for label in labels(page) if label.startswith("Step ")]
    assert [label.partition(":")[0] for label in told if "," in label] == ["Step 2, seq_rm", "Step 1, decode"]
    [first] = [button for button in page.button if "decode" in button.label and button.label.startswith("Step 1")]
    first.click().run()
    assert step_of(page) == 1


def test_the_operations_lead_to_their_steps(page: AppTest) -> None:
    panel(page, "operations")
    press(page, "2\\. seq" if any(label.startswith("2\\.") for label in labels(page)) else "2. seq")
    assert step_of(page) == 2
    assert "two go" in words(panel(page, "happened"))


def test_reorder_and_delete(page: AppTest) -> None:
    press(page, "Last")
    panel(page, "operations")
    press(page, "Earlier")
    assert step_of(page) == 2
    assert "clear" in words(page)
    press(page, "Delete")
    assert page.slider[0].max == 2
    press(page, "Undo")
    assert page.slider[0].max == 3


@pytest.mark.parametrize(
    ("step", "form", "fields"),
    [
        (1, "decode", {"text": "one two three four five six", "seq": "0"}),
        (2, "JSON", {}),
        (3, "clear", {"data": True}),
    ],
)
def test_change_loads_the_operation(page: AppTest, step: int, form: str, fields: dict[str, Any]) -> None:
    page.slider[0].set_value(step).run()
    panel(page, "operations")
    press(page, "Change")
    assert page.selectbox(key="form").value == form
    widgets = {one.key: one.value for kind in (page.text_input, page.checkbox, page.text_area) for one in kind}
    assert {field: widgets[f"form.{form}.{field}"] for field in fields} == fields
    if form == "JSON":
        assert '"note":"two go"' in widgets["form.JSON.json"]


def test_an_operation_as_json(page: AppTest) -> None:
    page.selectbox(key="form").select("JSON").run()
    page.text_area(key="form.JSON.json").set_value('{"op": "seq_keep", "seq": 0, "note": "kept"}')
    press(page, "Add as step")
    assert step_of(page) == 4
    assert "kept" in words(page)
    page.text_area(key="form.JSON.json").set_value("{")
    press(page, "Add as step")
    assert "no JSON" in unescaped(page.error[0].value)


def test_share_has_the_documents(page: AppTest) -> None:
    press(page, "Next")
    press(page, "Share")
    saved = [button.label for button in page.get("download_button")]
    assert saved == [
        *("Scenario (JSON)", "Python script", "Report (Markdown)"),
        *("Cells", "Events", "Sequences", "Memory", "Mask"),
    ]
    assert "&step=1" in page.code[0].value


def test_an_empty_cache_to_begin_with(page: AppTest) -> None:
    press(page, "Start with an empty cache")
    assert page.slider[0].disabled
    assert "64 cells, all empty" in words(page)


def test_a_remedy_can_be_tried(page: AppTest) -> None:
    page = open_app({**SCENARIO, "ops": [{"op": "decode", "tokens": [{"n": 40}]}]})
    press(page, "Next")
    assert len(page.error) == 1
    press(page, "Try remedy 1")
    assert len(page.error) == 0
    press(page, "Undo")
    assert len(page.error) == 1


def test_share_works_inside_a_step(page: AppTest) -> None:
    press(page, "Step inside")
    press(page, "Next")
    press(page, "Share")
    assert not page.exception
    assert "Report (Markdown)" in [button.label for button in page.get("download_button")]


def test_a_message_is_no_markup(page: AppTest) -> None:
    page.text_input(key="form.decode.seq").set_value("![x](https://example.com/a.png)")
    press(page, "Add as step")
    assert r"\!\[x\]\(https" in page.error[0].value


def test_a_file_and_a_text_are_not_both_taken(page: AppTest) -> None:
    page.file_uploader[0].set_value(("mine.json", b"{}", "application/json"))
    page.text_area(key="open_text").input("{}")
    press(page, "Open this scenario")
    assert "one of both" in page.error[0].value


def test_an_own_scenario_comes_back_after_another_was_picked(page: AppTest) -> None:
    pick(page, "picked", "cache-full")
    press(page, "Undo")
    assert page.slider[0].max == 3


def test_a_cell_or_token_that_there_is_not_is_told(page: AppTest) -> None:
    press(page, "Next")
    panel(page, "why")
    number(page, "Cell").set_value(1).run()
    for label, most in (("Cell", 31), ("Asked by new token", 1)):
        for typed in (32, 2_000_000, -1):
            number(page, label).set_value(typed).run()
            told = [error.value.replace("\\", "") for error in page.error]
            assert told == [f"{label.lower()} is {typed}; allowed: 0 to {most}"]
            assert "Cell 1 holds position 1 of sequence 0" in words(page).replace("\\", "")
        number(page, label).set_value(1).run()
        assert not page.error
