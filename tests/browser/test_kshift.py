"""The K-shift page in a real browser: it draws, follows an input, and fits a narrow window in both themes."""

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.helpers import figure_json, open_page, rerun
from tests.browser.server import Server


def keys(page: Page) -> dict[str, np.ndarray]:
    """The rows of the heatmap by name."""
    figure = figure_json(page, 1)
    return {trace["name"]: np.asarray(trace["z"]) for trace in figure["data"] if trace["type"] == "heatmap"}


def test_another_shift_turns_the_key_further(page: Page, server: Server) -> None:
    open_page(page, f"{server.url}/k-shift")
    first = keys(page)
    with rerun(page):
        page.get_by_label("Shift", exact=True).fill("-8")
        page.keyboard.press("Enter")
    second = keys(page)
    assert (first["before"] == second["before"]).all()
    assert (first["after"] != second["after"]).any()
    assert np.abs(second["after"] - second["fresh"]).max() < 0.01


@pytest.mark.parametrize("width", [1400, 820])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_page(new_page: Callable[..., Page], server: Server, width: int, scheme: str) -> None:
    page = new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    open_page(page, f"{server.url}/k-shift")
    main = page.get_by_test_id("stMain")
    assert main.evaluate("part => part.scrollWidth <= part.clientWidth")
    chart = page.locator(".js-plotly-plot").first.bounding_box()
    assert chart
    assert chart["width"] > 450
    expect(page.get_by_text("What the shift does to this key")).to_be_visible()
