"""Stepping inside operations, and playing: keys, pause, speed, and less motion for who asks for it."""

import pytest
from playwright.sync_api import expect

from kvmodel.beats import beats
from kvmodel.library import load, shipped
from kvmodel.player import play
from tests.browser.helpers import open_page, rerun, settle
from tests.browser.stepping import click, map_codes, press, step_of, visit

FIRST = next(iter(shipped().values()))


def test_the_keys_go_beat_by_beat_and_back(page, server):
    visit(page, server)
    press(page, "i")
    sentences = [beat.sentence for beat in beats(play(FIRST), 1)]
    for number, sentence in enumerate(sentences, 1):
        press(page, "ArrowRight")
        expect(page.get_by_text(f"Inside the operation: {number} of {len(sentences)}")).to_be_visible()
        expect(page.locator("strong", has_text=sentence).first).to_be_visible()
    press(page, "ArrowRight")
    expect(page.get_by_text("Cells after")).to_be_visible()
    press(page, "ArrowLeft")
    expect(page.get_by_text(f"Inside the operation: {len(sentences)} of {len(sentences)}")).to_be_visible()


def test_the_last_beat_of_a_step_shows_the_cells_after_it(page, server):
    visit(page, server)
    press(page, "ArrowRight")
    after = map_codes(page)
    press(page, "i")
    press(page, "ArrowLeft")
    assert map_codes(page) == after


def test_a_defrag_moves_block_by_block(page, server):
    scenario = load("fragment-defrag")
    timeline = play(scenario)
    step = next(i for i in range(1, timeline.n_steps) if any(beat.marks.moves for beat in beats(timeline, i)))
    open_page(page, f"{server.url}?scenario=fragment-defrag&step={step}")
    press(page, "i")
    maps = set()
    for _ in beats(timeline, step):
        press(page, "ArrowLeft")
        maps.add(str(map_codes(page)))
    plan = next(beat.marks.moves for beat in beats(timeline, step) if beat.marks.moves)
    assert len(maps) == plan.n_moves + 1


def test_no_press_of_a_key_is_lost(page, server):
    visit(page, server)
    with rerun(page):
        for _ in range(9):
            page.keyboard.press("ArrowRight")
    expect(page.get_by_role("slider")).to_have_value("9")
    with rerun(page):
        for _ in range(4):
            page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("slider")).to_have_value("5")


def test_play_goes_to_the_end_and_stops(page, server):
    open_page(page, f"{server.url}?scenario=cache-full")
    last = len(load("cache-full").ops)
    page.get_by_role("button", name="1 step a second").click()
    with rerun(page):
        page.get_by_role("menuitem", name="4 steps a second").click()
    page.keyboard.press("p")
    expect(page.get_by_role("slider")).to_have_value(str(last), timeout=60_000)
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    settle(page)
    assert step_of(page) == last


def test_pause_stays_where_it_is(page, server):
    visit(page, server)
    page.keyboard.press("p")
    expect(page.get_by_role("slider")).to_have_value("2", timeout=30_000)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    settle(page)
    stopped = step_of(page)
    page.wait_for_timeout(2500)
    assert step_of(page) == stopped
    assert 2 <= stopped < len(FIRST.ops)


def test_a_key_ends_playing(page, server):
    visit(page, server)
    page.keyboard.press("p")
    expect(page.get_by_role("slider")).to_have_value("1", timeout=30_000)
    page.keyboard.press("Home")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    settle(page)
    assert step_of(page) == 0


@pytest.mark.parametrize(("motion", "moves"), [("no-preference", True), ("reduce", False)])
def test_less_motion_for_who_asks_for_it(new_page, server, motion, moves):
    page = visit(new_page(reduced_motion=motion), server)
    durations = page.evaluate(
        "() => [...document.querySelectorAll('*')].map(node => getComputedStyle(node).transitionDuration)"
    )
    assert any(duration != "0s" for duration in durations) == moves
    press(page, "ArrowRight")
    click(page, "Next")
    assert step_of(page) == 2


def test_after_a_choice_with_the_mouse_the_keys_step(page, server):
    visit(page, server)
    with rerun(page):
        page.get_by_role("radio", name="Operations").click()
    press(page, "ArrowRight")
    assert step_of(page) == 1
    expect(page.get_by_role("radio", name="Operations")).to_be_checked()
