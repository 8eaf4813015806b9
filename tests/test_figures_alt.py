"""Figures in words, against caches counted by hand."""

from dataclasses import replace

import numpy as np
import pytest

from kvmodel.defrag import plan_defrag
from kvmodel.errors import ParamError
from kvmodel.figures.alt import (
    describe_cells,
    describe_defrag,
    describe_kshift,
    describe_mask,
    describe_overview,
    describe_shift,
    describe_states,
    describe_usage,
)
from kvmodel.kshift import kshift_report
from kvmodel.library import load
from kvmodel.player import play
from kvmodel.rope import RopeParams
from kvmodel.timeline import Timeline
from tests.figures import after, decode, played, scattered, shared_prefix


@pytest.fixture(scope="module")
def shared() -> Timeline:
    return shared_prefix()


def test_a_map(shared: Timeline) -> None:
    assert describe_cells(after(shared)) == (
        "10 of 64 cells are in use: sequence 0 has positions 0 to 6, sequence 1 has positions 0 to 11 and sequence 2"
        " has positions 0 to 1. head is 0, n_kv is 32."
    )


def test_a_map_with_changes(shared: Timeline) -> None:
    told = describe_cells(after(shared), changed=np.array([7, 8, 9, 40]))
    assert told.endswith("n_kv is 32. Changed: 4 cells (7-9, 40).")
    assert describe_cells(after(shared), changed=[]).endswith("Changed: no cell.")


def test_an_empty_cache_and_one_cell() -> None:
    empty, one = after(played([])), after(played([decode(1, 5)]))
    assert describe_cells(empty).startswith("0 of 64 cells are in use. head is 0")
    assert describe_cells(one).startswith("1 of 64 cells is in use: sequence 5 has position 0. head is 1")


def test_many_sequences_are_counted() -> None:
    told = describe_cells(after(played([decode(1, seq) for seq in range(9)])))
    assert "sequence 5 has position 0 and 3 more sequences. head" in told


def test_a_window() -> None:
    part = after(played([decode(1500, 0)], 4096))
    assert describe_cells(part, window=(1472, 64)) == (
        "28 of 64 cells from cell 1,472 on are in use: sequence 0 has positions 1,472 to 1,499. head is 1,500,"
        " n_kv is 1,504."
    )
    with pytest.raises(ParamError, match="within the 4,096 cells"):
        describe_cells(part, window=(4090, 64))


def test_the_strip() -> None:
    part = after(played([decode(17, 0)], 1 << 20))
    assert describe_overview(part, window=(0, 1024)) == (
        "17 of 1,048,576 cells are in use, the last of them cell 16. The map shows cells 0-1023."
    )
    assert describe_overview(after(played([]))) == "0 of 64 cells are in use."


def test_states() -> None:
    timeline = play(load("shared-states"))
    part = timeline.cursor().seek(timeline.frames_of(5)[0]).first
    assert describe_states(part) == (
        "3 of 4 cells hold a state: that of sequence 0 in cell 0, that of sequence 1 in cell 2 and that of sequence 2"
        " in cell 1. head is 1."
    )
    assert describe_states(timeline.start["kv"]) == "0 of 4 cells hold a state. head is 0."


def test_a_mask() -> None:
    """Three tokens of sequence 0 after four of sequence 1, 32 cells in view: 1 + 2 + 3 squares are visible."""
    timeline = played([decode(4, 1), decode(3, 0)], n_pad=32)
    ubatch = timeline.frames[timeline.frame_of(2)].ubatch
    assert describe_mask(after(timeline), ubatch) == (
        "3 tokens, by 32 cells: 6 of 96 squares are visible; the others: empty 75, other sequence 12 and future 3."
    )
    assert "9 of 96 squares are visible" in describe_mask(after(timeline), ubatch, causal=False)


def test_of_a_large_mask_the_drawn_rows_are_counted() -> None:
    """200 tokens of 0 after 3,000 of 0 and 1,000 of 1; 32 of them are drawn, the first and the last among them."""
    timeline = played([decode(3000, 0), decode(1000, 1), decode(200, 0)], 8192)
    part, ubatch = after(timeline), timeline.frames[timeline.frame_of(3)].ubatch
    rows = np.linspace(0, 199, 32).astype(int)
    visible = int(sum(3000 + row + 1 for row in rows))
    told = describe_mask(part, ubatch)
    assert told.startswith(
        f"200 tokens, of which 32 are drawn, by 4,224 cells: {visible:,} of {32 * 4224:,} squares are"
    )


def test_usage() -> None:
    """1,024 bytes a cell."""
    timeline = played([decode(10, 0), decode(30, 1), {"op": "seq_rm", "seq": 0, "p0": 6, "p1": -1}])
    assert describe_usage(timeline, "kv", 3) == (
        "At step 3 of 3, 36 of 64 cells are in use, 0.04 MiB of K and V; the most at any step is 40, first at step 2."
    )


def test_a_defrag() -> None:
    rm = [{"op": "seq_rm", "seq": 0, "p0": p, "p1": p + 2} for p in (2, 6)]
    part = after(played([decode(10, 0), decode(2, 1), *rm], 32))
    plan = plan_defrag(part.pos[:12] >= 0, 16)
    assert describe_defrag(plan) == "4 cells in 2 block moves, at most 16."
    assert describe_defrag(plan, n_moved=1) == (
        "4 cells in 2 block moves, at most 16; 1 made, the next takes cells 10-11 to cells 2-3."
    )
    assert describe_defrag(plan, n_moved=2).endswith("; all are made.")
    assert describe_defrag(plan_defrag(np.ones(4, np.bool_), 0)).startswith("Nothing moves")


def test_a_shift(shared: Timeline) -> None:
    assert describe_shift(after(shared)) == "Pending shift: cells 7-9 by +5."
    assert describe_shift(after(shared, 1)) == "No shift is pending."
    k_shift = np.zeros(64, np.int32)
    assert describe_shift(after(shared), k_shift) == "Nothing was shifted."
    k_shift[:16:2] = -1000
    told = describe_shift(after(shared), k_shift)
    assert told.startswith("Applied shift: cell 0 by -1,000, cell 2 by -1,000")
    assert told.endswith("cell 10 by -1,000 and 2 more runs.")


def test_a_key() -> None:
    report = kshift_report(RopeParams(4, freq_base=1e8), np.array([5, 0, 0, 0], np.float32), pos=2, shift=-1, times=0)
    assert describe_kshift(report) == (
        "A key of 2 pairs at position 2 after 0 K-shifts of -1: compared with the key made fresh at position 2 it is"
        " the same, and its length is 1 times as large."
    )


def test_texts_stay_short() -> None:
    part = scattered(4096, 64)
    part = replace(part, counters={**part.counters, "n_kv": 4096})
    assert max(len(describe_cells(part)), len(describe_shift(part))) < 400
