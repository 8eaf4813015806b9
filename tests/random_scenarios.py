"""Scenarios that Hypothesis draws: small caches, every operation, arguments inside and outside what makes sense."""

from typing import Any

from hypothesis import strategies as st

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


@st.composite
def scenarios(draw: st.DrawFn, max_ops: int = 14) -> Scenario:
    """A scenario of up to `max_ops` operations on a cache of 16 to 48 cells."""
    swa_type, n_swa = draw(WINDOWS)
    cache = {
        "kv_size": 16 * draw(st.integers(1, 3)),
        "n_seq_max": 4,
        "n_pad": draw(st.sampled_from([1, 8, 16])),
        "swa_type": swa_type,
        "n_swa": n_swa,
    }
    context = {"n_batch": draw(st.sampled_from([8, 64])), "n_ubatch": draw(st.integers(1, 24))}
    ops = draw(st.lists(OPS, max_size=max_ops))
    return Scenario.model_validate({"title": "drawn", "cache": cache, "context": context, "ops": ops})
