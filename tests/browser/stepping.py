"""What a person does and sees on the Stepper page."""

import json
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.helpers import figure_json, open_page, rerun
from tests.browser.server import Server


def visit(page: Page, server: Server) -> Page:
    """Open the app and look at the page before its first step."""
    open_page(page, server.url)
    expect(page.get_by_text("What happened")).to_be_visible()
    return page


def press(page: Page, key: str) -> None:
    """Press a key that steps."""
    with rerun(page):
        page.keyboard.press(key)


def click(page: Page, name: str) -> None:
    """Click a button that changes something."""
    with rerun(page):
        page.get_by_role("button", name=name).click()


def pick(page: Page, menu: str, option: str) -> None:
    """Choose from a menu by the beginning of its label."""
    page.get_by_role("button", name=menu).first.click()
    with rerun(page):
        page.get_by_role("menuitem", name=option).click()


def open_document(page: Page, document: dict[str, Any]) -> None:
    """Paste a scenario."""
    click(page, "Open a scenario")
    page.get_by_label("Or the JSON itself").fill(json.dumps(document))
    click(page, "Open this scenario")


def step_of(page: Page) -> int:
    """The step at which the slider stands."""
    return int(page.get_by_role("slider").input_value())


def map_codes(page: Page) -> Any:
    """The colour codes of the map as the browser draws them."""
    [trace] = [trace for trace in figure_json(page)["data"] if trace.get("name") == "colours"]
    return trace["z"].tolist()


def cell_words(page: Page) -> list[str]:
    """What every cell of the map says on hover."""
    [trace] = [trace for trace in figure_json(page)["data"] if trace.get("name") == "cells"]
    return list(trace["hovertext"]) if "hovertext" in trace else [words for row in trace["text"] for words in row]
