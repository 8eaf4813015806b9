"""Looking at a Streamlit page from outside: when it is at rest, and what its charts hold."""

from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from playwright.sync_api import Page

TIMEOUT_MS = 30_000
QUIET_MS = 100

# Streamlit's page does not say that it waits for a run it asked for, so the messages are counted on their way: field 11
# of BackMsg asks for a run; field 4 of ForwardMsg tells the beginning of one and field 6 its end, where status 2 means
# that another run follows at once. A run that began before the last request does not answer it.
WATCH_RUNS = """
(() => {
  const runs = window.streamlitRuns = {ended: 0, asked: false, waiting: false, changed: 0};

  const fields = function* (bytes) {
    let at = 0;
    const varint = () => {
      let value = 0, factor = 1, byte;
      do { byte = bytes[at++]; value += (byte & 127) * factor; factor *= 128; } while (byte & 128);
      return value;
    };
    while (at < bytes.length) {
      const key = varint(), kind = key % 8, value = varint();
      yield [Math.floor(key / 8), value];
      if (kind === 2) at += value;
    }
  };
  const field = (data, wanted) => {
    for (const [number, value] of fields(new Uint8Array(data))) if (number === wanted) return value;
  };
  const ask = () => { runs.asked = runs.waiting = true; };
  const begin = () => { runs.asked = false; };
  const end = () => {
    runs.ended += 1;
    if (!runs.asked) runs.waiting = false;
  };

  const Native = window.WebSocket;
  window.WebSocket = class extends Native {
    constructor(...parts) {
      super(...parts);
      this.addEventListener('message', ({data}) => {
        if (!(data instanceof ArrayBuffer)) return;
        if (field(data, 4) !== undefined) begin();
        const status = field(data, 6);
        if (status !== undefined && status !== 2) end();
      });
    }
    send(data) {
      if (typeof data !== 'string' && field(data, 11) !== undefined) ask();
      super.send(data);
    }
  };
  new MutationObserver(() => { runs.changed = performance.now(); })
    .observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
})();
"""

AT_REST = """
(quiet) => {
  const runs = window.streamlitRuns;
  const app = document.querySelector('[data-testid=stApp]');
  const charts = [...document.querySelectorAll('[data-testid=stPlotlyChart]')];
  return runs.ended > 0 && !runs.waiting
    && app?.dataset.testScriptState === 'notRunning'
    && !document.querySelector('[data-testid=stSkeleton], [data-stale=true]')
    && charts.every(chart => chart.querySelector('.js-plotly-plot .main-svg'))
    && performance.now() - runs.changed > quiet;
}
"""

FIGURE = """
(index) => {
  const plots = [...document.querySelectorAll('.js-plotly-plot')];
  if (index >= plots.length) throw new Error(`chart ${index} of ${plots.length}`);
  const plain = (name, value) => {
    if (name === '_inputArray') return undefined;
    return ArrayBuffer.isView(value) ? Array.from(value) : value;
  };
  return JSON.parse(JSON.stringify({data: plots[index].data, layout: plots[index].layout}, plain));
}
"""


def watch(page: Page) -> None:
    """Make a new page count its script runs; before it opens an address."""
    page.add_init_script(WATCH_RUNS)


def settle(page: Page) -> None:
    """Wait until no run is under way or asked for, every chart is drawn and the page has stopped changing."""
    page.wait_for_function(AT_REST, arg=QUIET_MS, timeout=TIMEOUT_MS)


@contextmanager
def rerun(page: Page) -> Iterator[None]:
    """Wait, after the block's action, for the run that it starts and for the page to be at rest."""
    ended = page.evaluate("streamlitRuns.ended")
    yield
    page.wait_for_function("ended => streamlitRuns.ended > ended", arg=ended, timeout=TIMEOUT_MS)
    settle(page)


def open_page(page: Page, url: str) -> None:
    """Go to an address and wait for its first run."""
    page.goto(url)
    settle(page)


def figure_json(page: Page, index: int = 0) -> dict[str, Any]:
    """The `data` and `layout` of the index-th chart as it is drawn, arrays sent in base64 decoded."""
    figure: dict[str, Any] = decoded(page.evaluate(FIGURE, index))
    return figure


def decoded(part: Any) -> Any:
    """A part of a figure with each of plotly's packed arrays as a NumPy array."""
    if isinstance(part, list):
        return [decoded(item) for item in part]
    if not isinstance(part, dict):
        return part
    if "bdata" not in part:
        return {name: decoded(item) for name, item in part.items()}
    flat = np.frombuffer(b64decode(part["bdata"]), np.dtype(part["dtype"]).newbyteorder("<"))
    shape = part.get("shape", flat.size)
    return flat.reshape([int(n) for n in str(shape).split(",")])
