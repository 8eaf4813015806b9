"""The slot search in sentences: the start and why, every refused run and what stopped it, the result."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.cells import Cells
from kvmodel.events import SlotSearched
from kvmodel.explain import explain, explain_search
from kvmodel.explain.slots import refusals
from kvmodel.slots import Blocked, SlotSearch, Start, find_slot
from kvmodel.types import SWAType


def searched(probes: list[tuple[int, int, Blocked]], **more: Any) -> SlotSearch:
    start, end, reason = zip(*probes, strict=True) if probes else ((), (), ())
    given: dict[str, Any] = {
        "n_tokens": 4,
        "n_cells": 16,
        "head": 2,
        "start": 2,
        "start_reason": Start.HEAD,
        "cell": -1,
        "probe_start": np.array(start, np.int64),
        "probe_end": np.array(end, np.int64),
        "probe_reason": np.array(reason, np.uint8),
    }
    return SlotSearch(**(given | more))


def test_a_search_tells_every_run_it_refused() -> None:
    probes = [
        (2, 4, Blocked.VISIBLE),
        (5, 5, Blocked.VISIBLE),
        (6, 6, Blocked.SHARED),
        (7, 8, Blocked.NO_OWNER),
        (13, 16, Blocked.END),
        (0, 4, Blocked.VISIBLE),
    ]
    search = searched(probes, free=6, reusable=2, longest=3, longest_start=13)
    assert explain_search(search) == [
        "4 cells in a row sought from head, cell 2.",
        "Cells 2-3 are too few, since cells 4-5 are still seen by their sequences.",
        "Cell 6 belongs to several sequences.",
        "Cell 7 alone is not enough, since cell 8 is used without an owner.",
        "Cells 13-15 are too few before the end of the cache.",
        "Cells 0-3 are too few, since cell 4 is still seen by its sequence.",
        "No slot: 6 cells free, 2 expired from the window, the longest run is 3 (cells 13-15).",
    ]


def test_a_long_search_counts_what_it_leaves_out() -> None:
    probes = [(2 * i, 2 * i + 1, Blocked.VISIBLE) for i in range(8)]
    search = searched(probes, free=8, reusable=0, longest=1, longest_start=0)
    assert explain_search(search, most=2)[1:4] == [
        "Cell 0 alone is not enough, since cell 1 is still seen by its sequence.",
        "Cell 2 alone is not enough, since cell 3 is still seen by its sequence.",
        "6 more runs refused.",
    ]
    assert "; 5 more runs refused; no slot: 8 cells free" in explain(SlotSearched(search=search))


def test_a_search_says_why_it_starts_at_cell_0() -> None:
    search = searched([], head=14, start=0, start_reason=Start.EARLY, cell=0)
    assert explain_search(search) == [
        "4 cells in a row sought from cell 0, since head 14 is more than the used cells plus 2 x 4.",
        "Found cells 0-3.",
    ]


def test_a_search_for_more_than_the_cache_holds() -> None:
    assert explain_search(searched([], n_tokens=17, too_many=True))[-1] == "No slot: the whole cache has 16 cells."


def test_a_search_at_the_very_end() -> None:
    search = searched([(16, 16, Blocked.END)], head=16, start=16, cell=0)
    assert explain_search(search)[1] == "The end of the cache is reached."


@given(st.lists(st.booleans(), min_size=8, max_size=40), st.integers(1, 8), st.data())
def test_refusals_cover_every_probe(filled: list[bool], n: int, data: st.DataObject) -> None:
    state = Cells(len(filled))
    for i in np.flatnonzero(filled).tolist():
        state.put(i, np.array([i], np.int32), np.array([1], np.uint64), np.array([i], np.int32))
    search = find_slot(state, data.draw(st.integers(0, len(filled))), n, SWAType.NONE, 0)
    assert sum(refusal.n_probes for refusal in refusals(search)) == len(search.probe_start)
