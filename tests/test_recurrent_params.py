"""What a recurrent cache is made of, what it takes and what it shows."""

import inspect

import pytest

from kvmodel import events_recurrent
from kvmodel.caches.base import Placed
from kvmodel.caches.recurrent import RecurrentCache
from kvmodel.caches.recurrent_params import RecurrentParams
from kvmodel.errors import CacheAbort, ParamError
from kvmodel.events import Event
from kvmodel.explain.sentence import sentence
from kvmodel.snapshot import snapshot
from tests.bench_recurrent import Bench, equal

MIB = 1 << 20
EVENTS = [
    kind
    for _, kind in inspect.getmembers(events_recurrent, inspect.isclass)
    if kind.__module__ == events_recurrent.__name__
]


def test_a_state_of_mamba_28b_takes_what_its_author_says() -> None:
    """64 layers, convolution of 4, inner width 5,120, state width 16: 3.75 and 20 MiB a sequence."""
    cache = RecurrentCache(RecurrentParams(1, n_layer=64, ssm_d_conv=4, ssm_d_inner=5120, ssm_d_state=16))
    assert (cache.size_k_bytes / MIB, cache.size_v_bytes / MIB) == (3.75, 20.0)
    assert cache.total_size / MIB == 23.75


def test_rows_as_a_real_log_prints_them() -> None:
    """A tiny mamba of 0.3.7: n_embd_k_gqa = 192, n_embd_v_gqa = 1024."""
    params = RecurrentParams(4, n_seq_max=4, n_layer=2, ssm_d_conv=4, ssm_d_inner=64, ssm_d_state=16)
    assert [(params.n_embd_k_gqa(il), params.n_embd_v_gqa(il)) for il in params.layers] == [(192, 1024)] * 2
    cache = RecurrentCache(params)
    assert (cache.size_k_bytes, cache.size_v_bytes) == (4 * 192 * 4 * 2, 4 * 1024 * 4 * 2)


def test_rwkv_counts_by_its_own_widths() -> None:
    """Two shifted tokens of 2,048, and 64 values for each of them: the other widths play no part."""
    params = RecurrentParams(1, wkv_head_size=64, n_embd=2048, ssm_d_conv=9, ssm_d_state=9)
    assert (params.n_embd_k_gqa(0), params.n_embd_v_gqa(0)) == (4096, 131072)
    assert RecurrentParams(1, wkv_head_size=64, n_embd=2048, token_shift_count=1).n_embd_k_gqa(0) == 2048


def test_keys_beside_the_state_and_no_convolution() -> None:
    params = RecurrentParams(1, n_head_kv=2, n_embd_head_k=8, n_embd_head_v=16, ssm_d_conv=0, ssm_d_state=0)
    assert (params.n_embd_k_gqa(0), params.n_embd_v_gqa(0)) == (16, 32)


@pytest.mark.parametrize("field", ["ssm_d_conv", "ssm_d_inner", "ssm_d_state", "n_embd", "token_shift_count"])
def test_widths_are_checked(field: str) -> None:
    with pytest.raises(ParamError, match=f"{field} is -1; allowed: a whole number from 0 to 1048576"):
        RecurrentParams(1, **{field: -1})


def test_ids_that_no_set_holds() -> None:
    """With more cells than a set has bits, an id of 64 is upstream's to take and not ours."""
    cache = RecurrentCache(RecurrentParams(100, n_seq_max=64))
    assert cache.seq_rm(63, -1, -1)
    assert not cache.seq_rm(100, -1, -1)
    for call in (lambda: cache.seq_rm(64, -1, -1), lambda: cache.find_slot(equal([(64,)], [0]))):
        with pytest.raises(ParamError, match="seq is 64; allowed: a whole number from 0 to 63"):
            call()


def test_nothing_to_shift_or_defragment() -> None:
    bench = Bench(2)
    bench.decode((0, 2, (0,)))
    bench.context.defrag()
    assert not bench.cache.do_defrag
    assert not bench.context.update()
    with pytest.raises(CacheAbort, match="no keys"):
        bench.cache.apply_shift()
    with pytest.raises(CacheAbort, match="cannot be defragmented"):
        bench.cache.apply_defrag(8192)


def test_a_roll_back_without_a_slot_changes_nothing() -> None:
    bench = Bench(2)
    bench.decode((0, 2, (0,)))
    bench.cache.restore(Placed(1, 0), [])
    assert (bench.cache.head, bench.cache.n, bench.cache.used) == (0, 1, 1)


def test_a_snapshot_shows_it() -> None:
    bench = Bench(3)
    bench.decode((0, 2, (0,)), (0, 2, (2,)))
    bench.cache.seq_cp(2, 1, -1, -1)
    [cache] = bench.cache.parts
    part = snapshot(cache)
    assert list(part.arrays) == ["pos", "delta", "src", "tail", "seqs", "token"]
    assert (part.n_cells, part.head, part.used, part.n_kv) == (3, 0, 2, 2)
    assert [part.owners(cell) for cell in range(3)] == [(1, 2), (0,), ()]
    assert part.spans[:4].tolist() == [[1, 1], [1, 1], [1, 1], [-1, -1]]
    assert (part.size_k_bytes, part.size_v_bytes) == (144, 96)


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_every_event_has_a_sentence_of_its_own(kind: type[Event]) -> None:
    assert kind in sentence.registry
