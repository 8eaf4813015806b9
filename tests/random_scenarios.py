"""Scenarios that Hypothesis draws: small caches, every operation, arguments inside and outside what makes sense."""

from typing import Any

from hypothesis import strategies as st

from kvmodel.configs import Kind
from kvmodel.scenario import Scenario

SEQ = st.integers(0, 3)
POS = st.integers(-2, 40)
WINDOWS = st.sampled_from([("none", 0), ("standard", 5), ("standard", 12), ("chunked", 6)])


def _run(with_pos: bool) -> st.SearchStrategy[dict[str, Any]]:
    fields: dict[str, st.SearchStrategy[Any]] = {
        "n": st.integers(1, 12),
        "seq": st.lists(SEQ, min_size=1, max_size=3),
    }
    if with_pos:
        fields["pos"] = st.integers(0, 40)
    return st.fixed_dictionaries(fields)


def _decode(with_pos: bool) -> st.SearchStrategy[dict[str, Any]]:
    optional = {"n_ubatch": st.integers(1, 12), "fail_at": st.integers(0, 3), "embd": st.booleans()}
    tokens = st.lists(_run(with_pos), min_size=1, max_size=3)
    return st.fixed_dictionaries({"op": st.just("decode"), "tokens": tokens}, optional=optional)


def _op(name: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"op": st.just(name), **fields})


OPS = st.one_of(
    _decode(with_pos=False),
    _decode(with_pos=False),
    _decode(with_pos=True),
    _op("seq_rm", seq=st.integers(-1, 3), p0=POS, p1=POS),
    _op("seq_cp", src=SEQ, dst=SEQ, p0=POS, p1=POS),
    _op("seq_keep", seq=SEQ),
    _op("seq_add", seq=SEQ, p0=POS, p1=POS, shift=st.integers(-20, 20)),
    _op("seq_div", seq=SEQ, p0=POS, p1=POS, d=st.integers(1, 4)),
    _op("update", optimize=st.booleans()),
    _op("defrag"),
    _op("clear", data=st.booleans()),
)


def _windows(draw: st.DrawFn) -> dict[str, Any]:
    swa_type, n_swa = draw(WINDOWS)
    return {"swa_type": swa_type, "n_swa": n_swa}


def _unified(draw: st.DrawFn) -> dict[str, Any]:
    sizes = {"kv_size": 16 * draw(st.integers(1, 3)), "n_pad": draw(st.sampled_from([1, 8, 16]))}
    return sizes | _windows(draw)


def _iswa(draw: st.DrawFn) -> dict[str, Any]:
    swa_type, n_swa = draw(WINDOWS.filter(lambda window: window[1]))
    window = {"swa_type": swa_type, "n_swa": n_swa, "swa_full": draw(st.sampled_from([False, False, True]))}
    return _unified(draw) | window | {"n_layer": 3, "swa_pattern": draw(st.sampled_from([0, 2, 3]))}


def _legacy(draw: st.DrawFn) -> dict[str, Any]:
    return {"kv_size": draw(st.integers(8, 48)), "flash_attn": draw(st.booleans())}


def _recurrent(draw: st.DrawFn) -> dict[str, Any]:
    return {"kv_size": draw(st.integers(3, 6))}


CACHES = {"unified": _unified, "iswa": _iswa, "legacy": _legacy, "recurrent": _recurrent}


@st.composite
def scenarios(draw: st.DrawFn, max_ops: int = 14, kind: Kind = "unified") -> Scenario:
    """A scenario of up to `max_ops` operations on a cache of 16 to 48 cells, or of 3 to 6 states."""
    cache = {"kind": kind, "n_seq_max": 4} | CACHES[kind](draw)
    context = {
        "n_batch": draw(st.sampled_from([8, 64])),
        "n_ubatch": draw(st.integers(1, 24)),
        "defrag_thold": draw(st.sampled_from([-1.0, -1.0, 0.1])),
    }
    ops = draw(st.lists(OPS, max_size=max_ops))
    return Scenario.model_validate({"title": "drawn", "cache": cache, "context": context, "ops": ops})


any_scenario = st.sampled_from(tuple(CACHES)).flatmap(lambda kind: scenarios(kind=kind))
"""A scenario on any kind of cache."""
