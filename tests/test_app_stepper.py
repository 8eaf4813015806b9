"""The Stepper page: what it shows at each step, in each colouring, as pictures and as tables."""

import pytest

from kvmodel.figures import palette
from kvmodel.library import shipped
from kvmodel.mask import MaskReason
from tests.page import SCENARIO, charts, codes, colours, open_app, pick, press, tables, title, words

BLUE, ORANGE = {"#56B4E9"}, {"#E69F00"}
EMPTY = {palette.theme("light").empty}


@pytest.fixture
def page():
    page = open_app(SCENARIO)
    assert not page.exception
    return page


def step_of(page) -> int:
    return page.slider[0].value


def test_the_app_opens_with_the_first_scenario_before_its_first_step():
    page = open_app()
    assert not page.exception
    assert title(page) == next(iter(shipped().values())).title
    assert step_of(page) == 0
    assert "64 cells, all empty" in words(page)
    assert "Press **Next**" in words(page)
    assert set(map(tuple, colours(page, 64))) == {tuple(EMPTY)}


def test_a_step_changes_the_cells_and_back_again(page):
    before = charts(page)[0]
    press(page, "Next")
    assert colours(page, 32) == [BLUE] * 6 + [EMPTY] * 26
    assert "decode(6 tokens, sequence 0)" in words(page)
    press(page, "Previous")
    assert charts(page)[0] == before


def test_first_and_last_go_to_the_ends():
    page = press(open_app(), "Last")
    assert step_of(page) == len(next(iter(shipped().values())).ops)
    assert step_of(press(page, "First")) == 0


def test_the_ends_have_no_way_on(page):
    off = {button.label for button in page.button if button.disabled}
    assert {"First", "Previous"} <= off
    press(page, "Next")
    off = {button.label for button in page.button if button.disabled}
    assert {"Next", "Last"} <= off


def test_the_slider_goes_to_any_step():
    page = open_app()
    page.slider[0].set_value(2).run()
    scenario = next(iter(shipped().values()))
    stored = sum(run.n for op in scenario.ops[:2] for run in op.tokens)
    assert colours(page, 64) == [BLUE] * stored + [EMPTY] * (64 - stored)


def test_a_shared_cell_shows_both_owners():
    document = {**SCENARIO, "ops": [*SCENARIO["ops"], {"op": "seq_cp", "src": 0, "dst": 1, "p1": 2}]}
    page = press(open_app(document), "Last")
    shared, own = colours(page, 6)[:2], colours(page, 6)[2:]
    assert all(shown >= BLUE | ORANGE for shown in shared)
    assert own == [BLUE] * 4


@pytest.mark.parametrize(
    ("colouring", "expected"),
    [
        ("changed", [{palette.theme("light").accent}] * 6 + [EMPTY] * 26),
        ("shift", [{palette.theme("light").filled}] * 6 + [EMPTY] * 26),
    ],
)
def test_colours_can_stand_for(page, colouring, expected):
    press(page, "Next")
    pick(page, "colour_picked", colouring)
    assert colours(page, 32) == expected


def test_colours_can_stand_for_positions(page):
    press(page, "Next")
    pick(page, "colour_picked", "position")
    shown = colours(page, 32)
    assert len({tuple(colour) for colour in shown[:6]}) == 6
    assert shown[6:] == [EMPTY] * 26


def test_the_mask_is_that_of_the_last_ubatch(page):
    press(page, "Next")
    assert "What each of the 2 new tokens may look at" in words(page)
    see, empty, future = MaskReason.VISIBLE, MaskReason.EMPTY, MaskReason.FUTURE
    assert codes(charts(page)[1]["data"][0]).tolist() == [
        [see] * 5 + [future] + [empty] * 26,
        [see] * 6 + [empty] * 26,
    ]


def test_another_ubatch_has_its_mask_from_before_the_later_ones(page):
    press(page, "Next")
    [choice] = [number for number in page.number_input if number.label == "Ubatch"]
    choice.set_value(1).run()
    mask = codes(charts(page)[1]["data"][0])
    assert mask.shape == (4, 32)
    assert set(mask[:, 4:].ravel()) == {MaskReason.EMPTY}
    assert [row.count(MaskReason.VISIBLE) for row in mask.tolist()] == [1, 2, 3, 4]


def test_a_step_without_tokens_has_no_mask():
    page = press(open_app({**SCENARIO, "ops": [{"op": "clear"}]}), "Last")
    assert "No mask in this step" in words(page)
    assert len(charts(page)) == 2


def test_the_figures_of_the_cache_are_told(page):
    press(page, "Next")
    # 6 of 32 cells; K and V: 64 elements of 2 bytes for each of 32 cells.
    assert {metric.label: metric.value for metric in page.metric} == {
        "used of 32": "6",
        "n_kv": "32",
        "fragmentation": "0%",
    }
    assert "K and V take 0.01 MiB" in words(page)
    table = page.table[0].value
    assert table.to_dict("list") == {"sequence": [0], "positions": ["0 to 5"], "cells": [6], "shared": [0]}


def test_what_happened_is_told_in_order(page):
    told = words(press(page, "Next"))
    order = ["accepted", "2 ubatches of 4 and 2 tokens", "found cells 0-3", "found cells 4-5", "stored in cells 0-3"]
    places = [told.index(part) for part in order]
    assert places == sorted(places)


def test_a_failure_stands_out_with_what_to_do():
    full = {**SCENARIO, "ops": [{"op": "decode", "tokens": [{"n": 40}]}]}
    page = press(open_app(full), "Next")
    [failure] = page.error
    assert "no slot" in failure.value
    assert "at most 32 tokens" in failure.value


def test_tables_stand_in_for_the_pictures(page):
    cells, mask, usage = tables(press(page, "Next"))
    assert charts(page) == []
    assert cells["position"].head(7).fillna(-1).tolist() == [0, 1, 2, 3, 4, 5, -1]
    assert cells["token"].head(7).tolist() == ["one", "two", "three", "four", "five", "six", ""]
    assert mask["visible"].tolist() == [5, 6]
    assert usage["used"].tolist() == [0, 6]


def test_a_description_is_no_markup():
    page = open_app({**SCENARIO, "description": "<b>bold</b> ![x](http://example.com/a.png)"})
    [text] = [text.value for text in page.text if "bold" in text.value]
    assert text == "<b>bold</b> ![x](http://example.com/a.png)"


def test_a_title_is_no_markup():
    page = open_app({**SCENARIO, "title": "![x](http://example.com/a.png) :red[b] $c$ `d`"})
    assert page.menu_button(key="picked").label.startswith(r"\!\[x\]\(http\:")
    assert title(page) == "![x](http://example.com/a.png) :red[b] $c$ `d`"


def test_the_menu_says_what_the_colours_stand_for(page):
    pick(page, "colour_picked", "shift")
    assert page.menu_button(key="colour_picked").label == "Colour by pending shift"


def test_pictures_come_back(page):
    before = charts(press(page, "Next"))
    press(page, "Show tables")
    assert charts(press(page, "Show pictures")) == before


@pytest.mark.parametrize("name", shipped())
def test_every_step_of_every_shipped_scenario_can_be_shown(name):
    page = open_app()
    pick(page, "picked", name)
    for step in range(len(shipped()[name].ops) + 1):
        page.slider[0].set_value(step).run()
        assert not page.exception
        assert step_of(page) == step
