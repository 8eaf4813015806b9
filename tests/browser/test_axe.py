"""axe-core finds no serious violation on any page, in light and dark, in the states that a visitor comes to."""

import pytest
from playwright.sync_api import Page

from tests.browser.axe import violations
from tests.browser.helpers import open_page, rerun
from tests.browser.server import Server
from tests.browser.stepping import click, press

PAGES = ("", "compare", "k-shift", "memory")


def test_a_violation_is_seen(page: Page, server: Server) -> None:
    open_page(page, server.url)
    page.evaluate("() => document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,\">')")
    assert any(found.startswith("image-alt") for found in violations(page))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_a_serious_violation(new_page, server: Server, path: str, scheme: str) -> None:
    page = new_page(color_scheme=scheme)
    open_page(page, f"{server.url}/{path}")
    assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_state_of_the_stepper_has_a_serious_violation(new_page, server: Server, scheme: str) -> None:
    page = new_page(color_scheme=scheme)
    open_page(page, f"{server.url}?scenario=cache-full")
    press(page, "End")
    assert violations(page) == []
    for panel in ("Ask why", "Operations"):
        with rerun(page):
            page.get_by_role("radio", name=panel).click()
        assert violations(page) == []
    press(page, "t")
    assert violations(page) == []
    click(page, "Share")
    assert violations(page) == []
