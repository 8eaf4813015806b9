"""The Compare page without a browser: both sides, the differences, the tables, another second configuration."""

import pytest
from streamlit.testing.v1 import AppTest

from kvmodel.compare import compare
from kvmodel.configs import KINDS
from kvmodel.library import load, shipped
from kvmodel.player import play
from tests.page import charts, open_app, pick, press, tables, words


@pytest.fixture
def page() -> AppTest:
    page = pick(open_app(), "picked", "fragment-defrag")
    return page.switch_page("views/compare.py").run()


def test_both_sides_are_shown_with_their_differences(page: AppTest) -> None:
    scenario = load("fragment-defrag")
    found = compare(play(scenario), play(scenario.on("legacy")))
    assert found.first
    press(page, f"First difference: step {found.first}")
    assert len(charts(page)) == 2
    told = words(page).replace("\\", "")
    for line in found.told(found.first):
        assert line in told


def test_tables_have_one_row_a_step(page: AppTest) -> None:
    sides = tables(page)
    assert len(sides) == 3
    assert len(sides[2]) == len(load("fragment-defrag").ops) + 1


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_scenario_can_be_compared(name: str) -> None:
    page = pick(open_app(), "picked", name)
    page.switch_page("views/compare.py").run()
    assert not page.exception
    press(page, "Last")
    assert not page.exception
    assert load(name).cache.kind in KINDS
