"""One screen holds the stepper bar, the map, what happened and the mask; nothing sticks out of a narrow window."""

from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from kvmodel.permalink import View, to_params
from kvmodel.scenario import Scenario
from tests.browser.helpers import open_page
from tests.browser.server import Server

ALL = range(64)


def each(n: int, seqs: range) -> dict[str, Any]:
    """A batch in which every sequence has `n` tokens."""
    return {"op": "decode", "tokens": [{"n": n, "seq": [seq]} for seq in seqs]}


def cache(kind: str, kv_size: int, n_seq_max: int = 64, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "kv_size": kv_size, "n_seq_max": n_seq_max, **more}


SHARED = {"op": "decode", "tokens": [{"n": 100, "seq": [*ALL]}]}
COPIES = [{"op": "seq_cp", "src": seq, "dst": seq + 32} for seq in range(32)]
CROWDED = {
    "one sequence": (cache("unified", 1024, 1), [each(256, range(1)), each(256, range(1))]),
    "64 sequences": (cache("unified", 1024), [each(4, ALL), each(4, ALL)]),
    "64 in 64 cells": (cache("unified", 64), [each(1, ALL)]),
    "64 times 16 cells": (cache("unified", 1024), [each(8, ALL), each(8, ALL)]),
    "64 share a prompt": (cache("unified", 1024), [SHARED, each(4, ALL)]),
    "a pair": (cache("iswa", 1024, n_swa=8, n_layer=4), [each(4, ALL), each(4, ALL)]),
    "a pair that shares": (cache("iswa", 1024, n_swa=8, n_layer=4), [SHARED, each(4, ALL)]),
    "legacy": (cache("legacy", 1024), [each(4, ALL), each(4, ALL)]),
    "64 states": (cache("recurrent", 64), [each(2, ALL), each(2, ALL)]),
    "64 of 1,024 states": (cache("memory_recurrent", 1024), [each(2, ALL), each(2, ALL)]),
    "states that were copied": (cache("memory_recurrent", 64), [each(2, range(32)), *COPIES, each(1, ALL)]),
}
COLLISIONS = """
() => {
  const boxes = [...document.querySelectorAll('[data-testid=stPlotlyChart] svg text')]
    .filter(node => node.textContent.trim() && !node.closest('.hoverlayer'))
    .map(node => ({said: node.textContent, box: node.getBoundingClientRect()}))
    .filter(({box}) => box.width && box.height);
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
  return boxes.flatMap((one, i) =>
    boxes.slice(i + 1).filter(other => meet(one.box, other.box)).map(other => `${one.said} | ${other.said}`));
}
"""
OUTSIDE = """
() => [...document.querySelectorAll('[data-testid=stPlotlyChart]')].flatMap(chart => {
  const frame = chart.getBoundingClientRect();
  return [...chart.querySelectorAll('svg text')]
    .filter(node => node.textContent.trim())
    .filter(node => {
      const box = node.getBoundingClientRect();
      return box.left < frame.left - 1 || box.right > frame.right + 1
        || box.top < frame.top - 3 || box.bottom > frame.bottom + 3;
    })
    .map(node => node.textContent);
})
"""
STICKING_OUT = """
() => [...document.querySelectorAll('[data-testid=stMain], [data-testid=stMain] *')]
  .filter(node => node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).overflowX !== 'visible'
    && getComputedStyle(node).overflowX !== 'hidden')
  .map(node => node.outerHTML.slice(0, 120))
"""


def visit_end(page: Page, server: Server, name: str, **view: Any) -> None:
    """Open a crowded scenario at its last step."""
    config, ops = CROWDED[name]
    scenario = Scenario.model_validate({"title": name, "cache": config, "ops": ops})
    open_page(page, f"{server.url}?{urlencode(to_params(scenario, View(step=len(ops), **view)))}")
    expect(page.get_by_role("slider")).to_have_value(str(len(ops)))


@pytest.mark.parametrize("name", CROWDED)
def test_one_screen_holds_all_of_a_step_and_nothing_sticks_out_of_a_narrow_window(page, server, name):
    visit_end(page, server, name, cell=0)
    for words in ("Cells after", "What happened", "K and V take"):
        expect(page.get_by_text(words).first).to_be_in_viewport(ratio=1)
    states = "states" in name
    last = page.get_by_text("A recurrent model looks at no cells" if states else "may look at").first
    expect(last).to_be_in_viewport(ratio=1)
    charts = page.get_by_test_id("stPlotlyChart").all()
    assert len(charts) == (2 if states else 4 if "pair" in name else 3)
    for chart in charts:
        expect(chart).to_be_in_viewport(ratio=1)
    assert page.get_by_test_id("stMain").evaluate("node => node.scrollHeight <= node.clientHeight")
    assert page.evaluate(COLLISIONS) == []
    assert page.evaluate(OUTSIDE) == []
    page.set_viewport_size({"width": 820, "height": 900})
    open_page(page, page.url)
    assert page.evaluate(STICKING_OUT) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(OUTSIDE) == []
