"""The Stepper on every kind of cache: what its charts and words hold, against values worked out by hand."""

import base64
import json
from typing import Any

import numpy as np
import pytest

from kvmodel.library import shipped
from tests.page import charts, codes, open_app, press, words

PAIR = {
    "title": "A pair",
    "cache": {"kind": "iswa", "kv_size": 32, "n_pad": 1, "n_swa": 4, "n_layer": 2},
    "context": {"n_ubatch": 4},
    "ops": [{"op": "decode", "tokens": [{"n": 12}]}],
}
"""The full half holds 32 cells, the window half 4 + 4; 12 tokens fill the one to 12 cells and the other twice."""

OLDER = {
    "title": "The older cache",
    "cache": {"kind": "legacy", "kv_size": 32},
    "ops": [{"op": "decode", "tokens": [{"n": 6}]}, {"op": "seq_add", "seq": 0, "p0": 3, "shift": -1}],
}
STATES = {
    "title": "States",
    "cache": {"kind": "recurrent", "kv_size": 4, "n_seq_max": 4},
    "ops": [{"op": "decode", "tokens": [{"n": 5}]}, {"op": "seq_cp", "src": 0, "dst": 2}],
}


def trace(figure: dict[str, Any], name: str) -> dict[str, Any]:
    """The trace of a figure with that name."""
    return next(one for one in figure["data"] if one.get("name") == name)


def n_filled(figure: dict[str, Any], cells: int) -> int:
    """Cells of a map that are not empty; every cell has as many pixels as the others."""
    z = codes(figure["data"][0])
    pixels = z.size // cells
    return int(np.count_nonzero(z)) // pixels


def test_a_pair_shows_two_maps_side_by_side() -> None:
    page = press(open_app(PAIR), "Last")
    assert "Full half (base): 32 cells" in words(page)
    assert "Window half (swa): 8 cells" in words(page)
    full, window = charts(page)[:2]
    assert (n_filled(full, 32), n_filled(window, 8)) == (12, 8)


def test_the_half_is_chosen_for_mask_and_memory() -> None:
    page = press(open_app(PAIR), "Last")
    assert "in the window half (swa)" in words(page)
    assert page.metric[0].label == "used of 8"


def test_the_older_cache_shows_its_deltas() -> None:
    page = press(open_app(OLDER), "Last")
    assert "legacy" in words(page)
    assert page.metric[0].value == "6"


def test_states_show_tails_and_no_mask() -> None:
    page = press(open_app(STATES), "Last")
    assert "No mask with states" in words(page)
    tails = trace(charts(page)[0], "tails")["x"]
    ends = np.frombuffer(base64.b64decode(tails["bdata"]), tails["dtype"])
    assert len(ends) == 2
    assert np.abs(ends).max() < 0.5
    assert page.metric[0].label == "used of 4"


@pytest.mark.parametrize("name", [name for name, one in shipped().items() if one.cache.kind != "unified"])
def test_every_shipped_scenario_steps_through(name: str) -> None:
    scenario = shipped()[name]
    page = open_app(json.loads(scenario.to_json()))
    for _ in scenario.ops:
        page = press(page, "Next")
        assert not page.exception
    assert charts(page)
