"""The table twins against the figures and against the operations."""

import pandas as pd
import pytest

from kvmodel.figures import (
    cells_figure,
    cells_table,
    events_table,
    mask_figure,
    mask_table,
    sequences_table,
    usage_table,
)
from kvmodel.timeline import Timeline
from tests.figures import after, decode, hover_words, legend, played, traces


@pytest.fixture(scope="module")
def timeline() -> Timeline:
    """Cells 0-3 belong to 0 and 1, 4 to 0, 5-6 to 1; positions of 1 from 4 on are shifted by 2."""
    return played(
        [
            decode(5, 0, text=["A", " b", " c", " d", " e"]),
            {"op": "seq_cp", "src": 0, "dst": 1, "p0": 0, "p1": 4},
            decode(2, 1, pos=4),
            {"op": "seq_add", "seq": 1, "p0": 4, "p1": -1, "shift": 2},
            {"op": "seq_rm", "seq": 0, "p0": 4, "p1": -1},
        ],
        32,
    )


def test_cells(timeline: Timeline) -> None:
    table = cells_table(after(timeline), tokens=timeline.tokens)
    assert list(table.columns) == ["cell", "position", "sequences", "shift", "token"]
    assert len(table) == 32
    assert table.iloc[1].tolist() == [1, 1, "0-1", 0, " b"]
    assert table.iloc[5].tolist() == [5, 6, "1", 2, ""]
    assert table["position"].isna().tolist() == [cell not in (0, 1, 2, 3, 5, 6) for cell in range(32)]
    assert table["position"].dtype == pd.Int32Dtype()


def test_cells_say_what_the_figure_says(timeline: Timeline) -> None:
    part = after(timeline)
    told = hover_words(cells_figure(part, tokens=timeline.tokens))
    for row in cells_table(part, tokens=timeline.tokens).itertuples():
        if pd.isna(row.position):
            assert told[row.cell] == "empty"
        else:
            assert f"position {row.position}, sequence" in told[row.cell]
            assert row.sequences in told[row.cell]
            assert row.token in told[row.cell]
            assert (f"pending shift {row.shift}" in told[row.cell]) == bool(row.shift)


def test_sequences(timeline: Timeline) -> None:
    table = sequences_table(after(timeline))
    assert table.to_dict("list") == {
        "sequence": [0, 1], "positions": ["0 to 3", "0 to 7"], "cells": [4, 6], "shared": [4, 4],
    }  # fmt: skip
    assert sequences_table(after(timeline, 0)).empty
    assert [f"sequence {seq}" for seq in table["sequence"]] == legend(cells_figure(after(timeline)))[:2]


def test_mask(timeline: Timeline) -> None:
    part, ubatch = after(timeline, 3), timeline.frames[timeline.frame_of(3)].ubatch
    table = mask_table(part, ubatch, tokens=timeline.tokens)
    assert table["position"].tolist() == [4, 5]
    assert table["sequence"].tolist() == [1, 1]
    assert table["visible"].tolist() == [5, 6]
    assert table["future"].tolist() == [1, 0]
    assert table["other sequence"].tolist() == [1, 1]
    assert table["empty"].tolist() == [25, 25]
    codes = traces(mask_figure(part, ubatch))["reasons"]["z"]
    assert table["visible"].tolist() == (codes == 0).sum(axis=1).tolist()


def test_mask_with_padding(timeline: Timeline) -> None:
    part, ubatch = after(timeline, 3), timeline.frames[timeline.frame_of(3)].ubatch
    table = mask_table(part, ubatch, padding=True)
    assert len(table) == 64
    assert table["padding row"].tolist() == [0, 0] + [32] * 62
    assert table["position"].isna().tolist() == [False, False] + [True] * 62


def test_usage(timeline: Timeline) -> None:
    table = usage_table(timeline, "kv")
    assert table["operation"].tolist() == ["start", "decode", "seq_cp", "decode", "seq_add", "seq_rm"]
    assert table["used"].tolist() == [0, 5, 5, 7, 7, 6]
    assert table["head"].tolist() == [0, 5, 5, 7, 0, 0]
    assert table["MiB in use"].tolist() == pytest.approx([used * 1024 / 2**20 for used in (0, 5, 5, 7, 7, 6)])


def test_events(timeline: Timeline) -> None:
    table = events_table(timeline.events_of(3))
    assert table["number"].tolist() == list(range(1, len(timeline.events_of(3)) + 1))
    assert table["event"].tolist() == [type(event).__name__ for event in timeline.events_of(3)]
    assert set(table["cache"]) == {"kv"}
    assert all(sentence.endswith(".") for sentence in table["what happened"])
    assert list(events_table([]).columns) == list(table.columns)
