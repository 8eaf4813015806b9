"""Choosing, pasting and uploading scenarios."""

import json

import pytest

from kvmodel.library import shipped
from tests.page import SCENARIO, add, can_undo, open_app, paste, pick, press, title, unescaped, words


def test_every_shipped_scenario_can_be_picked():
    options = open_app().menu_button(key="picked").options
    assert [unescaped(option) for option in options] == [scenario.title for scenario in shipped().values()]


def test_a_picked_scenario_starts_at_its_first_step():
    page = press(open_app(), "Last")
    pick(page, "picked", "sliding-window")
    scenario = shipped()["sliding-window"]
    assert title(page) == scenario.title
    assert page.slider[0].value == 0
    assert page.slider[0].max == len(scenario.ops)
    assert f"standard window of {scenario.cache.n_swa}" in words(page)
    assert scenario.description in words(page)


def test_a_pasted_scenario_is_picked():
    page = open_app(SCENARIO)
    assert title(page) == "Six tokens"
    assert page.slider[0].value == 0
    assert "32 cells" in words(page)


def test_an_uploaded_scenario_is_picked():
    page = open_app()
    page.file_uploader(key="open_file").set_value(("mine.json", json.dumps(SCENARIO).encode(), "application/json"))
    press(page, "Open this scenario")
    assert title(page) == "Six tokens"


def test_another_choice_replaces_the_opened_scenario():
    page = open_app(SCENARIO)
    pick(page, "picked", "cache-full")
    assert title(page) == shipped()["cache-full"].title


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[]", "document"),
        ('{"title": "t"}', "cache"),
        (json.dumps({**SCENARIO, "version": 7}), "version is 7"),
        (json.dumps({**SCENARIO, "ops": [{"op": "explode"}]}), "ops.0"),
        (json.dumps({**SCENARIO, "cache": {"kv_size": 2_000_000}}), "kv_size is 2000000"),
        (json.dumps({**SCENARIO, "cache": {"kv_size": 33}}), "multiple of n_pad"),
        (json.dumps({**SCENARIO, "extra": 1}), "extra"),
    ],
)
def test_a_document_that_is_no_scenario_leaves_the_present_one(text, told):
    page = add(open_app(), "clear")
    before = words(page)
    paste(page, text)
    [error] = page.error
    assert told in unescaped(error.value)
    assert page.text_area(key="open_text").value == text
    left = words(page).replace(error.value, "")
    assert left.replace("\n", "") == before.replace("\n", "")


def test_an_upload_that_is_no_text_is_refused():
    page = open_app()
    page.file_uploader(key="open_file").set_value(("mine.json", b"\xff\xfe\x00", "application/json"))
    press(page, "Open this scenario")
    [error] = page.error
    assert "JSON" in error.value


def test_an_empty_scenario_has_one_step():
    page = open_app({**SCENARIO, "ops": []})
    assert not page.exception
    assert page.slider[0].disabled
    add(page, "decode", n=3)
    assert page.slider[0].value == 1


def test_visitors_do_not_see_each_others_edits():
    mine, yours = open_app(SCENARIO), open_app(SCENARIO)
    add(mine, "clear")
    yours.run()
    assert can_undo(mine)
    assert not can_undo(yours)
    assert yours.slider[0].max == len(SCENARIO["ops"])
