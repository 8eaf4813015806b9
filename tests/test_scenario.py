"""Scenarios as documents: they survive JSON, and a bad field gives one message with its name, value and limits."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.configs import LegacyConfig
from kvmodel.errors import KVModelError
from kvmodel.limits import MAX_OPS, MAX_SCENARIO_BYTES
from kvmodel.ops import Clear, Decode, Defrag, SeqRm, TokenRun, Update
from kvmodel.scenario import CacheConfig, ContextConfig, Scenario, ScenarioError
from kvmodel.types import SWAType
from tests.random_scenarios import scenarios

SMALL: dict[str, Any] = {"title": "t", "cache": {"kv_size": 32}}
RUN = {"n": 1}
OP_NAMES = "'decode', 'seq_rm', 'seq_cp', 'seq_keep', 'seq_add', 'seq_div', 'update', 'defrag', 'clear'"
TYPES = "f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1"
ONE_ITEM = "at least 1 item after validation, not 0"
WHOLE = "a valid integer, got a number with a fractional part"


def document(**fields: Any) -> str:
    return json.dumps(SMALL | fields)


def with_op(**op: Any) -> str:
    return document(ops=[op])


def with_cache(**fields: Any) -> str:
    return document(cache={"kv_size": 32, "n_layer": 2} | fields)


@given(scenarios())
def test_a_scenario_survives_json(scenario: Scenario) -> None:
    text = scenario.to_json()
    again = Scenario.from_json(text)
    assert again == scenario
    assert again.to_json() == text
    assert Scenario.from_json(text.encode()) == scenario


def test_json_holds_only_what_is_not_the_default() -> None:
    scenario = Scenario.from_json(document(ops=[{"op": "seq_rm", "seq": 3, "p1": -1}, {"op": "clear"}]))
    assert json.loads(scenario.to_json()) == {
        "version": 1,
        "title": "t",
        "cache": {"kv_size": 32},
        "ops": [{"op": "seq_rm", "seq": 3}, {"op": "clear"}],
    }


def test_texts_are_kept_as_they_are() -> None:
    text = ["<b>", " naïve", "\n", "🂡", '"']
    scenario = Scenario.from_json(with_op(op="decode", tokens=[{"text": text}], note="One | two <i>"))
    again = Scenario.from_json(scenario.to_json())
    op = again.ops[0]
    assert isinstance(op, Decode)
    assert (op.tokens[0].n, op.tokens[0].text, op.note) == (5, tuple(text), "One | two <i>")


def test_the_configuration_reaches_the_model() -> None:
    cache = CacheConfig(kv_size=64, swa_type="chunked", n_swa=8, n_layer=2, n_head_kv=(1, 2), type_k="q8_0")
    params = cache.params
    assert (params.kv_size, params.swa_type, params.heads) == (64, SWAType.CHUNKED, (1, 2))
    assert ContextConfig(n_ubatch=7, defrag_thold=0.5).params("unified").n_ubatch == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "document is no JSON: EOF while parsing an object at line 1 column 1"),
        ("[]", "document is []; allowed: an object"),
        (json.dumps({"title": "t"}), "cache is missing; allowed: a value, since it has no default"),
        (document(version=2), "version is 2; allowed: 1"),
        (document(title=""), "title is ''; allowed: at least 1 character"),
        (document(colour=1), "colour is no known field; allowed: the fields of the format only"),
        (document(ops=3), "ops is 3; allowed: a valid array"),
        (with_cache(kv_size=0), "cache.kv_size is 0; allowed: greater than or equal to 1"),
        (with_cache(kv_size=2**20 + 1), "cache.kv_size is 1048577; allowed: less than or equal to 1048576"),
        (with_cache(kv_size=33), "cache: kv_size is 33; allowed: a multiple of n_pad = 32"),
        (with_cache(kv_size=1.5), f"cache.kv_size is 1.5; allowed: {WHOLE}"),
        (with_cache(n_seq_max=65), "cache.n_seq_max is 65; allowed: less than or equal to 64"),
        (with_cache(n_pad=0), "cache: n_pad is 0; allowed: a whole number from 1 to 1048576"),
        (with_cache(swa_type="odd"), "cache.swa_type is 'odd'; allowed: 'none', 'standard' or 'chunked'"),
        (with_cache(swa_type="standard"), "cache: n_swa is 0; allowed: at least 1 with swa_type standard"),
        (with_cache(n_layer=0), "cache: n_layer is 0; allowed: a whole number from 1 to 1024"),
        (with_cache(n_head_kv=[1]), "cache: n_head_kv is (1,); allowed: one entry for each of the 2 layers"),
        (with_cache(n_embd_head_k=-1), "cache: n_embd_head_k is -1; allowed: a whole number from 0 to 1048576"),
        (with_cache(type_v="q2_k"), f"cache: type_v is 'q2_k'; allowed: {TYPES}"),
        (
            with_cache(type_k="q8_0", n_embd_head_k=16),
            "cache: n_embd_k_gqa is 16; allowed: a multiple of 32 elements for type q8_0",
        ),
        (document(context={"n_ubatch": 0}), "context.n_ubatch is 0; allowed: greater than or equal to 1"),
        (document(context={"n_batch": 65_537}), "context.n_batch is 65537; allowed: less than or equal to 65536"),
        (
            '{"title": "t", "cache": {"kv_size": 32}, "context": {"defrag_thold": NaN}}',
            "context.defrag_thold is nan; allowed: a finite number",
        ),
        (with_op(op="fly"), f"ops.0.op is 'fly'; allowed: {OP_NAMES}"),
        (with_op(seq=1), "ops.0.op is missing; allowed: the name of an operation"),
        (with_op(op="seq_rm", seq=64), "ops.0.seq_rm.seq is 64; allowed: less than 64"),
        (with_op(op="seq_cp", src=0, dst=-1), "ops.0.seq_cp.dst is -1; allowed: greater than or equal to 0"),
        (with_op(op="seq_keep"), "ops.0.seq_keep.seq is missing; allowed: a value, since it has no default"),
        (
            with_op(op="seq_add", seq=0, shift=2**31),
            "ops.0.seq_add.shift is 2147483648; allowed: less than or equal to 2147483647",
        ),
        (with_op(op="seq_div", seq=0, d=0), "ops.0.seq_div.d is 0; allowed: greater than or equal to 1"),
        (with_op(op="update", thold=2), "ops.0.update.thold is 2; allowed: less than or equal to 1"),
        (with_op(op="clear", note=7), "ops.0.clear.note is 7; allowed: a valid string"),
        (with_op(op="decode", tokens=[]), f"ops.0.decode.tokens is []; allowed: {ONE_ITEM}"),
        (with_op(op="decode", tokens=[{"n": 0}]), "ops.0.decode.tokens.0.n is 0; allowed: greater than or equal to 1"),
        (
            with_op(op="decode", tokens=[{"n": 1, "pos": -1}]),
            "ops.0.decode.tokens.0.pos is -1; allowed: greater than or equal to 0",
        ),
        (with_op(op="decode", tokens=[{"n": 1, "seq": []}]), f"ops.0.decode.tokens.0.seq is []; allowed: {ONE_ITEM}"),
        (
            with_op(op="decode", tokens=[{"n": 2, "text": ["a"]}]),
            "ops.0.decode.tokens.0: text has 1 entries; allowed: one for each of the 2 tokens",
        ),
        (
            with_op(op="decode", tokens=[RUN, {"n": 1, "pos": 1}]),
            "ops.0.decode: pos is given for some runs only; allowed: for all of them or for none",
        ),
        (
            with_op(op="decode", tokens=[{"n": 65_536}, RUN]),
            "ops.0.decode: the batch has 65537 tokens; allowed: 65536 at most",
        ),
    ],
)
def test_a_bad_field_is_told_with_value_and_limits(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as told:
        Scenario.from_json(text)
    assert str(told.value) == message
    assert isinstance(told.value, KVModelError)


def test_a_long_value_is_cut() -> None:
    with pytest.raises(ScenarioError) as told:
        Scenario.from_json(document(title="x" * 500))
    assert len(str(told.value)) < 200


def test_bytes_count_and_not_characters() -> None:
    title = document(title="é").replace("\\u00e9", "é")
    exact = title + " " * (MAX_SCENARIO_BYTES - len(title.encode()))
    assert Scenario.from_json(exact).title == "é"
    size = MAX_SCENARIO_BYTES + 1
    with pytest.raises(ScenarioError, match=f"the document has {size} bytes; allowed: {size - 1} at most"):
        Scenario.from_json(exact + " ")


def test_ten_thousand_operations_are_the_limit() -> None:
    ops = [{"op": "defrag"}] * MAX_OPS
    full = Scenario.from_json(document(ops=ops))
    assert len(full.ops) == MAX_OPS
    with pytest.raises(ScenarioError, match="the scenario has 10000 operations; allowed: 10000 at most"):
        full.with_op(Clear())
    with pytest.raises(ScenarioError, match=r"^ops is .*; allowed: at most 10000 items"):
        Scenario.from_json(document(ops=[*ops, {"op": "defrag"}]))


def test_an_operation_is_appended_to_a_copy() -> None:
    scenario = Scenario.from_json(document())
    longer = scenario.with_op(SeqRm(seq=0)).with_op(Update(optimize=True))
    assert (len(scenario.ops), [op.op for op in longer.ops]) == (0, ["seq_rm", "update"])
    assert longer.title == scenario.title


def test_a_run_counts_its_texts() -> None:
    assert TokenRun.model_validate({"text": ["a", "b"]}).n == 2
    assert TokenRun(n=3).text is None


A, B, C = Defrag(note="a"), Defrag(note="b"), Defrag(note="c")
THREE = Scenario.from_json(document()).with_op(A).with_op(B).with_op(C)


def test_operations_are_inserted_changed_moved_and_removed_in_copies() -> None:
    new = SeqRm(seq=1)
    assert THREE.with_op(new, 0).ops == (new, A, B, C)
    assert THREE.with_op(new, 2).ops == (A, B, new, C)
    assert THREE.with_op(new, 3).ops == (A, B, C, new)
    assert THREE.without_op(0).ops == (B, C)
    assert THREE.without_op(2).ops == (A, B)
    assert THREE.with_op_changed(1, new).ops == (A, new, C)
    assert THREE.with_op_moved(0, 2).ops == (B, C, A)
    assert THREE.with_op_moved(2, 0).ops == (C, A, B)
    assert THREE.with_op_moved(1, 1) == THREE
    assert THREE.ops == (A, B, C)


def test_the_configuration_is_replaced_in_a_copy() -> None:
    cache = LegacyConfig(kind="legacy", kv_size=40)
    changed = THREE.with_config(cache, ContextConfig(n_ubatch=4))
    assert (changed.cache, changed.context.n_ubatch, changed.ops) == (cache, 4, THREE.ops)
    assert (THREE.cache.kind, THREE.context.n_ubatch) == ("unified", 512)
    assert Scenario.from_json(changed.to_json()) == changed


KIND_NAMES = "unified, iswa, legacy, recurrent, memory_recurrent"
OPERATION = "allowed: an operation of kvmodel.ops"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda s: s.with_op(A, 4), "at is 4; allowed: a whole number from 0 to 3"),
        (lambda s: s.with_op(A, -1), "at is -1; allowed: a whole number from 0 to 3"),
        (lambda s: s.with_op(A, True), "at is True; allowed: a whole number from 0 to 3"),
        (lambda s: s.with_op({"op": "clear"}), f"op is {{'op': 'clear'}}; {OPERATION}"),
        (lambda s: s.with_op(None, 0), f"op is None; {OPERATION}"),
        (lambda s: s.without_op(3), "i is 3; allowed: a whole number from 0 to 2"),
        (lambda s: s.without_op("0"), "i is '0'; allowed: a whole number from 0 to 2"),
        (
            lambda s: s.with_op_moved(0, 1).without_op(0).without_op(0).without_op(0).without_op(0),
            "i is 0; allowed: none, since the scenario has no operations",
        ),
        (lambda s: s.with_op_changed(-1, A), "i is -1; allowed: a whole number from 0 to 2"),
        (lambda s: s.with_op_changed(0, "clear"), f"op is 'clear'; {OPERATION}"),
        (lambda s: s.with_op_moved(3, 0), "i is 3; allowed: a whole number from 0 to 2"),
        (lambda s: s.with_op_moved(0, 3), "to is 3; allowed: a whole number from 0 to 2"),
        (lambda s: s.with_op_moved(0, 1.0), "to is 1.0; allowed: a whole number from 0 to 2"),
        (
            lambda s: s.with_config({"kv_size": 3}, s.context),
            f"cache is {{'kv_size': 3}}; allowed: a configuration of kind {KIND_NAMES}",
        ),
        (lambda s: s.with_config(s.cache, None), "context is None; allowed: a ContextConfig"),
        (lambda s: s.on("x"), f"kind is 'x'; allowed: {KIND_NAMES}"),
        (lambda s: s.on([]), f"kind is []; allowed: {KIND_NAMES}"),
    ],
)
def test_an_edit_that_is_not_possible_is_told(edit: Callable[[Scenario], Any], message: str) -> None:
    with pytest.raises(ScenarioError) as told:
        edit(THREE)
    assert str(told.value) == message


@pytest.mark.parametrize(
    ("given_text", "message"),
    [
        (None, "document is None; allowed: JSON as text or bytes"),
        (3, "document is 3; allowed: JSON as text or bytes"),
        ('{"\ud800', "character 2 is '\\ud800'; allowed: any but half a pair"),
    ],
)
def test_what_is_no_text_is_told(given_text: Any, message: str) -> None:
    with pytest.raises(ScenarioError) as told:
        Scenario.from_json(given_text)
    assert str(told.value) == message


@given(st.binary(max_size=60) | st.text(max_size=60) | st.none() | st.integers() | st.lists(st.integers()))
def test_garbage_is_refused_in_one_way(given_text: Any) -> None:
    with pytest.raises(ScenarioError):
        Scenario.from_json(given_text)
