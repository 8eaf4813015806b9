"""Taking away what is seen: the address in a second browser, the files opened and checked, the pictures."""

import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from kvmodel.cellruns import cell_lines
from kvmodel.library import load, shipped
from kvmodel.player import play
from kvmodel.scenario import Scenario
from tests.browser.helpers import FIGURE, open_page, rerun, settle
from tests.browser.server import Server
from tests.browser.stepping import click, open_document, pick, press, step_of, visit
from tests.sources import ROOT

FIRST = next(iter(shipped().values()))
OWN = {
    "version": 1,
    "title": "My own: ünïcode & more",
    "cache": {"kv_size": 32, "n_seq_max": 4},
    "ops": [{"op": "decode", "tokens": [{"text": ["naïve", "&", "#"]}]}, {"op": "seq_cp", "src": 0, "dst": 1}],
}


def look(page: Page) -> None:
    """Look at something else than a fresh page shows."""
    press(page, "End")
    pick(page, "Colour by sequence", "position")
    with rerun(page):
        page.get_by_role("radio", name="Ask why").click()
    page.get_by_label("Cell", exact=True).fill("2")
    with rerun(page):
        page.keyboard.press("Enter")


@pytest.mark.parametrize("document", [None, OWN], ids=["shipped", "own"])
def test_the_address_shows_the_same_in_a_second_browser(new_page, server: Server, document) -> None:
    mine = visit(new_page(), server)
    if document:
        open_document(mine, document)
    look(mine)
    yours = new_page()
    open_page(yours, mine.url)
    assert step_of(yours) == step_of(mine)
    assert yours.evaluate(FIGURE, 0) == mine.evaluate(FIGURE, 0)
    assert yours.get_by_label("Cell", exact=True).input_value() == "2"
    expect(yours.get_by_role("button", name="Colour by position")).to_be_visible()
    expect(yours.get_by_role("button", name=document["title"] if document else FIRST.title).first).to_be_visible()


def test_the_address_follows_inside_a_step_too(new_page, server: Server) -> None:
    mine = visit(new_page(), server)
    press(mine, "i")
    press(mine, "ArrowRight")
    press(mine, "ArrowRight")
    yours = new_page()
    open_page(yours, mine.url)
    expect(yours.get_by_text("Inside the operation: 2 of")).to_be_visible()


def test_the_dialog_names_the_address(page: Page, server: Server) -> None:
    visit(page, server)
    press(page, "ArrowRight")
    click(page, "Share")
    expect(page.get_by_test_id("stCode")).to_contain_text("?scenario=chat-context-shift&step=1")


def test_the_browsers_way_back_is_followed(page: Page, server: Server) -> None:
    visit(page, server)
    press(page, "ArrowRight")
    press(page, "ArrowRight")
    with rerun(page):
        page.go_back()
    settle(page)
    assert step_of(page) == 1


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("scenario=nothing", "scenario is 'nothing'"),
        ("scenario=cache-full&step=x", "step is 'x'"),
        ("data=%3Cscript%3E", "data is"),
        ("who=me", "parameter is 'who'"),
    ],
)
def test_an_address_that_names_nothing_says_so(page: Page, server: Server, query: str, told: str) -> None:
    open_page(page, f"{server.url}?{query}")
    expect(page.get_by_role("alert")).to_contain_text(told)
    shown = load("cache-full") if "cache-full" in query else FIRST
    expect(page.get_by_role("button", name=shown.title).first).to_be_visible()


def saved(page: Page, name: str) -> Path:
    """The file that a button of the dialog saves."""
    with page.expect_download() as download:
        page.get_by_role("dialog").get_by_role("button", name=name).click()
    return download.value.path()


def test_files_hold_what_is_seen(page: Page, server: Server) -> None:
    visit(page, server)
    open_document(page, OWN)
    press(page, "End")
    click(page, "Share")
    assert Scenario.from_json(saved(page, "Scenario (JSON)").read_bytes()) == Scenario.from_json(json.dumps(OWN))
    cells = pd.read_csv(BytesIO(saved(page, "Cells").read_bytes()))
    assert cells["token"].head(3).tolist() == ["naïve", "&", "#"]
    assert cells["sequences"].head(3).tolist() == ["0-1"] * 3
    report = saved(page, "Report (Markdown)").read_text(encoding="utf-8")
    assert "seq_cp" in report
    events = pd.read_csv(BytesIO(saved(page, "Events").read_bytes()))
    assert "SeqCopied" in events["event"].tolist()


def test_the_script_prints_the_same_cells(page: Page, server: Server) -> None:
    open_page(page, f"{server.url}?scenario=fragment-defrag")
    click(page, "Share")
    script = saved(page, "Python script")
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    timeline = play(load("fragment-defrag"))
    [part] = timeline.cursor().seek(timeline.frame_of(timeline.n_steps - 1)).parts.values()
    assert str(part) in done.stdout
    assert done.stdout.rstrip().endswith("\n".join(cell_lines(part)))


@pytest.mark.parametrize("kind", ["PNG", "SVG"])
def test_a_picture_can_be_saved(page: Page, server: Server, kind: str) -> None:
    visit(page, server)
    press(page, "ArrowRight")
    if kind == "SVG":
        click(page, "Share")
        with rerun(page):
            page.get_by_role("radio", name="SVG").check(force=True)
        page.keyboard.press("Escape")
    page.get_by_test_id("stPlotlyChart").first.hover()
    with page.expect_download() as download:
        page.locator(".modebar-btn").first.click()
    data = download.value.path().read_bytes()
    if kind == "PNG":
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
    else:
        assert data.startswith(b"<svg ")
        assert data.endswith(b"</svg>")


def test_the_mask_is_the_one_that_is_shown(page: Page, server: Server) -> None:
    visit(page, server)
    ops = [{"op": "decode", "tokens": [{"n": 10}]}]
    open_document(page, {**OWN, "context": {"n_ubatch": 4}, "ops": ops})
    press(page, "End")
    page.get_by_label("Ubatch", exact=True).fill("1")
    with rerun(page):
        page.keyboard.press("Enter")
    click(page, "Share")
    mask = pd.read_csv(BytesIO(saved(page, "Mask").read_bytes()))
    assert mask["position"].tolist() == [0, 1, 2, 3]
    assert mask["visible"].tolist() == [1, 2, 3, 4]
