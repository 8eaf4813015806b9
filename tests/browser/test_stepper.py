"""The Stepper page as a person uses it: keys, slider, menus, forms, themes, and a narrow window."""

import pytest
from playwright.sync_api import expect

from kvmodel.library import shipped
from tests.browser.helpers import figure_json, rerun, settle
from tests.browser.stepping import cell_words, click, map_codes, open_document, pick, press, step_of, visit

FIRST = next(iter(shipped().values()))
SMALL = {
    "version": 1,
    "title": "Six tokens",
    "cache": {"kv_size": 32, "n_seq_max": 4},
    "ops": [{"op": "decode", "tokens": [{"text": ["one", "two", "three", "four", "five", "six"]}]}, {"op": "clear"}],
}
FULL = {
    "version": 1,
    "title": "1,024 cells",
    "cache": {"kv_size": 1024, "n_seq_max": 4},
    "ops": [{"op": "decode", "tokens": [{"n": 200, "seq": [seq]}]} for seq in range(4)],
}
OVERFLOW = """
() => [...document.querySelectorAll('[data-testid=stMain], [data-testid=stMain] *')]
  .filter(node => node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).overflowX !== 'visible'
    && getComputedStyle(node).overflowX !== 'hidden')
  .map(node => node.outerHTML.slice(0, 120))
"""


def test_the_keyboard_steps_forward_and_back(page, server):
    visit(page, server)
    start = map_codes(page)
    press(page, "ArrowRight")
    first = map_codes(page)
    assert first != start
    press(page, "ArrowRight")
    assert map_codes(page) != first
    press(page, "ArrowLeft")
    assert map_codes(page) == first
    press(page, "ArrowLeft")
    assert map_codes(page) == start


def test_home_and_end_go_to_the_ends(page, server):
    visit(page, server)
    press(page, "End")
    assert step_of(page) == len(FIRST.ops)
    press(page, "Home")
    assert step_of(page) == 0


def test_the_slider_goes_to_any_step(page, server):
    visit(page, server)
    press(page, "ArrowRight")
    press(page, "ArrowRight")
    second = map_codes(page)
    press(page, "Home")
    with rerun(page):
        box = page.get_by_test_id("stSlider").bounding_box()
        page.mouse.click(box["x"] + box["width"] * 2 / len(FIRST.ops), box["y"] + box["height"] / 2)
    expect(page.get_by_text(f"2 of {len(FIRST.ops)}")).to_be_visible()
    assert map_codes(page) == second


def test_the_arrow_key_moves_a_focused_slider_by_one(page, server):
    visit(page, server)
    page.get_by_role("slider").focus()
    press(page, "ArrowRight")
    settle(page)
    assert step_of(page) == 1


def test_after_picking_a_scenario_the_arrow_key_steps(page, server):
    visit(page, server)
    pick(page, FIRST.title, shipped()["sliding-window"].title)
    assert step_of(page) == 0
    press(page, "ArrowRight")
    assert step_of(page) == 1
    assert any("position 0" in words for words in cell_words(page))


def test_a_form_adds_a_step_that_shows_at_once(page, server):
    visit(page, server)
    open_document(page, SMALL)
    page.get_by_label("Text").fill("alpha beta")
    click(page, "Add as step 3")
    assert step_of(page) == 3
    words = cell_words(page)
    assert [words[0], words[1], words[2]] == [
        "position 0, sequence 0<br>token “alpha”",
        "position 1, sequence 0<br>token “beta”",
        "empty",
    ]
    expect(page.get_by_role("button", name="Add as step 4")).to_be_visible()
    click(page, "Undo")
    assert step_of(page) == 2


def test_bad_input_is_told_beside_the_form_and_nothing_is_lost(page, server):
    visit(page, server)
    open_document(page, SMALL)
    press(page, "ArrowRight")
    before = map_codes(page)
    page.get_by_label("Sequences").fill("0, x")
    click(page, "Add as step 3")
    expect(page.get_by_test_id("stSidebar").get_by_role("alert")).to_contain_text("seq is '0, x'; allowed")
    assert page.get_by_label("Sequences").input_value() == "0, x"
    assert (step_of(page), map_codes(page)) == (1, before)
    page.get_by_label("Sequences").fill("0, 2")
    page.get_by_label("From (pos)").fill("9")
    click(page, "Add as step 3")
    assert step_of(page) == 3


def test_a_document_that_is_no_scenario_is_told_beside_the_form(page, server):
    visit(page, server)
    open_document(page, {"title": "nothing in it"})
    expect(page.get_by_role("alert")).to_contain_text("cache")
    expect(page.get_by_role("button", name=FIRST.title).first).to_be_visible()


def test_a_title_is_shown_as_it_is_written(page, server):
    visit(page, server)
    title = "![x](http://127.0.0.1:9/a.png) <img src=x> :red[b] $c$"
    open_document(page, {**SMALL, "title": title})
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name=title)).to_be_visible()
    assert page.locator("img").count() == 0


def test_tables_come_and_go_with_a_key(page, server):
    visit(page, server)
    press(page, "ArrowRight")
    charts = page.get_by_test_id("stPlotlyChart")
    assert charts.count() == 3
    press(page, "t")
    assert charts.count() == 0
    assert page.get_by_test_id("stDataFrame").count() == 3
    press(page, "t")
    assert charts.count() == 3


@pytest.mark.parametrize(("scheme", "paper"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 24, 28)")])
def test_pictures_stand_on_the_colour_of_the_page(new_page, server, scheme, paper):
    page = visit(new_page(color_scheme=scheme), server)
    press(page, "ArrowRight")
    ground = page.get_by_test_id("stApp").evaluate("node => getComputedStyle(node).backgroundColor")
    assert ground == paper
    for chart in range(3):
        colour = figure_json(page, chart)["layout"]["paper_bgcolor"]
        assert colour == "#" + "".join(f"{int(part):02x}" for part in paper[4:-1].split(", "))


def test_1024_cells_fit_on_one_screen(page, server):
    visit(page, server)
    open_document(page, FULL)
    press(page, "End")
    for words in ("Cells after", "What happened", "What each of the 200 new tokens", "K and V take"):
        expect(page.get_by_text(words).first).to_be_in_viewport(ratio=1)
    for chart in page.get_by_test_id("stPlotlyChart").all():
        expect(chart).to_be_in_viewport(ratio=1)
    main = page.get_by_test_id("stMain")
    assert main.evaluate("node => node.scrollHeight <= node.clientHeight")


def test_a_narrow_window_has_everything_and_nothing_sticks_out(new_page, server):
    page = visit(new_page(viewport={"width": 820, "height": 900}), server)
    open_document(page, FULL)
    page.keyboard.press("Escape")
    press(page, "End")
    assert page.evaluate(OVERFLOW) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for name in ("First", "Previous", "Show tables", "Colour by sequence", "Open a scenario", "Add as step"):
        button = page.get_by_role("button", name=name)
        button.scroll_into_view_if_needed()
        expect(button).to_be_in_viewport(ratio=1)


def test_two_visitors_do_not_see_each_others_edits(new_page, server):
    mine, yours = visit(new_page(), server), visit(new_page(), server)
    press(mine, "End")
    press(yours, "End")
    before = map_codes(yours)
    mine.get_by_label("Text").fill("only mine")
    click(mine, "Add as step")
    press(yours, "ArrowLeft")
    press(yours, "ArrowRight")
    assert map_codes(yours) == before
    assert step_of(mine) == step_of(yours) + 1
    expect(yours.get_by_role("button", name=f"Add as step {len(FIRST.ops) + 1}")).to_be_visible()
