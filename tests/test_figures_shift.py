"""The K-shift over the cells against shifts worked out by hand."""

from typing import Any

import numpy as np
import pytest

from kvmodel.errors import ParamError
from kvmodel.figures import shift_figure, shift_table
from kvmodel.figures.palette import THEMES, theme
from kvmodel.library import load
from kvmodel.player import play
from kvmodel.snapshot import PartSnapshot
from tests.figures import after, decode, legend, played, scattered, spec, traces


@pytest.fixture(scope="module")
def part() -> PartSnapshot:
    """Cells 4-7 move by -2, cells 20-35 by +300; 36 cells are in use."""
    return after(
        played(
            [
                decode(8, 0),
                decode(8, 1),
                decode(20, 2),
                {"op": "seq_add", "seq": 0, "p0": 4, "p1": -1, "shift": -2},
                {"op": "seq_add", "seq": 2, "p0": 4, "p1": -1, "shift": 300},
            ]
        )
    )


def steps(figure: Any, name: str) -> list[tuple[float, float, float]]:
    """Left end, right end and height of every step that is not flat."""
    trace = traces(figure)[name]
    x, y = np.array(trace["x"]).reshape(-1, 2), np.array(trace["y"]).reshape(-1, 2)
    assert (y[:, 0] == y[:, 1]).all()
    assert (x[1:, 0] == x[:-1, 1]).all()
    return [(left, right, height) for (left, right), (height, _) in zip(x.tolist(), y.tolist(), strict=True) if height]


def test_a_run_is_a_step_up_or_down(part: PartSnapshot) -> None:
    figure = shift_figure(part)
    assert steps(figure, "later") == [(19.5, 35.5, 300)]
    [(left, right, height)] = steps(figure, "earlier")
    assert (left, right) == (3.5, 7.5)
    assert -30 < height < -2, "drawn a little longer, or it would not be seen beside 300"
    assert spec(figure)["layout"]["xaxis"]["range"] == [-0.5, 35.5]
    assert spec(figure)["layout"]["yaxis"]["ticktext"] == ["-300", "0", "+300"]


def test_runs_have_their_number_with_its_sign(part: PartSnapshot) -> None:
    numbers = traces(shift_figure(part))["numbers"]
    assert dict(zip(numbers["text"], numbers["x"].tolist(), strict=True)) == {"+300": 27.5, "-2": 5.5}
    assert dict(zip(numbers["text"], numbers["textposition"], strict=True)) == {
        "+300": "top center",
        "-2": "bottom center",
    }


def test_every_cell_says_its_shift(part: PartSnapshot) -> None:
    cells = traces(shift_figure(part))["cells"]
    assert cells["customdata"].reshape(-1, 3).tolist() == [
        [cell, cell, -2 if 4 <= cell < 8 else 300 if cell >= 20 else 0] for cell in range(36)
    ]
    assert cells["hovertemplate"].startswith("<b>cell %{customdata[0]}</b><br>pending shift %{customdata[2]")


def test_the_legend_says_which_way(part: PartSnapshot) -> None:
    assert legend(shift_figure(part)) == ["to later positions", "to earlier positions"]
    assert legend(shift_figure(part, np.maximum(part.shift, 0))) == ["to later positions"]


def test_without_a_shift_it_is_said(part: PartSnapshot) -> None:
    calm = after(played([decode(8, 0)]))
    older = after(play(load("older-partial-decode")), 0)
    assert legend(shift_figure(calm)) == ["no shift pending"]
    assert legend(shift_figure(part, np.zeros(64, np.int32))) == ["nothing was shifted"]
    assert legend(shift_figure(older)) == ["no delta pending"]
    assert shift_table(calm).empty


def test_an_applied_vector_is_drawn_in_place_of_what_is_pending(part: PartSnapshot) -> None:
    k_shift = np.zeros(64, np.int32)
    k_shift[[40, 41]] = -7
    figure = shift_figure(part, k_shift)
    assert steps(figure, "earlier") == [(39.5, 41.5, -7)]
    assert "applied %{customdata[2]" in traces(figure)["cells"]["hovertemplate"]


@pytest.mark.parametrize("k_shift", [np.zeros(63, np.int32), np.zeros((64, 1), np.int32), 3])
def test_a_vector_of_another_length_is_refused(part: PartSnapshot, k_shift: Any) -> None:
    for twin in (shift_figure, shift_table):
        with pytest.raises(ParamError, match="one shift for each of 64 cells"):
            twin(part, k_shift)


def test_the_table_has_a_row_for_each_run(part: PartSnapshot) -> None:
    assert shift_table(part).to_dict("list") == {
        "first cell": [4, 20],
        "last cell": [7, 35],
        "cells": [4, 16],
        "shift": [-2, 300],
        "sequences": ["0", "2"],
    }


def test_of_a_large_cache_the_largest_shift_of_each_column_shows() -> None:
    """131,072 cells are drawn in columns of 128."""
    k_shift = np.zeros(131_072, np.int32)
    k_shift[130], k_shift[131], k_shift[131_071] = 5, -9, 2**31 - 1
    figure = shift_figure(after(played([], 131_072)), k_shift)
    facts = traces(figure)["cells"]["customdata"].reshape(-1, 3)
    assert facts[[0, 1, 1023]].tolist() == [[0, 127, 0], [128, 255, -9], [130_944, 131_071, 2**31 - 1]]
    assert steps(figure, "earlier")[0][:2] == (127.5, 255.5)
    assert len(shift_figure(scattered(131_072, 5)).to_json()) < 60_000


@pytest.mark.parametrize("name", THEMES)
def test_the_page_has_its_own_colours(part: PartSnapshot, name: Any) -> None:
    figure = shift_figure(part, theme=name)
    drawn = traces(figure)
    assert (drawn["later"]["fillcolor"], drawn["earlier"]["fillcolor"]) == (theme(name).rising, theme(name).falling)
    assert spec(figure)["layout"]["paper_bgcolor"] == theme(name).paper
