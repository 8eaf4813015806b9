"""How long a step takes in the browser: the app with a cache against a bare fragment with one heatmap of that size.

Run as `python -m tests.benchmarks.page`, or with other numbers of cells behind it, such as 1024 and 131072. Both pages
step in turns in one run; a step lasts from the press of the right arrow key until the changed heatmap is painted, and
until all charts of the page are.
"""

import argparse
import json
import shutil
import sys
from statistics import median

from playwright.sync_api import Browser, Page, sync_playwright

from kvmodel.ops import Decode, TokenRun
from kvmodel.scenario import CacheConfig, Scenario
from tests.browser.conftest import CHROMIUM_FLAGS, CHROMIUM_NAMES, VIEWPORT
from tests.browser.helpers import TIMEOUT_MS, open_page, settle, watch
from tests.browser.server import Server, serve
from tests.browser.stepping import open_document
from tests.sources import ROOT

CELLS = 4096
STEPS = 15
WARM_UP = 3
MOST_TOKENS = 2048
"""Tokens of a step at most: a batch of the app's default size."""

GOAL = 1.5

Both = tuple[dict[str, float], dict[str, float]]
"""Times of the app and of the bare page."""

# The map has a key of its own; on the bare page it is the only chart. Its heatmap is drawn as an image, so a changed
# image is a changed map; the frame that finds it paints it. Charts are all drawn when none changed its pictures for
# 250 ms.
MEASURE = """
() => {
  const own = '[class*="st-key-map"] ', image = '.js-plotly-plot .heatmaplayer image';
  const map = () => (document.querySelector(own + image) ?? document.querySelector(image))?.href.baseVal;
  const before = map();
  window.step = new Promise(resolve => addEventListener('keydown', () => {
    const start = performance.now();
    let mapped = 0, last = 0;
    const watcher = new MutationObserver(changes => {
      if (changes.some(({target}) => target.closest?.('.js-plotly-plot, [data-testid=stPlotlyChart]'))) {
        last = performance.now();
      }
    });
    watcher.observe(document, {subtree: true, childList: true, attributes: true});
    const look = () => {
      if (!mapped && map() && map() !== before) mapped = performance.now();
      if (mapped && performance.now() - last > 250) {
        watcher.disconnect();
        resolve({map: mapped - start, all: Math.max(last, mapped) - start});
      } else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }, {once: true, capture: true}));
}
"""


def scenario(cells: int) -> Scenario:
    """A cache that four sequences fill in batches."""
    n = min(cells // 32, MOST_TOKENS)
    ops = tuple(Decode(tokens=(TokenRun(n=n, pos=n * (i // 4), seq=(i % 4,)),)) for i in range(WARM_UP + STEPS))
    return Scenario(title=f"{cells:,} cells", cache=CacheConfig(kv_size=cells, n_seq_max=4), ops=ops)


def step(page: Page) -> dict[str, float]:
    """Press the right arrow key; milliseconds until the map and until everything is drawn."""
    page.bring_to_front()
    settle(page)
    page.evaluate(MEASURE)
    page.keyboard.press("ArrowRight")
    times: dict[str, float] = page.evaluate("step")
    return times


def main(sizes: list[int]) -> int:
    """Measure, print, and tell by the exit code whether the goal holds for every size."""
    executable = next(path for name in CHROMIUM_NAMES if (path := shutil.which(name)))
    with (
        serve(ROOT / "app" / "main.py") as app_server,
        serve(ROOT / "tests" / "benchmarks" / "bare_fragment.py") as bare_server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_FLAGS)
        failed = [not report(cells, measure(browser, app_server, bare_server, cells)) for cells in sizes]
        browser.close()
    return int(any(failed))


def measure(browser: Browser, app_server: Server, bare_server: Server, cells: int) -> list[Both]:
    """Times of every step after the first ones, of the app and of the bare page."""
    app, bare = visit(browser, app_server.url), visit(browser, f"{bare_server.url}/?cells={cells}")
    open_document(app, json.loads(scenario(cells).to_json()))
    times = [(step(app), step(bare)) for _ in range(WARM_UP + STEPS)][WARM_UP:]
    for page in (app, bare):
        page.context.close()
    return times


def visit(browser: Browser, address: str) -> Page:
    """A page of a visitor's own."""
    page = browser.new_context(viewport=VIEWPORT).new_page()
    page.set_default_timeout(TIMEOUT_MS)
    watch(page)
    open_page(page, address)
    return page


def report(cells: int, times: list[Both]) -> bool:
    """Print medians in milliseconds and their ratios; whether the goal holds."""
    print(f"{cells:,} cells, medians of {len(times)} steps")
    ratios = []
    for what, words in (("map", "the changed map is drawn"), ("all", "all charts are drawn")):
        app, bare = (median(both[i][what] for both in times) for i in (0, 1))
        ratios.append(app / bare)
        print(f"until {words}: app {app:.0f} ms, bare fragment {bare:.0f} ms, ratio {app / bare:.2f}")
    print(f"goal: at most {GOAL} until the changed map is drawn")
    return ratios[0] <= GOAL


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Time a step of the app against a bare fragment.")
    parser.add_argument("cells", nargs="*", type=int, default=[CELLS], help="sizes of the cache")
    sys.exit(main(parser.parse_args().cells))
