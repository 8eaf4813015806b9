"""Every remedy is applied by hand from the figures in its sentence, and then the decode returns 0."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.advice import advice, remedies
from kvmodel.advice import remedy as remedy_module
from kvmodel.errors import ParamError
from kvmodel.library import load
from kvmodel.ops import AnyOp, Decode, SeqRm, TokenRun, Update
from kvmodel.player import play
from kvmodel.scenario import Scenario

Json = dict[str, Any]
MANY_NODES = 1_000_000


def first_tokens(batch: Decode, n: int) -> Decode:
    """The batches drawn here are one run of a sequence without texts."""
    (run,) = batch.tokens
    return batch.model_copy(update={"tokens": (TokenRun(n=n, seq=run.seq),)})


def with_fields(scenario: Scenario, part: str, **fields: Any) -> Scenario:
    return scenario.model_copy(update={part: getattr(scenario, part).model_copy(update=fields)})


def in_place_of_the_last(scenario: Scenario, *ops: AnyOp) -> Scenario:
    return scenario.model_copy(update={"ops": (*scenario.ops[:-1], *ops)})


HOW: dict[str, Callable[[Scenario, Decode, int], Scenario]] = {
    "Make the cache larger:": lambda given, _, n: with_fields(given, "cache", kv_size=n),
    "Make the cache larger and": lambda given, _, n: with_fields(given, "cache", kv_size=n, swa_full=True),
    "Set swa_full": lambda given, _, __: with_fields(given, "cache", swa_full=True),
    "Set the n_ubatch of the context": lambda given, _, n: with_fields(given, "context", n_ubatch=n),
    "Set n_ubatch to": lambda given, batch, n: in_place_of_the_last(given, batch.model_copy(update={"n_ubatch": n})),
    "Send at most": lambda given, batch, n: given.with_op(first_tokens(batch, n)),
    "Run an update": lambda given, batch, _: given.with_op(Update(optimize=True, n_max_nodes=MANY_NODES)).with_op(
        batch
    ),
    "Serve fewer sequences": lambda given, batch, seq: in_place_of_the_last(given, SeqRm(seq=seq), batch),
}
"""How to do by hand what a sentence advises, from the first figure in it."""


def applied(scenario: Scenario, sentence: str) -> Scenario | None:
    """The scenario with what a sentence advises; None for advice that leaves the choice to the reader."""
    batch = scenario.ops[-1]
    assert isinstance(batch, Decode)
    figure = re.search(r"\d[\d,]*", sentence)
    number = int(figure[0].replace(",", "")) if figure else 0
    hows = [how for words, how in HOW.items() if sentence.startswith(words)]
    return hows[0](scenario, batch, number) if hows else None


SEQ = st.integers(0, 3)
OP = st.one_of(
    st.builds(lambda n, seq: {"op": "decode", "tokens": [{"n": n, "seq": [seq]}]}, st.integers(1, 16), SEQ),
    st.builds(lambda n, seq: {"op": "decode", "tokens": [{"n": n, "seq": [seq]}]}, st.integers(1, 16), SEQ),
    st.builds(lambda seq, p0: {"op": "seq_rm", "seq": seq, "p0": p0}, SEQ, st.integers(0, 8)),
    st.builds(lambda src, dst: {"op": "seq_cp", "src": src, "dst": dst}, SEQ, SEQ),
)
WINDOW = st.sampled_from([("standard", 4), ("standard", 12), ("chunked", 5)])


@st.composite
def failing(draw: st.DrawFn) -> Scenario:
    """A small cache that some operations fill, then a batch that is likely to have no slot."""
    kind = draw(st.sampled_from(["unified", "unified", "iswa", "legacy"]))
    cache: Json = {"kind": kind, "kv_size": 16 * draw(st.integers(1, 3)), "n_seq_max": 4}
    if kind == "iswa" or (kind == "unified" and draw(st.booleans())):
        cache |= dict(zip(("swa_type", "n_swa"), draw(WINDOW), strict=True))
    if kind == "iswa":
        cache |= {"n_layer": 2, "swa_full": draw(st.sampled_from([False, False, True]))}
    cache |= {} if kind == "legacy" else {"n_pad": 8}
    batch = {"op": "decode", "tokens": [{"n": draw(st.integers(8, 40)), "seq": [draw(SEQ)]}]}
    batch |= {"n_ubatch": draw(st.integers(1, 40))}
    context = {"n_ubatch": draw(st.integers(1, 20)), "n_max_nodes": draw(st.sampled_from([65_536, 8, 20]))}
    ops = [*draw(st.lists(OP, min_size=2, max_size=10)), batch]
    return Scenario.model_validate({"title": "t", "cache": cache, "context": context, "ops": ops})


@given(failing())
def test_what_is_advised_helps(scenario: Scenario) -> None:
    timeline = play(scenario)
    if timeline.results[-1].ret != 1 or timeline.n_steps <= len(scenario.ops):
        return
    given_ = remedies(timeline, timeline.n_steps - 1)
    for remedy in given_:
        mended = applied(scenario, remedy.sentence)
        if mended is not None:
            assert play(mended).results[-1].ret == 0, remedy.sentence
        assert remedy.scenario is None or play(remedy.scenario).results[-1].ret == 0
    assert any(re.match(r"Make the cache larger|Set swa_full|Ask for a defrag", remedy.sentence) for remedy in given_)


@given(failing())
def test_what_helps_is_advised(scenario: Scenario) -> None:
    """One token fits: then a smaller batch is advised. swa_full alone helps: then it is among the remedies."""
    timeline = play(scenario)
    if timeline.results[-1].ret != 1 or timeline.n_steps <= len(scenario.ops):
        return
    told = advice(timeline, timeline.n_steps - 1)
    batch = scenario.ops[-1]
    assert isinstance(batch, Decode)
    if play(scenario.with_op(first_tokens(batch, 1))).results[-1].ret == 0 and scenario.cache.kind != "legacy":
        assert told[0].startswith("Send at most")
    if scenario.cache.kind == "iswa" and not scenario.cache.swa_full and "swa" in told[0]:
        helps = play(with_fields(scenario, "cache", swa_full=True)).results[-1].ret == 0
        assert helps == any(sentence.startswith("Set swa_full") for sentence in told)


def test_a_remedy_comes_with_the_scenario_that_has_it() -> None:
    timeline = play(load("window-pair-no-slot"))
    by_words = {remedy.sentence.partition(":")[0]: remedy.scenario for remedy in remedies(timeline, 2)}
    full = by_words["Set swa_full"]
    assert full is not None
    assert (full.cache.model_dump()["swa_full"], len(full.ops)) == (True, 2)
    assert play(full).results[-1].ret == 0


def test_a_long_scenario_is_not_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedy_module, "MAX_CELL_FRAMES", 0)
    told = advice(play(load("window-pair-no-slot")), 2)
    assert told[0] == (
        "Send at most 17 tokens in one decode: swa has room for no more (cells 8-24 are the longest run left)."
        " (Not tried: the scenario is long.)"
    )
    assert all(sentence.endswith(" (Not tried: the scenario is long.)") for sentence in told)
    assert "Set swa_full: swa then has as many cells as base, 96. (Not tried: the scenario is long.)" in told


def test_a_remedy_that_the_bounds_forbid_is_not_given() -> None:
    """A cache of 1,048,576 cells is the largest one."""
    document: Json = {"title": "t", "cache": {"kv_size": 1_048_576}, "context": {"n_batch": 65_536}}
    fill = [{"op": "decode", "tokens": [{"n": 65_536}], "n_ubatch": 65_536}] * 16
    one = {"op": "decode", "tokens": [{"n": 1}]}
    timeline = play(Scenario.model_validate(document | {"ops": [*fill, one]}))
    assert timeline.results[-1].ret == 1
    assert [sentence[:12] for sentence in advice(timeline, 17)] == ["No smaller b", "Free 1 more "]


@pytest.mark.parametrize("step", [-1, 99, "x"])
def test_there_is_no_advice_on_no_step(step: Any) -> None:
    with pytest.raises(ParamError, match=r"^step is "):
        advice(play(load("cache-full")), step)


def test_remedies_are_tried_once_for_a_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    timeline = play(load("cache-full"))
    first = remedies(timeline, 2)
    monkeypatch.setattr(remedy_module, "play", None)
    assert remedies(timeline, 2) is first
