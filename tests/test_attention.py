"""Attention through a cache against attention without one: what the cache does must not show in the outputs."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvmodel.attention import AttentionLayer, attend, attention_weights
from kvmodel.batch import Batch
from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.unified import UnifiedCache
from kvmodel.context import ContextParams
from kvmodel.decoder import Decoder
from kvmodel.errors import ParamError
from kvmodel.events import Event, QuirkSeen
from kvmodel.rope import RopeParams
from kvmodel.types import CacheParams, SWAType

PLAIN = RopeParams(32)
YARN = RopeParams(32, freq_scale=0.25, ext_factor=1.0, n_ctx_orig=64)
KINDS = [UnifiedCache, LegacyCache]
TOKENS = np.random.default_rng(11).integers(0, 64, 48).astype(np.int32)
ROUNDING = 5e-6
"""Largest difference that another order of float32 sums may make here; a wrong key makes one of 0.1 and more."""


def decoder(kind: Any = UnifiedCache, rope: RopeParams = PLAIN, *, how: dict[str, Any] | None = None, **cache: Any):
    fields = {
        "n_seq_max": 4, "n_pad": 1, "n_head_kv": 2, "n_embd_head_k": 32, "n_embd_head_v": 32, "type_k": "f32",
        "type_v": "f32",
    }  # fmt: skip
    events: list[Event] = []
    made = kind(CacheParams(64, **fields | cache), events.append)
    told = Decoder(AttentionLayer.random(rope, seed=4), made, **how or {})
    return told, events


def say(told: Decoder, begin: int, tokens: np.ndarray, seq: int = 0, n_ubatch: int | None = None) -> np.ndarray:
    result, outputs = told.decode(Batch.from_runs([(begin, len(tokens), (seq,))], token=tokens), n_ubatch=n_ubatch)
    assert result.ret == 0
    return outputs


def quirks(events: list[Event]) -> list[str]:
    return [event.quirk for event in events if isinstance(event, QuirkSeen)]


def literal_pass(layer: AttentionLayer, tokens: np.ndarray, pos: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Attention in float64 with complex rotation, a token and a head at a time; `seen` is bool [n, n]."""
    n_head, size = layer.wq.shape[1:]
    half, share = size // 2, n_head // layer.n_head_kv
    speeds = 10_000.0 ** (-np.arange(half) / half)
    x = layer.tok_embd[tokens].astype(np.float64)

    def turned(weights: np.ndarray, head: int) -> np.ndarray:
        rows = x @ weights[:, head].astype(np.float64)
        return (rows[:, ::2] + 1j * rows[:, 1::2]) * np.exp(1j * pos[:, None] * speeds)

    outputs = np.empty((len(tokens), n_head, size))
    for head in range(n_head):
        q, k = turned(layer.wq, head), turned(layer.wk, head // share)
        v = x @ layer.wv[:, head // share].astype(np.float64)
        for i in range(len(tokens)):
            scores = (q[i].conj() * k[seen[i]]).real.sum(axis=1) / np.sqrt(size)
            weights = np.exp(scores - scores.max())
            outputs[i, head] = weights @ v[seen[i]] / weights.sum()
    return outputs.reshape(len(tokens), -1)


def causal(pos: np.ndarray) -> np.ndarray:
    return pos[None, :] <= pos[:, None]


def test_one_full_pass_is_attention() -> None:
    layer, pos = AttentionLayer.random(PLAIN, seed=4), np.arange(48, dtype=np.int32)
    wanted = literal_pass(layer, TOKENS, pos, causal(pos))
    assert np.abs(layer.full_pass(TOKENS, pos) - wanted).max() < ROUNDING
    assert np.abs(wanted).max() > 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("v_trans", [True, False])
def test_step_by_step_equals_one_full_pass(kind: Any, v_trans: bool) -> None:
    told, _ = decoder(kind, v_trans=v_trans)
    steps = np.concatenate([say(told, i, TOKENS[i : i + 1]) for i in range(len(TOKENS))])
    full = told.layer.full_pass(TOKENS, np.arange(48, dtype=np.int32))
    assert np.abs(steps - full).max() < ROUNDING


@given(st.lists(st.integers(1, 15), min_size=1, max_size=8), st.integers(1, 20), st.sampled_from(KINDS))
@settings(max_examples=25, deadline=None)
def test_any_cut_into_batches_and_ubatches_gives_the_same(sizes: list[int], n_ubatch: int, kind: Any) -> None:
    told, _ = decoder(kind)
    ends = np.cumsum([0, *sizes]).clip(max=48).tolist()
    parts = [say(told, b, TOKENS[b:e], n_ubatch=n_ubatch) for b, e in pairwise(ends) if e > b]
    full = told.layer.full_pass(TOKENS[: ends[-1]], np.arange(ends[-1], dtype=np.int32))
    assert np.abs(np.concatenate(parts) - full).max() < ROUNDING


@pytest.mark.parametrize("kind", KINDS)
def test_sequences_do_not_hear_each_other(kind: Any) -> None:
    told, _ = decoder(kind)
    mixed = Batch.from_runs([(0, 3, (0,)), (0, 4, (1,)), (3, 2, (0,))], token=TOKENS[:9])
    result, outputs = told.decode(mixed)
    assert result.ret == 0
    for own in ([0, 1, 2, 7, 8], [3, 4, 5, 6]):
        alone = told.layer.full_pass(TOKENS[own], np.arange(len(own), dtype=np.int32))
        assert np.abs(outputs[own] - alone).max() < ROUNDING


@pytest.mark.parametrize("kind", KINDS)
def test_a_shared_prefix_serves_both(kind: Any) -> None:
    told, _ = decoder(kind)
    say(told, 0, TOKENS[:10])
    told.cache.seq_cp(0, 1, 0, -1)
    branch = say(told, 10, TOKENS[20:24], seq=1)
    own = np.concatenate([TOKENS[:10], TOKENS[20:24]])
    assert np.abs(branch - told.layer.full_pass(own, np.arange(14, dtype=np.int32))[10:]).max() < ROUNDING


def test_a_window_hides_what_is_behind_it() -> None:
    told, _ = decoder(swa_type=SWAType.STANDARD, n_swa=5)
    steps = np.concatenate([say(told, i, TOKENS[i : i + 1]) for i in range(20)])
    pos = np.arange(20)
    seen = causal(pos) & (pos[:, None] - pos[None, :] < 5)
    assert np.abs(steps - literal_pass(told.layer, TOKENS[:20], pos, seen)).max() < ROUNDING


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rope_type", ["norm", "neox"])
def test_after_a_context_shift_the_keys_are_those_of_the_new_positions(kind: Any, rope_type: str) -> None:
    told, _ = decoder(kind, RopeParams(16, rope_type))
    say(told, 0, TOKENS)
    told.cache.seq_rm(0, 8, 20)
    told.cache.seq_add(0, 20, -1, -12)
    assert told.key_errors().max() > 1
    told.context.update()
    assert told.cache.cells.pos[told.used].tolist() == list(range(36))
    assert told.key_errors().max() < ROUNDING


@pytest.mark.parametrize("kind", KINDS)
def test_a_shifted_cache_serves_as_a_new_one_would(kind: Any) -> None:
    """With one layer a key holds nothing of what came before it, so the shifted cache equals a new one."""
    told, _ = decoder(kind)
    say(told, 0, TOKENS[:40])
    told.cache.seq_rm(0, 4, 16)
    told.cache.seq_add(0, 16, -1, -12)
    outputs = say(told, 28, TOKENS[40:])
    kept = np.concatenate([TOKENS[:4], TOKENS[16:]])
    assert np.abs(outputs - told.layer.full_pass(kept, np.arange(36, dtype=np.int32))[28:]).max() < ROUNDING


@pytest.mark.parametrize("kind", KINDS)
def test_a_defrag_leaves_the_output_alone(kind: Any) -> None:
    told, _ = decoder(kind)
    say(told, 0, TOKENS[:20])
    say(told, 0, TOKENS[20:40], seq=1)
    told.cache.seq_rm(0, 3, 9)
    told.cache.seq_add(0, 9, -1, -6)
    before = say(told, 14, TOKENS[40:44])
    told.cache.seq_rm(0, 14, -1)
    cells = told.used
    told.context.update(optimize=True)
    assert told.used.tolist() == list(range(34)) != cells.tolist()
    after = say(told, 14, TOKENS[40:44])
    assert np.abs(after - before).max() < ROUNDING
    assert told.key_errors().max() < ROUNDING


def test_dividing_turns_keys_away_from_their_positions() -> None:
    errors = {}
    for sign in ("upstream", "corrected"):
        told, events = decoder(how={"shift_sign": sign})
        say(told, 0, TOKENS)
        told.cache.seq_div(0, 0, -1, 4)
        told.context.update()
        errors[sign] = told.key_errors()
        assert quirks(events) == (["div-shift-sign"] if sign == "upstream" else [])
    assert errors["corrected"].max() < ROUNDING
    assert errors["upstream"][0] < ROUNDING
    assert errors["upstream"][1:].min() > 0.1


def test_the_older_cache_divides_the_right_way() -> None:
    told, _ = decoder(LegacyCache)
    say(told, 0, TOKENS)
    told.cache.seq_div(0, 0, -1, 4)
    told.context.update()
    assert told.key_errors().max() < ROUNDING


def test_dividing_shows_in_the_output() -> None:
    """The query stands at position 12; a fresh cache at the divided positions is what it should see."""
    pos = np.append(np.arange(48) // 4, 12)
    tokens = np.append(TOKENS, np.int32(7))
    wanted = literal_pass(AttentionLayer.random(PLAIN, seed=4), tokens, pos, causal(pos))[-1]
    apart = {}
    for sign in ("upstream", "corrected"):
        told, _ = decoder(how={"shift_sign": sign})
        say(told, 0, TOKENS)
        told.cache.seq_div(0, 0, -1, 4)
        apart[sign] = float(np.abs(say(told, 12, tokens[-1:])[0] - wanted).max())
    assert apart["corrected"] < ROUNDING
    assert apart["upstream"] > 0.1


def test_under_yarn_every_shift_lengthens_the_keys() -> None:
    told, events = decoder(rope=YARN)
    say(told, 0, TOKENS)
    factor = 1 + 0.1 * np.log(4)
    for times in (1, 2, 3):
        told.cache.seq_add(0, 0, -1, 2)
        told.context.update()
        lengths = [np.linalg.norm(keys, axis=2) for keys in (told.keys(told.used), told.fresh_keys(told.used))]
        assert lengths[0] / lengths[1] == pytest.approx(factor**times, rel=1e-5)
    assert quirks(events) == ["yarn-shift-magnitude"] * 3


def test_under_yarn_a_corrected_shift_gives_fresh_keys() -> None:
    told, events = decoder(rope=YARN, how={"magnitude": "corrected"})
    say(told, 0, TOKENS)
    told.cache.seq_add(0, 0, -1, 2)
    told.context.update()
    assert told.key_errors().max() < ROUNDING
    assert quirks(events) == []


def test_a_batch_without_a_slot_computes_nothing() -> None:
    told, _ = decoder()
    say(told, 0, TOKENS)
    batch = Batch.from_runs([(48, 17, (0,))], token=TOKENS[:17])
    result, outputs = told.decode(batch)
    assert result.ret == 1
    assert np.isnan(outputs).all()


def test_the_older_cache_computes_what_it_stored() -> None:
    """Quirk partial-decode: 16 cells are left, so the first of two ubatches is stored and computed."""
    told, _ = decoder(LegacyCache, how={"params": ContextParams(n_ubatch=10, n_max_nodes=8192)})
    say(told, 0, TOKENS, n_ubatch=48)
    result, outputs = told.decode(Batch.from_runs([(48, 20, (0,))], token=TOKENS[:20]))
    assert result.ret == 1
    assert np.isnan(outputs).all(axis=1).tolist() == [False] * 10 + [True] * 10


def test_events_still_reach_who_listened_before() -> None:
    told, events = decoder()
    say(told, 0, TOKENS[:3])
    assert [type(event).__name__ for event in events][-2:] == ["UBatchStored", "Decoded"]


def test_shares_sum_to_one_and_hidden_keys_get_none() -> None:
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((3, 4, 8), np.float32), rng.standard_normal((5, 2, 8), np.float32)
    mask = np.zeros((3, 5), np.float32)
    mask[0, 1:], mask[2] = -np.inf, -np.inf
    shares = attention_weights(q, k, mask)
    assert shares.shape == (4, 3, 5)
    assert shares[:, 0].tolist() == [[1, 0, 0, 0, 0]] * 4
    assert shares[:, 1].sum(axis=-1) == pytest.approx(np.ones(4), rel=1e-6)
    assert np.isnan(shares[:, 2]).all()


def test_query_heads_share_their_neighbours_kv_head() -> None:
    rng = np.random.default_rng(0)
    k, v = rng.standard_normal((5, 2, 8), np.float32), np.stack([np.zeros((5, 8)), np.ones((5, 8))], axis=1)
    q = rng.standard_normal((3, 4, 8), np.float32)
    outputs = attend(q, k, v.astype(np.float32), np.zeros((3, 5), np.float32)).reshape(3, 4, 8)
    assert outputs[:, :2].max() == 0
    assert outputs[:, 2:] == pytest.approx(np.ones((3, 2, 8)), rel=1e-6)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: AttentionLayer.random(PLAIN, n_head=3), "n_head is 3; allowed: a multiple of n_head_kv = 2"),
        (lambda: AttentionLayer.random(PLAIN, n_embd_head=16), "n_embd_head is 16; allowed: at least n_rot = 32"),
        (lambda: AttentionLayer.random(PLAIN, n_vocab=0), "n_vocab is 0; allowed: a whole number from 1 to 4096"),
        (lambda: decoder(n_layer=2), "n_layer is 2; allowed: 1, as the layer has"),
        (lambda: decoder(n_head_kv=4), "n_head_kv is 4; allowed: 2, as the layer has"),
        (lambda: decoder(n_embd_head_v=8), "n_embd_head_v is 8; allowed: 32, as the layer has"),
        (lambda: say(decoder()[0], 0, np.array([3, 64], np.int32)), "token is '3 to 64'; allowed: 0 to 63"),
        (lambda: say(decoder()[0], 0, np.array([-1], np.int32)), "token is '-1 to -1'; allowed: 0 to 63"),
    ],
)
def test_what_does_not_fit_is_told(made: Any, told: str) -> None:
    with pytest.raises(ParamError) as caught:
        made()
    assert str(caught.value) == told
