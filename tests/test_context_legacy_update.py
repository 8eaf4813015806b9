"""The older context: updates, the defrag it asks for, and what it cannot do."""

from typing import Any

import numpy as np
import pytest

from kvmodel.caches.legacy import LegacyCache
from kvmodel.context_legacy import LegacyContext
from kvmodel.errors import CacheAbort
from kvmodel.events import (
    Decoded,
    DefragApplied,
    DefragDecided,
    DefragPlanned,
    DefragRequested,
    NothingToDo,
    NoUpdate,
    ShiftApplied,
)
from kvmodel.types import CacheParams
from tests.bench_context_legacy import Bench


def test_an_update_applies_the_shift_then_the_defrag() -> None:
    bench = Bench()
    bench.decode((0, 4, (0,)))
    bench.cache.seq_rm(0, 0, 2)
    bench.cache.seq_add(0, 2, -1, -2)
    assert bench.update(optimize=True)
    assert bench.kinds() == [DefragRequested, ShiftApplied, DefragPlanned, DefragApplied]
    assert (bench.pos(4), bench.cache.arrays["delta"][:4].tolist()) == ([0, 1, -1, -1], [0, 0, 0, 0])
    assert not bench.update()
    assert bench.kinds() == [NoUpdate]


def test_a_budget_can_be_given() -> None:
    """With 1 layer 8 nodes leave 1 move, the context's 14 leave 2."""
    bench = Bench(context={"n_max_nodes": 14})
    bench.decode((0, 8, (0,)))
    for pos in (0, 2, 4):
        bench.cache.seq_rm(0, pos, pos + 1)
    bench.update(optimize=True, n_max_nodes=8)
    assert bench.pos(8) == [7, 1, -1, 3, -1, 5, 6, -1]
    bench.update(optimize=True)
    assert bench.pos(8) == [7, 1, 6, 3, 5, -1, -1, -1]


def test_a_cache_without_shift_ends_the_process_at_the_update() -> None:
    bench = Bench(arch="deepseek2")
    bench.decode((0, 4, (0,)))
    bench.cache.seq_add(0, 0, -1, 1)
    with pytest.raises(CacheAbort, match="a shift is pending, but this cache does not support it"):
        bench.decode((5, 1, (0,)))


def thinned(thold: float) -> Bench:
    """160 tokens, of which 40 stay, so 3/4 of the 160 cells in view are unused."""
    bench = Bench(256, context={"defrag_thold": thold})
    bench.decode((0, 160, (0,)))
    bench.cache.seq_rm(0, 0, 119)
    bench.cache.head = 160
    return bench


def test_a_decode_asks_for_a_defrag_above_the_threshold() -> None:
    """41 of the 160 cells stay; the next token starts early, at cell 0, and makes them 42."""
    bench = thinned(0.7)
    bench.decode((160, 1, (0,)))
    decided = bench.events[-3]
    assert isinstance(decided, DefragDecided)
    assert decided.fragmentation == float(np.float32(1) - np.float32(42) / np.float32(160))
    assert (decided.do_defrag, decided.why, decided.thold) == (True, "threshold", 0.7)
    assert bench.kinds()[-2:] == [DefragRequested, Decoded]
    assert bench.cache.do_defrag
    bench.decode((161, 1, (0,)))
    assert bench.kinds()[1:3] == [DefragPlanned, DefragApplied]
    assert bench.cache.cell_max == 43


@pytest.mark.parametrize(
    ("size", "n", "why", "fragmentation"),
    [(96, 66, "few", 0.0), (128, 96, "few", 0.0), (128, 112, "below", 0.125), (256, 97, "below", 31 / 128)],
)
def test_a_short_view_never_asks(size: int, n: int, why: str, fragmentation: float) -> None:
    """The view is 96 or 128 cells; from 128 on the unused ones among them count."""
    bench = Bench(size, context={"defrag_thold": 0.5})
    bench.decode((0, n, (0,)))
    [decided] = [event for event in bench.events if isinstance(event, DefragDecided)]
    assert (decided.do_defrag, decided.why, decided.fragmentation) == (False, why, fragmentation)
    assert not bench.cache.do_defrag


@pytest.mark.parametrize(
    ("thold", "do_defrag"), [(0.125, False), (0.125 - 1e-12, False), (0.125 - 1e-7, True), (0.0, True)]
)
def test_fragmentation_and_threshold_are_compared_in_single_precision(thold: float, do_defrag: bool) -> None:
    bench = Bench(128, context={"defrag_thold": thold})
    bench.decode((0, 112, (0,)))
    [decided] = [event for event in bench.events if isinstance(event, DefragDecided)]
    assert (decided.fragmentation, decided.do_defrag, bench.cache.do_defrag) == (0.125, do_defrag, do_defrag)


@pytest.mark.parametrize("context", [{"defrag_thold": -0.5}, {"defrag_thold": 0.1, "causal_attn": False}])
def test_without_threshold_or_causal_attention_nothing_is_decided(context: dict[str, Any]) -> None:
    bench = Bench(context=context)
    bench.decode((0, 2, (0,)))
    assert DefragDecided not in bench.kinds()


def test_an_update_can_look_at_the_fragmentation() -> None:
    bench = thinned(-1.0)
    bench.decode((160, 1, (0,)))
    assert not bench.update(thold=0.9)
    assert bench.kinds() == [DefragDecided, NoUpdate]
    assert bench.update(thold=0.7)
    assert bench.kinds() == [DefragDecided, DefragRequested, DefragPlanned, DefragApplied]


def test_a_program_cannot_reach_the_calls_that_change_nothing() -> None:
    bench = Bench()
    bench.decode((0, 4, (0,)))
    bench.events.clear()
    bench.context.seq_cp(0, 0, -1, -1)
    bench.context.seq_add(0, -1, -1, 0)
    bench.context.seq_div(0, -1, -1, 1)
    assert (bench.kinds(), bench.cache.head, bench.cache.has_shift) == ([NothingToDo] * 3, 4, False)
    bench.context.seq_cp(0, 1, -1, -1)
    bench.context.seq_add(1, 0, 2, 4)
    bench.context.seq_div(0, 3, 4, 3)
    assert (bench.pos(4), bench.cache.has_shift, bench.cache.seq_pos_max(1)) == ([4, 5, 2, 1], True, 5)


def test_defaults_are_those_of_the_generation() -> None:
    cache = LegacyCache(CacheParams(32))
    assert LegacyContext(cache).params.n_max_nodes == 8192
