"""The forms that append an operation: what each does to the cells, and what happens to bad input."""

import pytest

from kvmodel.limits import MAX_OPS
from tests.page import SCENARIO, add, can_undo, open_app, press, tables, unescaped, words

STEPS = len(SCENARIO["ops"])


@pytest.fixture
def page():
    """Six tokens of sequence 0 in the cells 0 to 5."""
    return open_app(SCENARIO)


def cells(page, column="position", n=10):
    """A column of the table of cells after the form was sent; None for an empty cell."""
    assert [error.value for error in page.error] == []
    table = tables(page)[0].head(n)
    filled = table["position"].notna()
    return [value if full else None for value, full in zip(table[column].tolist(), filled, strict=True)]


def step_of(page):
    return page.slider[0].value


def test_an_added_operation_is_shown_at_once(page):
    add(page, "clear")
    assert step_of(page) == STEPS + 1
    assert "Cells after :green[clear()]" in words(page)
    assert can_undo(page)


def test_decode_words(page):
    add(page, "decode", text="the quick  fox")
    assert cells(page, "token") == ["one", "two", "three", "four", "five", "six", "the", "quick", "fox", None]


def test_decode_words_continue_the_sequence(page):
    add(page, "decode", text="the quick fox")
    assert cells(page) == [0, 1, 2, 3, 4, 5, 6, 7, 8, None]


def test_decode_a_number_of_tokens_of_several_sequences_at_a_position(page):
    add(page, "decode", n=2, seq="1, 3", pos=7)
    assert cells(page) == [0, 1, 2, 3, 4, 5, 7, 8, None, None]
    assert [str(owners) for owners in cells(page, "sequences")[5:8]] == ["0", "1, 3", "1, 3"]


def test_decode_in_small_ubatches(page):
    add(page, "decode", n=3, n_ubatch=1)
    assert "3 ubatches" in words(page)


def test_seq_rm(page):
    add(page, "seq_rm", seq=0, p0=1, p1=3)
    assert cells(page) == [0, None, None, 3, 4, 5, None, None, None, None]


def test_seq_rm_of_every_sequence(page):
    add(page, "seq_rm")
    assert cells(page) == [None] * 10


def test_seq_cp(page):
    add(page, "seq_cp", src=0, dst=2, p0=4)
    assert [str(owners) for owners in cells(page, "sequences")[:6]] == ["0", "0", "0", "0", "0, 2", "0, 2"]


def test_seq_keep(page):
    add(page, "seq_keep", seq=1)
    assert cells(page) == [None] * 10


def test_seq_add_and_update(page):
    add(page, "seq_add", seq=0, p0=4, shift=-2)
    assert cells(page) == [0, 1, 2, 3, 2, 3, None, None, None, None]
    assert cells(page, "shift")[:6] == [0, 0, 0, 0, -2, -2]
    add(page, "update")
    assert cells(page, "shift")[:6] == [0] * 6


def test_seq_div(page):
    add(page, "seq_div", seq=0, p1=4, d=2)
    assert cells(page) == [0, 0, 1, 1, 4, 5, None, None, None, None]


def test_defrag_waits_for_the_next_update(page):
    add(page, "seq_rm", seq=0, p0=0, p1=2)
    add(page, "defrag")
    holes = [None, None, 2, 3, 4, 5, None, None, None, None]
    assert cells(page) == holes
    add(page, "update")
    moved = cells(page)
    assert moved[4:] == [None] * 6
    assert sorted(moved[:4]) == [2, 3, 4, 5]


def test_update_with_a_defrag(page):
    add(page, "seq_rm", seq=0, p0=0, p1=2)
    add(page, "update", optimize=True)
    assert sorted(cells(page)[:4]) == [2, 3, 4, 5]


def test_clear(page):
    add(page, "clear", data=False)
    assert cells(page) == [None] * 10


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("decode", {"seq": "0, x"}, "seq is '0, x'; allowed: whole numbers"),
        ("decode", {"seq": ""}, "seq is ''; allowed"),
        ("decode", {"n": 0}, "n is 0"),
        ("decode", {"n": 65_537}, "n is 65537"),
        ("decode", {"n": 3000}, "n_batch = 2048 at most"),
        ("decode", {"n": 1, "pos": -3}, "pos is -3"),
        ("decode", {"n": 1, "n_ubatch": 0}, "n_ubatch is 0"),
        ("decode", {"text": "w" * 65}, "at most 64 characters"),
        ("seq_rm", {"seq": 64}, "seq is 64"),
        ("seq_rm", {"p0": 2**31}, "p0 is 2147483648"),
        ("seq_cp", {"dst": 99}, "dst is 99"),
        ("seq_keep", {"seq": -1}, "seq is -1"),
        ("seq_div", {"d": 0}, "d is 0"),
        ("update", {"thold": 7.0}, "thold is 7.0"),
        ("update", {"n_max_nodes": -1}, "n_max_nodes is -1"),
    ],
)
def test_bad_input_is_told_and_nothing_is_lost(page, name, values, told):
    add(page, name, **values)
    [error] = page.error
    assert told in unescaped(error.value)
    assert "Traceback" not in error.value
    kinds = (page.number_input, page.text_input)
    kept = {widget.key: widget.value for kind in kinds for widget in kind}
    assert {field: kept[f"form.{name}.{field}"] for field in values} == values
    assert page.slider[0].max == STEPS
    assert page.selectbox(key="form").value == name


def test_after_bad_input_the_form_works(page):
    add(page, "seq_div", d=0)
    add(page, "seq_div", d=3)
    assert cells(page)[:6] == [0, 0, 0, 1, 1, 1]


def test_what_a_form_holds_outlasts_a_look_at_another(page):
    add(page, "decode", text="a b c")
    page.selectbox(key="form").select("clear").run()
    page.selectbox(key="form").select("decode").run()
    assert page.text_input(key="form.decode.text").value == "a b c"


def test_undo_takes_back_one_edit_after_the_other(page):
    add(page, "seq_rm", seq=0, p0=3)
    add(page, "clear")
    assert cells(page) == [None] * 10
    press(page, "Undo")
    assert cells(page) == [0, 1, 2] + [None] * 7
    press(page, "Undo")
    assert cells(page)[:6] == [0, 1, 2, 3, 4, 5]
    assert not can_undo(page)


def test_a_batch_that_is_refused_is_a_step_with_its_reason(page):
    add(page, "decode", n=1, pos=9)
    assert step_of(page) == STEPS + 1
    [error] = page.error
    assert "Start sequence 0 at position 6" in error.value


def test_a_scenario_has_a_longest_length():
    page = open_app({**SCENARIO, "ops": [{"op": "defrag"}] * MAX_OPS})
    add(page, "clear")
    [error] = page.error
    assert f"{MAX_OPS} at most" in error.value


def test_nothing_is_added_behind_the_end_of_a_timeline():
    page = open_app({**SCENARIO, "ops": [{"op": "decode", "tokens": [{"n": 3000}]}]})
    add(page, "clear")
    [error] = page.error
    assert "step 1 ended the timeline" in error.value
    assert page.slider[0].max == 1


def test_digits_of_other_scripts_are_no_sequence() -> None:
    page = open_app(SCENARIO)
    page.text_input(key="form.decode.seq").set_value("\u0663")
    page = press(page, "Add as step")
    assert "whole numbers" in unescaped(page.error[0].value)
