"""The Memory page in a real browser: a new user's first question, a header, a log, both themes, a narrow window."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.helpers import figure_json, open_page, rerun
from tests.browser.server import Server
from tests.gguf_files import LLAMA, write_gguf
from tests.sources import ROOT

SLIDE = (ROOT / "tests/data/live/0.3.11/swa-slide.log").read_text(encoding="utf-8")


def open_memory(page: Page, server: Server) -> None:
    open_page(page, f"{server.url}/memory")


def choose(page: Page, label: str, typed: str) -> None:
    """Type into a selectbox and take the first match."""
    page.get_by_role("combobox", name=label).click()
    page.keyboard.type(typed)
    with rerun(page):
        page.keyboard.press("Enter")


def fill(page: Page, label: str, value: str) -> None:
    with rerun(page):
        page.get_by_role("spinbutton", name=label).fill(value)
        page.keyboard.press("Enter")


def look_at(page: Page, name: str) -> None:
    with rerun(page):
        page.get_by_role("radio", name=name, exact=True).click()


def metric(page: Page, label: str) -> str:
    return page.get_by_test_id("stMetric").filter(has_text=label).get_by_test_id("stMetricValue").inner_text()


def ask(page: Page) -> None:
    choose(page, "Known model", "gemma 3 12b")
    fill(page, "Context (n_ctx)", "32768")
    fill(page, "Slots (n_seq_max)", "4")


def test_three_inputs_tell_whether_it_fits_and_one_more_what_quantised_k_saves(page: Page, server: Server) -> None:
    open_memory(page, server)
    ask(page)
    answer = page.get_by_text("Yes, the caches fit: they take 3.41 GiB of 8.00 GiB, 4.59 GiB are left")
    expect(answer).to_be_in_viewport()
    told = {note["y"]: note["text"] for note in figure_json(page)["layout"]["annotations"] if note.get("yref") == "y"}
    assert told["K in q8_0"] == "saves 817.50 MiB"
    expect(page.locator(".js-plotly-plot").first).to_be_in_viewport(ratio=1)
    choose(page, "K type (type_k)", "q8_0")
    assert metric(page, "all caches") == "2,670.50 MiB"


def test_an_uploaded_header_is_planned(page: Page, server: Server, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "mine.gguf", keys=LLAMA | {"block_count": 3}, name="A model of mine", tokens=1000)
    open_memory(page, server)
    look_at(page, "GGUF file")
    with rerun(page):
        page.locator("input[type=file]").set_input_files(path)
    expect(page.get_by_text("A model of mine: llama, 3 layers, 2 KV heads of 16")).to_be_visible()
    assert metric(page, "all caches") == f"{3 * 8192 * 2 * 2 * 16 * 2 / 2**20:,.2f} MiB"


def test_a_pasted_log_is_computed_again(page: Page, server: Server) -> None:
    open_memory(page, server)
    look_at(page, "Reconcile a log")
    with rerun(page):
        page.get_by_label("What llama.cpp printed when it started").fill(SLIDE)
        page.keyboard.press("Control+Enter")
    printed = SLIDE.count("seqs), K (")
    expect(page.get_by_text(f"{printed} of {printed} printed sizes as computed")).to_be_visible()


@pytest.mark.parametrize("width", [1400, 820])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_page(new_page: Callable[..., Page], server: Server, width: int, scheme: str) -> None:
    page = new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    open_memory(page, server)
    main = page.get_by_test_id("stMain")
    for name in ("Plan", "Compare", "Reconcile a log"):
        if name != "Plan":
            look_at(page, name)
        assert main.evaluate("part => part.scrollWidth <= part.clientWidth"), name
    look_at(page, "Plan")
    assert page.locator(".js-plotly-plot").count() == 3
    for box in (chart.bounding_box() for chart in page.locator(".js-plotly-plot").all()):
        assert box
        assert box["width"] > 450


@pytest.mark.parametrize("width", [1400, 820])
def test_the_answer_is_in_sight_without_scrolling(new_page: Callable[..., Page], server: Server, width: int) -> None:
    page = new_page(viewport={"width": width, "height": 900})
    open_memory(page, server)
    ask(page)
    expect(page.get_by_text("Yes, the caches fit: they take 3.41 GiB of 8.00 GiB")).to_be_in_viewport(ratio=1)
    for name in ("Context (n_ctx)", "Slots (n_seq_max)", "Memory (GiB)", "n_batch", "n_ubatch"):
        expect(page.get_by_role("spinbutton", name=name, exact=True)).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("width", [1400, 820])
def test_a_long_name_stays_in_its_column(
    new_page: Callable[..., Page], server: Server, tmp_path: Path, width: int
) -> None:
    path = write_gguf(tmp_path / "mine.gguf", name="W" * 300)
    page = new_page(viewport={"width": width, "height": 900})
    open_memory(page, server)
    look_at(page, "GGUF file")
    with rerun(page):
        page.locator("input[type=file]").set_input_files(path)
    told = page.get_by_text(f"{'W' * 77}...: llama, 2 layers")
    expect(told).to_be_visible()
    box, column = told.bounding_box(), page.get_by_test_id("stFileUploader").bounding_box()
    assert box
    assert column
    assert box["x"] + box["width"] <= column["x"] + column["width"] + 1


def test_a_path_given_after_a_file_is_shown(page: Page, server: Server, tmp_path: Path) -> None:
    first = write_gguf(tmp_path / "first.gguf", name="The first")
    second = write_gguf(tmp_path / "second.gguf", name="The second", keys=LLAMA | {"block_count": 3})
    third = write_gguf(tmp_path / "third.gguf", name="The third")
    open_memory(page, server)
    look_at(page, "GGUF file")
    with rerun(page):
        page.locator("input[type=file]").set_input_files(first)
    with rerun(page):
        page.get_by_label("Or path of a GGUF file").fill(str(second))
        page.keyboard.press("Enter")
    expect(page.get_by_text("The second: llama, 3 layers")).to_be_visible()
    expect(page.get_by_text("the uploaded file first.gguf is left aside")).to_be_visible()
    with rerun(page):
        page.locator("input[type=file]").set_input_files(third)
    expect(page.get_by_text("The third: llama, 2 layers")).to_be_visible()
    expect(page.get_by_text("the file at the path is left aside")).to_be_visible()
