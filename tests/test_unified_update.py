"""Updates: pending shifts, fragmentation, and defrags under a budget."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import MemoryStatus
from kvmodel.caches.unified import UnifiedCache
from kvmodel.errors import CacheAbort, ParamError
from kvmodel.events import DefragApplied, DefragDecided, DefragPlanned, Event, NoUpdate, QuirkSeen, ShiftApplied
from kvmodel.types import CacheParams
from tests.reference import fragmentation
from tests.watched import Watched, shared_prefix

NODES = 65_536


@pytest.fixture
def shared() -> Watched:
    return shared_prefix()


def update(cache: Watched, *, optimize: bool = False, thold: float = 0.0, n_max_nodes: int = NODES) -> list[Event]:
    cache.told()
    cache.update(cache.init_update(optimize=optimize, thold=thold, n_max_nodes=n_max_nodes))
    return cache.told()


def test_an_update_with_nothing_to_do(shared):
    [event] = update(shared)
    assert isinstance(event, NoUpdate)
    assert shared.init_update(optimize=False, thold=0, n_max_nodes=NODES).status is MemoryStatus.NO_UPDATE


def test_an_update_applies_the_shift_once(shared):
    shared.seq_add(0, 2, -1, 5)
    [event] = update(shared)
    assert isinstance(event, ShiftApplied)
    assert (event.k_shift.tolist(), event.rotated) == ([0, 0, 5, 5, 0, 0, 0, 0, 0, 0], True)
    assert not shared.has_shift
    assert isinstance(update(shared)[0], NoUpdate)


def test_without_rope_the_shift_is_dropped_unrotated():
    cache = Watched(4, rope=False)
    cache.place((0, 2, (0,)))
    cache.seq_add(0, 0, -1, 5)
    [event] = update(cache)
    assert (event.rotated, cache.has_shift) == (False, False)


def test_an_update_shifts_first_and_then_moves(shared):
    shared.seq_rm(-1, 0, 2)
    shared.seq_add(1, 2, -1, 7)
    decided, planned, shifted, moved = update(shared, optimize=True)
    assert isinstance(decided, DefragDecided)
    assert (decided.do_defrag, decided.why) == (True, "asked")
    assert isinstance(planned, DefragPlanned)
    assert planned.plan.moves.tolist() == [[4, 0, 2]]
    assert shifted.k_shift.tolist()[4:6] == [7, 7]
    assert isinstance(moved, DefragApplied)
    assert (shared.row(), shared.head, shared.cells.pos.tolist()[:4]) == ("bbaa......", 0, [9, 10, 2, 3])


@pytest.mark.parametrize(("layers", "nodes", "moves"), [(1, 8, 1), (1, 7, 3), (2, 16, 1), (2, 27, 1), (2, 28, 2)])
def test_the_graph_budget_bounds_the_moves(layers, nodes, moves):
    """(8 - 2) / 6 = 1 of 3 moves; 7 nodes leave 0, which is no limit; two layers need twice as many nodes."""
    cache = Watched(8, n_layer=layers)
    cache.place((0, 8, (0,)))
    for pos in (0, 2, 4):
        cache.seq_rm(0, pos, pos + 1)
    events = update(cache, optimize=True, n_max_nodes=nodes)
    [planned] = [event for event in events if isinstance(event, DefragPlanned)]
    assert planned.plan.n_moves == moves
    quirks = [event.quirk for event in events if isinstance(event, QuirkSeen)]
    assert quirks == (["defrag-zero-budget"] if nodes == 7 else [])


def test_a_cache_without_layers_cannot_plan():
    cache = Watched(4, layer_filter=(False,))
    with pytest.raises(CacheAbort, match="holds no layers"):
        cache.init_update(optimize=True, thold=0.0, n_max_nodes=NODES)


@pytest.mark.parametrize(
    ("used_max_p1", "kept", "thold", "do_defrag", "why"),
    [
        (2047, 1, 0.1, False, "small"),
        (2048, 1024, 0.1, True, "threshold"),
        (2048, 1024, 0.5, False, "below"),
        (2048, 992, 0.5, False, "below"),
        (2048, 991, 0.5, True, "threshold"),
        (2048, 2048, 1e-6, False, "below"),
    ],
)
def test_the_threshold_decides_from_2048_cells_on(used_max_p1, kept, thold, do_defrag, why):
    """Waste is 1 - (used + padding of 32) / leading cells, and must lie above the threshold."""
    cache = Watched(4096, n_pad=32)
    cache.place((0, used_max_p1, (0,)))
    cache.seq_rm(0, kept - 1, used_max_p1 - 1)
    prepared = cache.init_update(optimize=False, thold=thold, n_max_nodes=NODES)
    [decided] = [event for event in cache.told() if isinstance(event, DefragDecided)]
    assert (prepared.parts["kv"].do_defrag, decided.do_defrag, decided.why) == (do_defrag, do_defrag, why)


@given(st.integers(1, 4096), st.integers(1, 4096), st.sampled_from([1, 32, 256]))
def test_fragmentation_in_single_precision(used_max_p1, kept, n_pad):
    cache = UnifiedCache(CacheParams(4096, n_pad=n_pad))
    cache.apply_ubatch(0, UBatch.plain(Batch.from_runs([(0, used_max_p1, (0,))])))
    cache.seq_rm(0, min(kept, used_max_p1) - 1, used_max_p1 - 1)
    assert cache.fragmentation.dtype == np.float32
    assert float(cache.fragmentation) == fragmentation(cache.cells.used, used_max_p1, n_pad)


def test_thold_must_be_a_number(shared):
    with pytest.raises(ParamError, match="thold is 'high'; allowed: a number"):
        shared.init_update(optimize=False, thold="high", n_max_nodes=NODES)
