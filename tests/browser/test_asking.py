"""Asking why: a click on a cell or a square of the mask, a number instead of a click, and a failure told in full."""

import numpy as np
from playwright.sync_api import Page, expect

from kvmodel.library import load
from kvmodel.player import play
from kvmodel.why import failure_story
from tests.browser.helpers import open_page, rerun
from tests.browser.server import Server
from tests.browser.stepping import open_document, press, visit

LARGE = {
    "version": 1,
    "title": "A large cache",
    "cache": {"kv_size": 131072, "n_seq_max": 4},
    "context": {"n_batch": 65536, "n_ubatch": 4096},
    "ops": [
        {"op": "decode", "tokens": [{"n": 60000, "seq": [0]}]},
        {"op": "seq_rm", "seq": 0, "p0": 50000, "p1": 50010},
    ],
}
SQUARE = """
([chart, column, row]) => {
  const plot = document.querySelectorAll('.js-plotly-plot')[chart];
  const {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect();
  return [box.x + xaxis._offset + xaxis.d2p(column), box.y + yaxis._offset + yaxis.d2p(row)];
}
"""


def click_square(page: Page, chart: int, column: int, row: int) -> None:
    """Click in the middle of a square of a picture."""
    x, y = page.evaluate(SQUARE, [chart, column, row])
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    with rerun(page):
        page.mouse.click(x, y)


def test_a_click_on_a_cell_tells_its_story(page: Page, server: Server) -> None:
    visit(page, server)
    press(page, "ArrowRight")
    click_square(page, 0, 4, 0)
    assert page.get_by_label("Cell", exact=True).input_value() == "4"
    expect(page.get_by_text("Cell 4 holds position 4 of sequence 0, token 4.")).to_be_visible()
    expect(page.get_by_text("Step 1, decode: token 4 is stored as position 4 of sequence 0.")).to_be_visible()


def test_a_number_asks_as_well_as_a_click(page: Page, server: Server) -> None:
    visit(page, server)
    press(page, "ArrowRight")
    with rerun(page):
        page.get_by_role("radio", name="Ask why").click()
    page.get_by_label("Cell", exact=True).fill("63")
    with rerun(page):
        page.keyboard.press("Enter")
    expect(page.get_by_text("It was never used.")).to_be_visible()


def test_a_click_on_the_mask_tells_the_reason(page: Page, server: Server) -> None:
    open_page(page, f"{server.url}?scenario=parallel-prefix&step=6")
    click_square(page, 1, 8, 3)
    expect(page.get_by_text("does not see cell 8 (position 8): it belongs to sequence 0")).to_be_visible()


def test_the_history_leads_to_the_step(page: Page, server: Server) -> None:
    visit(page, server)
    press(page, "End")
    click_square(page, 0, 0, 0)
    with rerun(page):
        page.get_by_role("button", name="Step 1, decode: token 0 is stored").click()
    expect(page.get_by_role("slider")).to_have_value("1")


def test_a_failure_tells_its_search_in_full(page: Page, server: Server) -> None:
    timeline = play(load("cache-full"))
    step = next(i for i in range(1, timeline.n_steps) if failure_story(timeline, i))
    story = failure_story(timeline, step)
    assert story
    open_page(page, f"{server.url}?scenario=cache-full&step={step}")
    for remedy in story.remedies:
        expect(page.get_by_role("alert")).to_contain_text(remedy)
    for line in story.searches[-1].lines:
        expect(page.get_by_text(line, exact=True).first).to_be_attached()


def test_a_number_that_there_is_not_is_told_and_nothing_is_lost(page: Page, server: Server) -> None:
    open_page(page, f"{server.url}?scenario=parallel-prefix&step=6&cell=8&query=3&panel=why")
    for label, most in (("Cell", 63), ("Asked by new token", 3)):
        number = page.get_by_label(label, exact=True)
        before = number.input_value()
        for typed in ("2000", "-1"):
            number.fill(typed)
            with rerun(page):
                page.keyboard.press("Enter")
            expect(page.get_by_role("alert")).to_have_text(f"{label.lower()} is {typed}; allowed: 0 to {most}")
            expect(page.get_by_text("does not see cell 8 (position 8): it belongs to sequence 0")).to_be_visible()
        number.fill(before)
        with rerun(page):
            page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_count(0)


def test_a_failure_and_its_first_remedy_stand_at_the_top_of_a_panel_that_keys_scroll(
    page: Page, server: Server
) -> None:
    open_page(page, f"{server.url}?scenario=cache-full&step=4")
    panel = page.get_by_role("region", name="Beside the map")
    frame = panel.bounding_box()
    for words in ("Decoding 14 tokens returned 1: there is no slot.", "Send at most 8 tokens in one decode."):
        box = panel.get_by_role("alert").get_by_text(words).bounding_box()
        assert frame["y"] < box["y"] < box["y"] + box["height"] < frame["y"] + frame["height"]
    assert panel.evaluate("node => node.scrollHeight > node.clientHeight && node.scrollTop === 0")
    assert panel.evaluate("node => getComputedStyle(node).scrollbarColor.split(' rgb')[0].endsWith('/ 0.45)')")
    page.get_by_role("button", name="Colour by").focus()
    for _ in range(9):
        if panel.evaluate("node => node === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(panel).to_be_focused()
    assert panel.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    page.keyboard.press("PageDown")
    page.wait_for_function("node => node.scrollTop > 0", arg=panel.element_handle())


def test_a_large_cache_is_an_overview_and_a_detail_with_every_cell(page: Page, server: Server) -> None:
    visit(page, server)
    open_document(page, LARGE)
    press(page, "End")
    with rerun(page):
        page.get_by_role("radio", name="Ask why").click()
    page.get_by_label("Cell", exact=True).fill("50003")
    with rerun(page):
        page.keyboard.press("Enter")
    expect(page.get_by_text("Cell 50003 holds nothing.")).to_be_visible()
    charts = page.get_by_test_id("stPlotlyChart")
    first = page.evaluate("() => document.querySelectorAll('.js-plotly-plot')[1].data[1].customdata?.length ?? 0")
    assert charts.count() >= 3
    assert np.asarray(first).size
