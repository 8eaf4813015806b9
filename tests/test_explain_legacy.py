"""What the older generation does, in sentences; expected texts are written from the figures of the events."""

import numpy as np
import pytest

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.legacy import LegacyCache
from kvmodel.defrag import plan_defrag
from kvmodel.events import ComputeFailed, DefragApplied, DefragDecided, DefragRequested, Event, SlotSearched
from kvmodel.explain import explain
from kvmodel.types import CacheParams


def test_an_occupied_cell_says_that_it_holds_a_token():
    events: list[Event] = []
    cache = LegacyCache(CacheParams(8, n_pad=1), events.append)
    cache.find_slot(UBatch.plain(Batch.from_runs([(0, 6, (0,))])))
    cache.seq_rm(0, 1, 3)
    events.clear()
    cache.find_slot(UBatch.plain(Batch.from_runs([(6, 3, (0,))])))
    [searched] = events
    assert isinstance(searched, SlotSearched)
    assert explain(searched) == (
        "Ubatch 0: 3 cells in a row sought from head, cell 0; cell 0 holds a token; cells 1-2 are too few, since cells"
        " 3-5 hold tokens; cells 6-7 are too few before the end of the cache; 1 more run refused;"
        " no slot: 4 cells free, the longest run is 2 (cells 1-2)."
    )


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (DefragRequested(), "A defrag will be part of the next update."),
        (
            DefragDecided(do_defrag=False, why="few", fragmentation=0.0, thold=0.1),
            "No defrag: fewer than 128 cells in view never ask for it.",
        ),
        (
            ComputeFailed(ubatch=1, ret=-3, removed=()),
            "Computing ubatch 1 failed with return code -3; what follows is the roll-back of the whole decode.",
        ),
        (
            ComputeFailed(ubatch=1, ret=2, removed=((0, 4),)),
            "Computing ubatch 1 failed with return code 2; removed: sequence 0 from position 4 on.",
        ),
        (
            DefragApplied(plan=plan_defrag(np.array([True, False, True]), 9), head_before=7, head=2),
            "The defrag moved 1 cell to cell 1; head goes from 7 to 2.",
        ),
    ],
)
def test_events_of_the_older_caches_are_told(event, expected):
    assert explain(event) == expected
