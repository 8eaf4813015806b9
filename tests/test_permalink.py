"""Links: a scenario and a view survive them, and whatever else stands in one is refused in one sentence."""

import base64
import json
import tracemalloc
import zlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.library import IDS, load
from kvmodel.limits import MAX_LINK_BYTES, MAX_LINK_CHARS, MAX_SCENARIO_BYTES
from kvmodel.ops import Clear, Decode, Defrag, TokenRun
from kvmodel.permalink import View, from_params, other_from, to_params
from kvmodel.scenario import Scenario, ScenarioError
from tests.random_scenarios import any_scenario

SMALL = Scenario.model_validate({"title": "t", "cache": {"kv_size": 32}})
DOCUMENT = {"version": 1, "title": "t", "cache": {"kv_size": 32}}

views = st.builds(
    View,
    step=st.integers(0, 10_000),
    beat=st.integers(0, 10_000_000),
    cell=st.none() | st.integers(0, 2**20 - 1),
    half=st.sampled_from([None, "kv", "base", "swa"]),
    colour=st.sampled_from(["sequence", "position", "shift", "changed"]),
    ubatch=st.none() | st.integers(0, 65_535),
    tables=st.booleans(),
)


def packed(data: bytes, level: int = 9) -> str:
    return base64.urlsafe_b64encode(zlib.compress(data, level)).decode().rstrip("=")


def unpacked(text: str) -> bytes:
    return zlib.decompress(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def refusal(params: Mapping[str, Any]) -> str:
    with pytest.raises(ScenarioError) as told:
        from_params(params)
    assert len(str(told.value)) < 1_500
    return str(told.value)


@given(any_scenario, views)
def test_a_link_restores_scenario_and_view(scenario: Scenario, view: View) -> None:
    params = to_params(scenario, view)
    assert from_params(dict(parse_qsl(urlencode(params)))) == (scenario, view)


@pytest.mark.parametrize("scenario_id", IDS)
def test_a_shipped_scenario_is_named(scenario_id: str) -> None:
    params = to_params(load(scenario_id), View())
    assert params == {"scenario": scenario_id}
    assert from_params(params) == (load(scenario_id), View())


def test_an_edited_one_is_packed_without_defaults() -> None:
    edited = load(IDS[0]).with_op(Clear())
    params = to_params(edited, View(step=3, tables=True, half="swa"))
    assert {name: value for name, value in params.items() if name != "data"} == {
        "step": "3",
        "tables": "1",
        "half": "swa",
    }
    assert json.loads(unpacked(params["data"])) == json.loads(edited.to_json())
    assert from_params(params)[0] == edited


def test_a_link_made_elsewhere_is_read() -> None:
    data = packed(json.dumps(DOCUMENT, indent=4).encode(), level=1)
    assert from_params({"data": data, "step": "0", "tables": "0"}) == (SMALL, View())


def test_texts_survive() -> None:
    op = Decode(tokens=(TokenRun(n=3, text=("é", "\n", "🂡")),), note="&data=?#")
    scenario = SMALL.with_op(op)
    assert from_params(to_params(scenario, View()))[0] == scenario


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "scenario is missing; allowed: an id in scenario, or a packed document in data"),
        ({"scenario": "cache-full", "data": "eJw"}, "scenario and data are both given; allowed: one of them"),
        (
            {"scenario": "cache-full", "pace": "1"},
            "parameter is 'pace'; allowed: scenario, data, other, step, beat, cell, half,",
        ),
        ({"scenario": "none"}, "scenario is 'none'; allowed: chat-context-shift, "),
        ({"scenario": None}, "scenario is None; allowed: text"),
        ({"scenario": "cache-full", "step": 3}, "step is 3; allowed: text"),
        ({"scenario": "cache-full", "step": "-1"}, "step is '-1'; allowed: a whole number in decimal figures"),
        ({"scenario": "cache-full", "step": "٣"}, "step is '٣'; allowed: a whole number in decimal figures"),
        ({"scenario": "cache-full", "step": "9" * 5000}, f"step is '{'9' * 79}; allowed: a whole number"),
        ({"scenario": "cache-full", "step": "10001"}, "step is 10001; allowed: less than or equal to 10000"),
        ({"scenario": "cache-full", "beat": "10000001"}, "beat is 10000001; allowed: less than or equal to 10000000"),
        ({"scenario": "cache-full", "cell": "1048576"}, "cell is 1048576; allowed: less than 1048576"),
        ({"scenario": "cache-full", "ubatch": "65536"}, "ubatch is 65536; allowed: less than 65536"),
        ({"scenario": "cache-full", "tables": "2"}, "tables is 2; allowed: a valid boolean"),
        ({"scenario": "cache-full", "half": "top"}, "half is 'top'; allowed: 'kv', 'base' or 'swa'"),
        (
            {"scenario": "cache-full", "colour": ""},
            "colour is ''; allowed: 'sequence', 'position', 'shift' or 'changed'",
        ),
        ({"data": ""}, "data is ''; allowed: a document packed by zlib in base64url without padding"),
        ({"data": "a+b/"}, "data is 'a+b/'; allowed: a document packed by zlib in base64url without padding"),
        ({"data": "eJw\n"}, "data is 'eJw\\n'; allowed: a document packed by zlib in base64url without padding"),
        ({"data": "abcde"}, "data is 'abcde'; allowed: a document packed by zlib in base64url without padding"),
        ({"data": "abcd"}, "data is 'abcd'; allowed: a document packed by zlib: Error -3"),
        ({"data": packed(b"{}")[:-4]}, "; allowed: a packed document, whole and with nothing behind it"),
        ({"data": packed(b"[]")}, "document is []; allowed: an object"),
        ({"data": packed(b"\xff")}, "document is no JSON: expected value at line 1 column 1"),
        (
            {"data": packed(json.dumps({**DOCUMENT, "cache": {"kv_size": 33}}).encode())},
            "cache: kv_size is 33; allowed: a multiple of n_pad = 32",
        ),
    ],
)
def test_a_bad_parameter_is_told(params: dict[str, Any], message: str) -> None:
    assert message in refusal(params)


