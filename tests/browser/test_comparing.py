"""The Compare page: two kinds of cache in step, and where they differ."""

from playwright.sync_api import Page, expect

from kvmodel.compare import compare
from kvmodel.library import load
from kvmodel.player import play
from tests.browser.helpers import open_page, rerun
from tests.browser.server import Server
from tests.browser.stepping import click, press

SCENARIO = load("fragment-defrag")


def begin(page: Page, server: Server) -> None:
    open_page(page, f"{server.url}/compare?scenario=fragment-defrag")


def test_both_sides_step_together_and_differences_are_told(page: Page, server: Server) -> None:
    found = compare(play(SCENARIO), play(SCENARIO.on("legacy")))
    assert found.first is not None
    begin(page, server)
    charts = page.get_by_test_id("stPlotlyChart")
    assert charts.count() == 2
    click(page, f"First difference: step {found.first}")
    expect(page.get_by_text(f"What differs after step {found.first}")).to_be_visible()
    for line in found.told(found.first):
        expect(page.get_by_text(line)).to_be_visible()
    press(page, "ArrowLeft")
    expect(page.get_by_text("Nothing: the same cells, owners and counters.")).to_be_visible()


def test_another_second_configuration(page: Page, server: Server) -> None:
    begin(page, server)
    with rerun(page):
        page.get_by_role("button", name="legacy,").click()
    page.get_by_label("kv_size", exact=True).fill("128")
    click(page, "Play with this configuration")
    expect(page.get_by_role("button", name="legacy, 128 cells")).to_be_visible()
    expect(page.get_by_text("of 128 cells used")).to_be_visible()


def test_tables_stand_in_for_the_pictures(page: Page, server: Server) -> None:
    begin(page, server)
    press(page, "t")
    assert page.get_by_test_id("stPlotlyChart").count() == 0
    assert page.get_by_test_id("stDataFrame").count() == 3


def test_the_address_carries_the_second_configuration(new_page, server: Server) -> None:
    mine = new_page()
    begin(mine, server)
    with rerun(mine):
        mine.get_by_role("button", name="legacy,").click()
    mine.get_by_label("kv_size", exact=True).fill("128")
    click(mine, "Play with this configuration")
    yours = new_page()
    open_page(yours, mine.url)
    expect(yours.get_by_role("button", name="legacy, 128 cells")).to_be_visible()
