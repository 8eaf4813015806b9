"""The app's server, Debian's Chromium, and pages that must not complain."""

import shutil
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.helpers import watch
from tests.browser.server import HOST, Server, serve
from tests.sources import ROOT

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
VIEWPORT = {"width": 1400, "height": 900}


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of an installed Chromium."""
    for name in CHROMIUM_NAMES:
        if path := shutil.which(name):
            return path
    pytest.skip(f"no browser: none of {', '.join(CHROMIUM_NAMES)} is installed")


@pytest.fixture(scope="session")
def server(chromium: str) -> Iterator[Server]:
    """The app, served; what it printed must hold no traceback."""
    with serve(ROOT / "app" / "main.py") as server:
        yield server
        assert "Traceback" not in server.printed(), server.printed()


# Playwright's event loop stands in this thread while the browser is open: for the browser tests only, since notebooks
# are executed with a loop of their own.
@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    """One headless browser for all browser tests."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def new_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Makes pages, each with storage of its own; their scripts must not fail and must not ask other hosts."""
    complaints: list[str] = []
    contexts = []

    def make(**options) -> Page:
        context = browser.new_context(**{"viewport": VIEWPORT, "color_scheme": "light"} | options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(f"script: {error}"))
        page.on("request", lambda request: complaints.extend(foreign(request.url)))
        watch(page)
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []


def foreign(url: str) -> list[str]:
    """The complaint about an address that is neither the server's nor inside the page."""
    parts = urlsplit(url)
    return [] if parts.scheme in {"data", "blob"} or parts.hostname == HOST else [f"asked {url}"]


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    """A page of 1400 x 900 in the light theme."""
    return new_page()


@pytest.fixture
def dark_page(new_page: Callable[..., Page]) -> Page:
    """The same in the dark theme."""
    return new_page(color_scheme="dark")