def test_nothing_may_follow_the_document() -> None:
    packed_twice = zlib.compress(json.dumps(DOCUMENT).encode()) + b"more"
    text = base64.urlsafe_b64encode(packed_twice).decode().rstrip("=")
    assert "with nothing behind it" in refusal({"data": text})


texts = st.text(max_size=40) | st.sampled_from(["cache-full", "1", "0", "base", "eJw"]) | st.binary().map(packed)
keys = st.sampled_from(["scenario", "data", *View.model_fields]) | st.text(max_size=8)


@given(st.dictionaries(keys, texts | st.none() | st.integers() | st.lists(st.text()), max_size=4))
def test_garbage_is_refused_in_one_way(params: dict[str, Any]) -> None:
    try:
        scenario, view = from_params(params)
    except ScenarioError:
        return
    assert from_params(to_params(scenario, view)) == (scenario, view)


@given(st.data())
def test_a_damaged_link_is_refused_or_read(data: st.DataObject) -> None:
    text = list(to_params(SMALL.with_op(Defrag()), View())["data"])
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] = data.draw(st.sampled_from("Aa0_-=é\0"))
    try:
        scenario, _ = from_params({"data": "".join(text)})
    except ScenarioError:
        return
    assert scenario == SMALL.with_op(Defrag())


def test_a_small_link_cannot_take_much_memory() -> None:
    bomb = packed(b" " * (16 << 20))
    assert len(bomb) <= MAX_LINK_CHARS
    tracemalloc.start()
    try:
        message = refusal({"data": bomb})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert message == f"data unpacks to more than {MAX_LINK_BYTES} bytes; allowed: {MAX_LINK_BYTES} at most"
    assert most < 3 * MAX_LINK_BYTES


def test_a_document_of_exactly_the_bound_is_read() -> None:
    document = json.dumps(DOCUMENT).encode()
    assert from_params({"data": packed(document.ljust(MAX_LINK_BYTES))})[0] == SMALL
    assert "unpacks to more" in refusal({"data": packed(document.ljust(MAX_LINK_BYTES + 1))})


def test_a_long_link_is_not_even_unpacked() -> None:
    told = refusal({"data": "A" * (MAX_LINK_CHARS + 1)})
    assert told == "data has 32001 characters; allowed: 32000 at most; share the scenario as a JSON file instead"


def test_a_large_scenario_is_told_to_travel_as_a_file() -> None:
    many = SMALL.model_copy(update={"ops": tuple(Defrag(note=f"{7**i % 10**60}") for i in range(3_000))})
    with pytest.raises(ScenarioError, match=r"^the packed document has \d+ characters; .*as a JSON file instead$"):
        to_params(many, View())
    long = SMALL.model_copy(update={"ops": (Defrag(note="-" * 2000),) * 600})
    assert MAX_LINK_BYTES < len(long.to_json()) < MAX_SCENARIO_BYTES
    with pytest.raises(ScenarioError, match=r"^the document has \d+ bytes; .*as a JSON file instead$"):
        to_params(long, View())


def test_ten_thousand_plain_operations_fit_in_a_link() -> None:
    scenario = SMALL.model_copy(update={"ops": (Decode(tokens=(TokenRun(n=1),)),) * 10_000})
    assert from_params(to_params(scenario, View(step=10_000)))[0] == scenario


def test_the_settings_that_are_compared_travel_too() -> None:
    scenario = load("cache-full")
    other = scenario.on("legacy").cache, scenario.context
    params = to_params(scenario, View(step=2), other)
    assert from_params(params) == (scenario, View(step=2))
    assert other_from(params) == other
    assert other_from(to_params(scenario, View())) is None


def test_settings_that_are_none_are_refused() -> None:
    with pytest.raises(ScenarioError, match="data"):
        other_from({"other": "x"})
