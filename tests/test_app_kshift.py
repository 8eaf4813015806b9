"""The K-shift page: the key of a waiting cell, a shift of one's own, the quirks, refusals."""

import math

import pytest
from streamlit.testing.v1 import AppTest

from tests.page import charts, open_app, press, words

SCENARIO = {
    "title": "A shift waits",
    "cache": {"kv_size": 32, "n_embd_head_k": 8, "n_head_kv": 2, "type_k": "f32"},
    "ops": [
        {"op": "decode", "tokens": [{"n": 8}]},
        {"op": "seq_add", "seq": 0, "p0": 4, "shift": -3},
        {"op": "seq_div", "seq": 0, "p0": 0, "p1": 4, "d": 4},
    ],
}


def page_at(step: int, scenario: dict = SCENARIO) -> AppTest:
    page = open_app(scenario)
    for _ in range(step):
        page = press(page, "Next")
    return page.switch_page("views/kshift.py").run()


def metric(page: AppTest, label: str) -> str:
    return next(one.value for one in page.metric if one.label == label)


def setting(page: AppTest, name: str):
    kinds = (page.number_input, page.selectbox, page.checkbox)
    return next(one for kind in kinds for one in kind if one.key.startswith(f"kshift.{name}"))


def test_the_first_waiting_cell_is_shown() -> None:
    page = page_at(2)
    assert not page.exception
    assert "Cell 4 waits with a shift of -3" in words(page)
    assert metric(page, "position") == "4 to 1"
    assert float(metric(page, "largest difference")) < 1e-5
    assert metric(page, "length, after / fresh") == "1.000"


def test_arrows_and_heatmap_hold_four_pairs() -> None:
    arrows, heatmap = charts(page_at(2))
    assert [trace["name"] for trace in heatmap["data"] if trace["type"] == "heatmap"][:4] == [
        "before", "after", "fresh", "difference",
    ]  # fmt: skip
    assert {trace.get("name") for trace in arrows["data"]} >= {"before", "after", "fresh"}


def test_a_division_turns_the_wrong_way() -> None:
    page = setting(page_at(3), "cell").set_value(3).run()
    assert "Cell 3 waits with a shift of +3" in words(page)
    assert metric(page, "position") == "3 to 0"
    assert metric(page, "rotated by") == "+3 positions"
    assert float(metric(page, "largest difference")) > 0.1
    assert "wrong way" in words(page)


def test_without_a_waiting_cell_a_shift_is_typed() -> None:
    page = page_at(1)
    assert "has no pending shift" in words(page)
    page = setting(page, "pos").set_value(100).run()
    page = setting(page, "shift").set_value(-60).run()
    assert metric(page, "position") == "100 to 40"
    page = setting(page, "call").set_value("seq_div").run()
    assert metric(page, "rotated by") == "+60 positions"


def test_yarn_grows_the_key_unless_corrected() -> None:
    page = setting(page_at(2), "yarn").check().run()
    page = setting(page, "scale").set_value(0.25).run()
    grown = float(metric(page, "length, after / fresh"))
    assert grown == pytest.approx(1 + 0.1 * math.log(4), abs=1e-3)
    page = setting(page, "magnitude").set_value("corrected").run()
    assert metric(page, "length, after / fresh") == "1.000"


def test_a_position_below_0_is_refused_beside_the_inputs() -> None:
    page = setting(page_at(1), "shift").set_value(-5000).run()
    assert not page.exception
    assert "new_pos" in page.error[0].value


def test_a_type_that_does_not_fit_is_refused() -> None:
    page = setting(page_at(2), "type_k").set_value("q8_0").run()
    assert not page.exception
    assert "32" in page.error[0].value


def test_tables_stand_in_for_the_pictures() -> None:
    page = press(page_at(2), "Show tables")
    assert len(page.dataframe[0].value) == 4
    assert not charts(page)


def test_states_have_no_keys() -> None:
    states = {"title": "States", "cache": {"kind": "recurrent", "kv_size": 4}, "ops": []}
    page = page_at(0, states)
    assert not page.exception
    assert "recurrent cache" in page.info[0].value


def test_many_shifts_the_wrong_way_are_told() -> None:
    page = setting(page_at(1), "shift").set_value(-3).run()
    page = setting(page, "call").set_value("seq_div").run()
    page = setting(page, "times").set_value(10).run()
    assert "wrong way" in words(page)


def test_a_head_without_a_pair_is_refused_beside_the_inputs() -> None:
    page = page_at(2, SCENARIO | {"cache": {"kv_size": 32, "n_embd_head_k": 1, "type_k": "f32"}})
    assert not page.exception
