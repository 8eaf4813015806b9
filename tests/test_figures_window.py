"""A window on a large cache and the strip of all of it, against cells counted by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.errors import ParamError
from kvmodel.figures import cells_figure, overview_figure
from kvmodel.figures.overview import overview_clicked
from kvmodel.figures.palette import LIGHT, SEQUENCES
from kvmodel.figures.strip import NOBODY, SHARED, Strip
from kvmodel.figures.window import window_around
from kvmodel.snapshot import PartSnapshot
from tests.figures import (
    after,
    blocks,
    boxes,
    clicked,
    colours_of,
    decode,
    hover_words,
    legend,
    notes,
    played,
    scattered,
    shapes,
    spec,
    traces,
)

PLOT = 560
"""Pixels of the plot of a wide panel."""


@pytest.fixture(scope="module")
def million() -> PartSnapshot:
    return after(played([decode(17, 3)], 1 << 20))


@pytest.fixture(scope="module")
def split() -> PartSnapshot:
    """11,200 cells, 20 a column: 0-29 of 0, 30-59 of 1, 60-79 of 2 and 3."""
    ops = [decode(30, 0), decode(30, 1), decode(20, 2, 3)]
    return after(played(ops, 11_200))


@pytest.mark.parametrize(
    ("n_cells", "cell", "window"),
    [
        (512, 400, (0, 512)),
        (1024, 1023, (0, 1024)),
        (4096, 0, (0, 1024)),
        (4096, 511, (0, 1024)),
        (4096, 576, (64, 1024)),
        (4096, 4095, (3072, 1024)),
        (1056, 1055, (64, 992)),
        (1 << 20, 524_288, (523_776, 1024)),
    ],
)
def test_a_window_begins_with_a_row(n_cells: int, cell: int, window: tuple[int, int]) -> None:
    assert window_around(n_cells, cell) == window


@given(n_cells=st.integers(1, 1 << 20), n=st.integers(1, 4096), data=st.data())
def test_a_window_holds_its_cell(n_cells: int, n: int, data: st.DataObject) -> None:
    cell = data.draw(st.integers(0, n_cells - 1))
    first, length = window_around(n_cells, cell, n)
    assert 0 <= first <= cell < first + length <= n_cells
    assert 0 < length <= n


@pytest.mark.parametrize(("cell", "n"), [(-1, 64), (4096, 64), ("3", 64), (3, 0), (3, None)])
def test_what_is_no_window_is_refused(cell: Any, n: Any) -> None:
    with pytest.raises(ParamError, match="a whole number from"):
        window_around(4096, cell, n)


def test_a_windowed_map_is_that_part_of_the_whole() -> None:
    part = scattered(4096, 5)
    whole = blocks(traces(cells_figure(part, columns=64))["colours"], 64, 64)
    piece = cells_figure(part, window=(2048, 1024))
    assert (blocks(traces(piece)["colours"], 16, 64)[:, 0, 0] == whole[2048:3072, 0, 0]).all()
    assert hover_words(piece) == hover_words(cells_figure(part))[2048:3072]
    assert spec(piece)["layout"]["yaxis"]["ticktext"][:2] == ["2,048", "2,176"]


def test_text_stands_in_the_cells_of_a_window() -> None:
    part = after(played([decode(1500, 0)], 2048))
    text = traces(cells_figure(part, window=(1472, 64)))["text in cells"]
    assert [words.split("</b>")[0] for words in text["text"]] == [f"<b>{pos}" for pos in range(1472, 1500)]
    assert (text["x"].tolist()[16], round(text["y"][16])) == (0, 1)


def test_lines_are_drawn_only_within_the_window() -> None:
    part = after(played([decode(1500, 0)], 4096))
    inside = cells_figure(part, window=(1472, 64), changed=[5, 1473, 1474, 3000], selected=1488)
    assert [note["text"] for note in notes(inside)] == ["<b>head 1,500</b>", "n_kv 1,504"]
    [bracket] = shapes(inside, LIGHT.accent, width=3)
    assert "H11.5V1.5H" in bracket["path"]
    [changed] = shapes(inside, LIGHT.ink, width=2)
    assert boxes(changed["path"]) == [(0.5, -0.5, 2.5, 0.5)]
    [chosen] = shapes(inside, LIGHT.accent, width=2)
    assert boxes(chosen["path"]) == [(-0.5, 0.5, 0.5, 1.5)]
    outside = cells_figure(part, window=(2048, 1024), changed=[5], selected=5)
    assert notes(outside) == []
    assert shapes(outside, LIGHT.accent) == shapes(outside, LIGHT.ink) == []
    assert legend(outside) == ["empty"]


def test_changes_of_a_window_are_coloured() -> None:
    part = after(played([decode(1500, 0)], 4096))
    figure = cells_figure(part, window=(1472, 64), colour="changed", changed=[0, 1499, 1500])
    colours = colours_of(traces(figure)["colours"]).ravel()
    assert colours[26:30].tolist() == [LIGHT.filled, LIGHT.accent, LIGHT.freed, LIGHT.empty]


@pytest.mark.parametrize("colour", ["sequence", "position", "shift", "changed"])
def test_every_colouring_has_windows(colour: Any) -> None:
    drawn = traces(cells_figure(scattered(16_384, 5), colour=colour, window=(64, 8192)))
    assert drawn["cells"]["customdata"].reshape(8192, -1)[[0, -1], 0].tolist() == [64, 8255]


@pytest.mark.parametrize("window", [(-1, 64), (0, 0), (64, 4096), (5000, 1)])
def test_a_window_beyond_the_cache_is_refused(window: tuple[int, int]) -> None:
    part = scattered(4096, 5)
    for draw in (cells_figure, overview_figure):
        with pytest.raises(ParamError, match="within the 4,096 cells"):
            draw(part, window=window)


def test_a_column_counts_its_cells(split: PartSnapshot) -> None:
    strip = Strip.of(split, PLOT)
    assert (strip.pool, len(strip.used)) == (20, 560)
    assert strip.used[:5].tolist() == [20, 20, 20, 20, 0]
    assert strip.owner[:5].tolist() == [0, 0, 1, SHARED, -1]
    assert strip.used.sum() == split.used


def test_height_tells_how_full_a_column_is() -> None:
    """Columns of 20 cells with 20, 10, 1 and no cell in use, in eighths rounded up."""
    part = after(played([decode(60, 0)], 11_200))
    pos = np.where(np.isin(np.arange(11_200), [*range(20), *range(20, 30), 45]), 7, -1).astype(np.int32)
    colours = colours_of(traces(overview_figure(replace(part, arrays={**part.arrays, "pos": pos})))["strip"])
    assert [(colours[:, column] == SEQUENCES[0]).sum() for column in range(4)] == [8, 4, 1, 0]
    assert (colours[0, :3] == SEQUENCES[0]).all()


def test_few_cells_of_a_million_show(million: PartSnapshot) -> None:
    figure = overview_figure(million, window=(0, 1024))
    colours = colours_of(traces(figure)["strip"])
    assert colours.shape[1] <= PLOT
    assert colours[0, 0] == SEQUENCES[3]
    assert set(colours[:, 1:].ravel()) == {LIGHT.empty}
    assert hover_words(figure, "columns")[:2] == ["17 of 1,873 in use, mostly sequence 3", "empty"]
    assert len(figure.to_json()) < 100_000


def test_columns_say_whose_they_are(split: PartSnapshot) -> None:
    lost = replace(split, arrays={**split.arrays, "seqs": np.where(split.pos < 5, 0, split.seqs).astype(np.uint64)})
    told = hover_words(overview_figure(lost), "columns")
    assert told[0] == "20 of 20 in use, mostly sequence 0"
    assert told[3:5] == ["20 of 20 in use, mostly shared", "empty"]
    nobody = replace(split, arrays={**split.arrays, "seqs": np.zeros_like(split.seqs)})
    assert Strip.of(nobody, PLOT).owner[0] == NOBODY
    assert hover_words(overview_figure(nobody), "columns")[0] == "20 of 20 in use, mostly without owner"


def test_the_strip_marks_window_head_n_kv_and_changes(split: PartSnapshot) -> None:
    figure = overview_figure(split, window=(1024, 1024), changed=[0, 19, 20, 45, 8000])
    by_look = {(shape["line"]["color"], shape["line"]["width"]): shape["path"] for shape in shapes_of(figure)}
    assert by_look[LIGHT.accent, 3] == "M79.5,0.4V1"
    assert by_look[LIGHT.ink, 1.5] == "M95.5,0V1"
    assert by_look[LIGHT.ink, 2] == "M1003.5,-0.03H2067.5V1.03H1003.5Z"
    assert [(left, right) for left, _, right, _ in boxes(by_look[LIGHT.ink, 1])] == [(-0.5, 59.5), (7999.5, 8019.5)]
    assert [note["text"] for note in notes(figure)] == ["<b>head 80</b>", "n_kv 96"]
    assert legend(figure)[:2] == ["shown in the map", "changed"]


def shapes_of(figure: Any) -> list[dict[str, Any]]:
    return spec(figure)["layout"]["shapes"]


def test_a_click_on_the_strip_names_the_middle_of_its_column(split: PartSnapshot) -> None:
    assert [overview_clicked(clicked(column), 11_200) for column in (0, 1, 559, 560, -1)] == [9, 29, 11_189, None, None]
    assert overview_clicked(clicked(2), 11_200, width=335) == (2 * 57 + 3 * 57 - 1) // 2
    points = traces(overview_figure(split))["columns"]
    assert points["customdata"][[0, 559]].tolist() == [[0, 19], [11_180, 11_199]]
    assert points["x"][[0, 1]].tolist() == [9.5, 29.5]


@given(n=st.integers(1, 40), width=st.one_of(st.none(), st.integers(100, 2000)))
def test_columns_cover_every_cell_once(n: int, width: int | None) -> None:
    part = scattered(n * 320, 5)
    plot = 560 if width is None else width
    strip = Strip.of(part, plot)
    assert strip.lengths.sum() == part.n_cells
    assert strip.lengths.min() > 0
    assert len(strip.used) <= min(plot, 1200)
    assert ((strip.used > 0) == (strip.codes()[0] != 0)).all()


def test_the_strip_is_low(million: PartSnapshot) -> None:
    assert spec(overview_figure(million, window=(0, 1024)))["layout"]["height"] <= 76
