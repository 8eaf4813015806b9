"""The Stepper page without a browser: press, type, and read what it shows."""

import base64
import json
import re
from typing import Any

import numpy as np
from pandas import DataFrame
from streamlit.testing.v1 import AppTest

from tests.sources import ROOT

SCENARIO = {
    "version": 1,
    "title": "Six tokens",
    "cache": {"kv_size": 32, "n_seq_max": 4},
    "context": {"n_ubatch": 4},
    "ops": [{"op": "decode", "tokens": [{"text": ["one", "two", "three", "four", "five", "six"]}]}],
}


def open_app(document: dict[str, Any] | None = None) -> AppTest:
    """The app as it starts, or with a scenario pasted into it."""
    page = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=60).run()
    return paste(page, json.dumps(document)) if document else page


def paste(page: AppTest, text: str) -> AppTest:
    page.text_area(key="open_text").input(text)
    return press(page, "Open this scenario")


def press(page: AppTest, label: str) -> AppTest:
    """Press the button with that label, or whose label begins so."""
    [button] = [button for button in page.button if button.label.startswith(label)]
    assert not button.disabled, f"{label} is disabled"
    return button.click().run()


def pick(page: AppTest, key: str, option: str) -> AppTest:
    """Choose from a menu."""
    return page.menu_button(key=key).click(option).run()


def can_undo(page: AppTest) -> bool:
    """Whether there is an edit to take back."""
    [undo] = [button for button in page.button if button.label == "Undo"]
    return not undo.disabled


def title(page: AppTest) -> str:
    """The title of the scenario, as it is read."""
    return unescaped(page.menu_button(key="picked").label)


def unescaped(markdown: str) -> str:
    return re.sub(r"\\(.)", r"\1", markdown)


def add(page: AppTest, name: str, **values: Any) -> AppTest:
    """Fill in the form of one operation and send it."""
    page.selectbox(key="form").select(name).run()
    for field, value in values.items():
        key = f"form.{name}.{field}"
        [widget] = [
            one for kind in (page.number_input, page.text_input, page.checkbox) for one in kind if one.key == key
        ]
        widget.set_value(value)
    return press(page, "Add as step")


def words(page: AppTest) -> str:
    """All that stands on the page as text."""
    told = [one.value for kind in (page.markdown, page.text, page.caption, page.error) for one in kind]
    return "\n".join(map(str, [*told, *(button.label for button in page.button)]))


def charts(page: AppTest) -> list[dict[str, Any]]:
    """The figures that the page sends to the browser."""
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]


def codes(trace: dict[str, Any]) -> Any:
    """z of a heatmap as an array."""
    z = trace["z"]
    shape = [int(n) for n in z["shape"].split(",")]
    return np.frombuffer(base64.b64decode(z["bdata"]), np.dtype(z["dtype"])).reshape(shape)


def colours(page: AppTest, cells: int) -> list[set[str]]:
    """The colours that each cell has in the map."""
    [trace] = [trace for trace in charts(page)[0]["data"] if trace.get("name") == "colours"]
    pixels, wide, high = codes(trace), round(1 / trace["dx"]), round(1 / trace["dy"])
    scale = [colour for _, colour in trace["colorscale"][::2]]
    blocks = pixels.reshape(pixels.shape[0] // high, high, pixels.shape[1] // wide, wide).swapaxes(1, 2)
    return [{scale[code] for code in block.ravel()} for block in blocks.reshape(-1, high * wide)[:cells]]


def tables(page: AppTest) -> list[DataFrame]:
    """The tables in the place of the pictures: cells, mask if there is one, usage."""
    if charts(page):
        press(page, "Show tables")
    return [table.value for table in page.dataframe]
