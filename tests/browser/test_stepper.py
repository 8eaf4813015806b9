"""The Stepper in a real browser: keys, slider, forms, refusals, both themes, a narrow page, two visitors at once."""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.helpers import figure_json, open_page, rerun
from tests.browser.server import Server

SCENARIO = {
    "version": 1,
    "title": "Two batches and a hole",
    "cache": {"kv_size": 32, "n_seq_max": 2},
    "ops": [
        {"op": "decode", "tokens": [{"n": 8}]},
        {"op": "decode", "tokens": [{"n": 4, "seq": [1]}]},
        {"op": "seq_rm", "seq": 0, "p0": 2, "p1": 5},
    ],
}
"""Cells 0-7 belong to sequence 0, then 8-11 to sequence 1, then 2-4 are free."""


@pytest.fixture
def stepper(page: Page, server: Server) -> Page:
    """The app with the scenario above, before its first step."""
    open_page(page, server.url)
    give(page, SCENARIO)
    return page


def give(page: Page, scenario: dict[str, Any]) -> None:
    """Open a scenario through the app's own form."""
    page.get_by_role("button", name="Open a scenario").click()
    page.get_by_label("Or the JSON itself").fill(json.dumps(scenario))
    with rerun(page):
        page.get_by_role("button", name="Open this scenario").click()


def press(page: Page, key: str) -> None:
    """Press a key and wait for what it starts."""
    with rerun(page):
        page.keyboard.press(key)


def cell_map(page: Page) -> np.ndarray:
    """The codes of the map as it is drawn."""
    heatmap = next(trace for trace in figure_json(page)["data"] if trace["type"] == "heatmap")
    return np.asarray(heatmap["z"])


def used(page: Page) -> str:
    """The metric that says how many cells are used."""
    return page.get_by_test_id("stMetric").filter(has_text="used").get_by_test_id("stMetricValue").inner_text()


def test_keys_step_forward_and_back(stepper: Page) -> None:
    maps = [cell_map(stepper)]
    counts = [used(stepper)]
    for _ in range(3):
        press(stepper, "ArrowRight")
        maps.append(cell_map(stepper))
        counts.append(used(stepper))
    assert counts == ["0 / 32", "8 / 32", "12 / 32", "9 / 32"]
    assert all((maps[i] != maps[i + 1]).any() for i in range(3))
    for i in (2, 1, 0):
        press(stepper, "ArrowLeft")
        assert used(stepper) == counts[i]
        assert (cell_map(stepper) == maps[i]).all()


def test_home_and_end_go_to_the_ends(stepper: Page) -> None:
    press(stepper, "End")
    assert used(stepper) == "9 / 32"
    press(stepper, "Home")
    assert used(stepper) == "0 / 32"


def test_the_slider_goes_to_a_step(stepper: Page) -> None:
    slider = stepper.get_by_role("slider")
    slider.focus()
    for count in ("8 / 32", "12 / 32"):
        press(stepper, "ArrowUp")
        assert used(stepper) == count
    assert slider.input_value() == "2"


def test_what_happened_names_the_cells(stepper: Page) -> None:
    press(stepper, "ArrowRight")
    expect(stepper.get_by_text("stored in cells 0-7")).to_be_visible()


def test_the_mask_follows_the_map(stepper: Page) -> None:
    press(stepper, "ArrowRight")
    codes = figure_json(stepper, 1)["data"][0]["z"]
    visible = np.asarray(codes)[:8, :8] == codes[0][0]
    assert (visible == np.tril(np.ones((8, 8), bool))).all()


def test_a_form_appends_a_step(stepper: Page) -> None:
    press(stepper, "End")
    stepper.get_by_label("Tokens (n)").fill("5")
    with rerun(stepper):
        stepper.get_by_role("button", name="Add as step 4").click()
    assert used(stepper) == "14 / 32"
    expect(stepper.get_by_role("button", name="Add as step 5")).to_be_visible()
    with rerun(stepper):
        stepper.get_by_role("button", name="Undo").click()
    assert used(stepper) == "9 / 32"


def test_bad_input_is_told_and_nothing_is_lost(stepper: Page) -> None:
    press(stepper, "End")
    before = cell_map(stepper)
    stepper.get_by_label("Sequences").fill("0, seven")
    with rerun(stepper):
        stepper.get_by_role("button", name="Add as step 4").click()
    expect(stepper.get_by_role("alert").filter(has_text="seven")).to_be_visible()
    expect(stepper.get_by_label("Sequences")).to_have_value("0, seven")
    assert used(stepper) == "9 / 32"
    assert (cell_map(stepper) == before).all()


def test_markup_stays_text(stepper: Page) -> None:
    stepper.get_by_label("Text").fill("<img/src=x/onerror=alert(1)> **bold**")
    with rerun(stepper):
        stepper.get_by_role("button", name="Add as step 4").click()
    assert used(stepper) == "11 / 32"
    assert stepper.locator("img[src=x]").count() == 0


def test_a_document_that_is_no_scenario_is_refused(stepper: Page) -> None:
    press(stepper, "ArrowRight")
    stepper.get_by_role("button", name="Open a scenario").click()
    stepper.get_by_label("Or the JSON itself").fill('{"title": "x", "cache": {"kv_size": 33}}')
    with rerun(stepper):
        stepper.get_by_role("button", name="Open this scenario").click()
    expect(stepper.get_by_role("alert").filter(has_text="a multiple of n_pad = 32")).to_be_visible()
    assert used(stepper) == "8 / 32"


def test_a_shipped_scenario_is_picked_by_its_title(page: Page, server: Server) -> None:
    open_page(page, server.url)
    page.get_by_role("button", name=re.compile("shifts its context")).click()
    with rerun(page):
        page.get_by_role("menuitem").filter(has_text="Four sequences").first.click()
    press(page, "ArrowRight")
    assert int(used(page).split(" / ")[0]) > 0


def test_the_dark_page_is_dark(dark_page: Page, server: Server) -> None:
    open_page(dark_page, server.url)
    press(dark_page, "ArrowRight")
    paper = figure_json(dark_page)["layout"]["paper_bgcolor"]
    background = dark_page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor")
    assert background == "rgb(20, 24, 28)"
    assert paper in {"rgba(0,0,0,0)", "#14181c"}


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (820, 1000)])
def test_nothing_is_wider_than_the_page(new_page: Callable[..., Page], server: Server, width: int, height: int) -> None:
    page = new_page(viewport={"width": width, "height": height})
    open_page(page, server.url)
    press(page, "ArrowRight")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    main = page.get_by_test_id("stMain")
    assert main.evaluate("part => part.scrollWidth <= part.clientWidth")
    expect(page.get_by_role("button", name="Next")).to_be_visible()


def test_a_small_cache_needs_no_scrolling(stepper: Page) -> None:
    press(stepper, "ArrowRight")
    main = stepper.get_by_test_id("stMain")
    assert main.evaluate("part => part.scrollHeight <= part.clientHeight")


def test_two_visitors_do_not_see_each_other(new_page: Callable[..., Page], server: Server) -> None:
    first, second = new_page(), new_page()
    for page in (first, second):
        open_page(page, server.url)
        give(page, SCENARIO)
    press(first, "End")
    first.get_by_label("Tokens (n)").fill("3")
    with rerun(first):
        first.get_by_role("button", name="Add as step 4").click()
    press(second, "End")
    assert used(first) == "12 / 32"
    assert used(second) == "9 / 32"
    expect(second.get_by_role("button", name="Add as step 4")).to_be_visible()
