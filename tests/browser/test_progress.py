"""A single operation that takes long: how far it is can be seen, and it can be stopped."""

import re
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from kvmodel.library import shipped
from kvmodel.permalink import View, to_params
from kvmodel.scenario import Scenario
from tests.browser.helpers import rerun, settle
from tests.browser.server import Server
from tests.browser.stepping import press, step_of

ONE_LONG = {
    "title": "A prompt of 65,536 tokens, one ubatch each",
    "cache": {"kv_size": 131_072},
    "context": {"n_batch": 65_536, "n_ubatch": 1},
    "ops": [{"op": "decode", "tokens": [{"n": 65_536}]}],
}


def test_one_long_operation_shows_that_it_plays_and_can_be_stopped(page: Page, server: Server) -> None:
    address = urlencode(to_params(Scenario.model_validate(ONE_LONG), View(step=1)))
    page.goto(f"{server.url}?{address}")
    done = page.get_by_text(re.compile(r"Playing operation 1 of 1, (?!0%)\d{1,2}% of it done"))
    expect(done.first).to_be_visible(timeout=60_000)
    expect(page.get_by_role("progressbar").first).to_be_visible()
    with rerun(page):
        page.get_by_role("button", name="Stop playing").click()
    expect(page.get_by_text("Playing operation")).to_have_count(0)
    expect(page.get_by_role("button", name=next(iter(shipped().values())).title).first).to_be_visible()
    settle(page)
    press(page, "ArrowRight")
    assert step_of(page) == 1
