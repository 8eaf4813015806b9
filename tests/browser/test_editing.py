"""Editing the operations and the configuration: insert, change, reorder, delete, undo, redo."""

import json

from playwright.sync_api import Page, expect

from tests.browser.helpers import rerun
from tests.browser.server import Server
from tests.browser.stepping import cell_words, click, open_document, press, step_of, visit

THREE = {
    "version": 1,
    "title": "Three steps",
    "cache": {"kv_size": 32, "n_seq_max": 4},
    "ops": [
        {"op": "decode", "tokens": [{"text": ["a", "b", "c"]}]},
        {"op": "decode", "tokens": [{"text": ["x", "y"], "seq": [1]}]},
        {"op": "seq_rm", "seq": 0, "p0": 1, "p1": 2},
    ],
}


def begin(page: Page, server: Server) -> None:
    visit(page, server)
    open_document(page, THREE)


def held(page: Page) -> list[str]:
    """The token of every cell from the first to the last one in use, empty for an empty cell."""
    tokens = [words.partition("token “")[2].rstrip("”") for words in cell_words(page)]
    while tokens and not tokens[-1]:
        tokens.pop()
    return tokens


def operations(page: Page) -> None:
    with rerun(page):
        page.get_by_role("radio", name="Operations").click()


def test_insert_plays_again_from_there(page: Page, server: Server) -> None:
    begin(page, server)
    press(page, "ArrowRight")
    page.get_by_label("Text", exact=True).fill("new")
    click(page, "Insert")
    assert step_of(page) == 2
    assert held(page) == ["a", "b", "c", "new"]
    press(page, "End")
    assert held(page) == ["a", "", "c", "new", "x", "y"]


def test_replace_puts_another_operation_in_the_place(page: Page, server: Server) -> None:
    begin(page, server)
    press(page, "ArrowRight")
    page.get_by_label("Text", exact=True).fill("one two")
    click(page, "Replace")
    assert (step_of(page), held(page)) == (1, ["one", "two"])
    expect(page.get_by_role("button", name="Add as step 4")).to_be_visible()


def test_change_fills_the_form_with_the_operation(page: Page, server: Server) -> None:
    begin(page, server)
    press(page, "End")
    operations(page)
    click(page, "Change")
    assert page.get_by_label("From (p0)").input_value() == "1"
    page.get_by_label("From (p0)").fill("0")
    click(page, "Replace")
    assert held(page) == ["", "", "c", "x", "y"]


def test_reorder_and_delete(page: Page, server: Server) -> None:
    begin(page, server)
    press(page, "ArrowRight")
    press(page, "ArrowRight")
    operations(page)
    click(page, "Earlier")
    assert (step_of(page), held(page)) == (1, ["x", "y"])
    click(page, "Later")
    assert (step_of(page), held(page)) == (2, ["a", "b", "c", "x", "y"])
    click(page, "Delete")
    press(page, "End")
    assert held(page) == ["a", "", "c"]


def test_undo_and_redo(page: Page, server: Server) -> None:
    begin(page, server)
    page.get_by_label("Text", exact=True).fill("more")
    click(page, "Add as step 4")
    grown = held(page)
    assert grown == ["a", "more", "c", "x", "y"]
    click(page, "Undo")
    assert (step_of(page), held(page)) == (3, ["a", "", "c", "x", "y"])
    click(page, "Redo")
    assert (step_of(page), held(page)) == (4, grown)
    expect(page.get_by_role("button", name="Redo")).to_be_disabled()


def test_an_edit_that_cannot_be_carried_out_is_told_and_nothing_is_lost(page: Page, server: Server) -> None:
    begin(page, server)
    before = held(page)
    click(page, "Replace")
    expect(page.get_by_test_id("stSidebar").get_by_role("alert")).to_contain_text("step is 0")
    assert held(page) == before
    expect(page.get_by_role("button", name="Add as step 4")).to_be_visible()


def test_another_configuration_plays_the_same_operations(page: Page, server: Server) -> None:
    begin(page, server)
    press(page, "End")
    click(page, "unified, 32 cells")
    page.get_by_label("kv_size", exact=True).fill("64")
    click(page, "Play with this configuration")
    expect(page.get_by_role("button", name="unified, 64 cells")).to_be_visible()
    assert (step_of(page), held(page)) == (3, ["a", "", "c", "x", "y"])
    click(page, "Undo")
    expect(page.get_by_role("button", name="unified, 32 cells")).to_be_visible()


def test_another_kind_of_cache_plays_the_same_operations(page: Page, server: Server) -> None:
    begin(page, server)
    click(page, "unified, 32 cells")
    page.get_by_label("Kind of cache").click()
    with rerun(page):
        page.get_by_role("option", name="legacy").click()
    click(page, "Play with this configuration")
    expect(page.get_by_role("button", name="legacy, 32 cells")).to_be_visible()
    press(page, "End")
    assert held(page) == ["a", "", "c", "x", "y"]


def test_a_configuration_that_is_not_allowed_is_told_in_the_form(page: Page, server: Server) -> None:
    begin(page, server)
    click(page, "unified, 32 cells")
    page.get_by_label("kv_size", exact=True).fill("33")
    click(page, "Play with this configuration")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("multiple of n_pad")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="unified, 32 cells")).to_be_visible()


def test_long_playing_shows_how_far_it_is_and_can_be_stopped(page: Page, server: Server) -> None:
    begin(page, server)
    decode = {"op": "decode", "tokens": [{"n": 512}]}
    long = {
        "version": 1,
        "title": "Long",
        "cache": {"kv_size": 1_048_576, "n_layer": 1},
        "ops": [decode, {"op": "seq_rm", "seq": 0}] * 2000,
    }
    page.get_by_role("button", name="Open a scenario").click()
    page.get_by_label("Or the JSON itself").fill(json.dumps(long))
    page.get_by_role("button", name="Open this scenario").click()
    expect(page.get_by_text("Playing operation").first).to_be_visible(timeout=60_000)
    with rerun(page):
        page.get_by_role("button", name="Stop playing").click()
    expect(page.get_by_text("Playing operation")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name=THREE["title"]).first).to_be_visible()
