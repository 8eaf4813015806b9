"""What a page reads from a click, and that a selection leaves the picture as it is."""

from typing import Any

import numpy as np
import pytest

from kvmodel.figures import cells_figure, mask_figure, states_figure
from kvmodel.figures.cells import map_grid
from kvmodel.figures.clicks import CURVE, cell_clicked, mask_clicked
from kvmodel.figures.grid import Grid
from kvmodel.library import load
from kvmodel.player import play
from tests.figures import after, clicked, decode, played, spec, traces


def test_a_click_names_the_cell_under_it() -> None:
    part = after(played([decode(9, 0)], 64))
    assert [cell_clicked(clicked(index), map_grid(part)) for index in (0, 8, 63)] == [0, 8, 63]


@pytest.mark.parametrize(
    "selection",
    [
        None,
        {},
        [],
        "points",
        {"points": []},
        {"points": None},
        {"points": "abc"},
        {"points": [None]},
        {"points": [{"point_index": 3}]},
        {"points": [{"curve_number": CURVE}]},
        clicked(64),
        clicked(-1),
        clicked(2.0),
        clicked("2"),
        clicked(True),
        clicked(None),
        clicked(3, curve=0),
        clicked(3, curve=2),
        clicked(3, curve="1"),
    ],
    ids=str,
)
def test_anything_else_names_none(selection: Any) -> None:
    part, ubatch = stored(played([decode(1, 0)], 64))
    assert cell_clicked(selection, Grid(64, 16)) is None
    assert mask_clicked(selection, part, ubatch) is None


def test_the_first_point_of_the_layer_counts() -> None:
    points = clicked(9, curve=0)["points"] + clicked(5)["points"] + clicked(6)["points"]
    assert cell_clicked({"points": points}, Grid(64, 16)) == 5


def test_a_pooled_map_names_none() -> None:
    assert cell_clicked(clicked(3), Grid.of(262_144)) is None


def test_in_a_window_the_cell_of_the_cache_is_named() -> None:
    part = after(played([decode(9, 0)], 4096))
    grid = map_grid(part, window=(2048, 1024))
    assert [cell_clicked(clicked(index), grid) for index in (0, 1023, 1024)] == [2048, 3071, None]
    points = traces(cells_figure(part, window=(2048, 1024)))["cells"]
    assert points["customdata"][[0, 1023], 0].tolist() == [2048, 3071]


def stored(timeline: Any) -> Any:
    """The last ubatch and the cells after it."""
    frame = max(i for i, frame in enumerate(timeline.frames) if frame.ubatch is not None)
    return timeline.cursor().seek(frame).first, timeline.frames[frame].ubatch


def test_a_click_in_the_mask_names_token_and_cell() -> None:
    """Three tokens ask 32 cells."""
    part, ubatch = stored(played([decode(3, 0)], 64, n_pad=32))
    assert (part.n_kv, len(ubatch)) == (32, 3)
    named = [mask_clicked(clicked(index), part, ubatch) for index in (0, 31, 32, 95, 96)]
    assert named == [(0, 0), (0, 31), (1, 0), (2, 31), None]


def test_a_mask_of_many_squares_has_no_points() -> None:
    part, ubatch = stored(played([decode(33, 0)], 64))
    assert len(ubatch) * part.n_kv == 33 * 64 > 2048
    assert "squares" not in traces(mask_figure(part, ubatch))
    assert mask_clicked(clicked(0), part, ubatch) is None


def test_up_to_a_bound_every_square_is_a_point() -> None:
    small, large = (after(played([decode(9, 0)], n)) for n in (4096, 4128))
    assert traces(cells_figure(small))["cells"]["type"] == "scatter"
    assert traces(cells_figure(small, clickable=False))["cells"]["type"] == "heatmap"
    assert traces(cells_figure(large))["cells"]["type"] == "heatmap"


def every_figure() -> list[Any]:
    part, ubatch = stored(played([decode(3, 0)], 64, n_pad=32))
    states = play(load("shared-states"))
    return [cells_figure(part), mask_figure(part, ubatch), states_figure(states.cursor().seek(5).first)]


@pytest.mark.parametrize("which", range(3), ids=["cells", "mask", "states"])
def test_points_are_the_second_trace_and_own_their_squares(which: int) -> None:
    drawn = spec(every_figure()[which])
    layer = drawn["data"][CURVE]
    assert layer["name"] in {"cells", "squares"}
    assert layer["text"] == ""
    assert layer["mode"] == "text"
    assert layer["marker"]["maxdisplayed"] == 1, "a point that is displayed is a node in the page"
    assert len(layer["hovertext"]) == len(layer["x"])
    assert drawn["layout"]["hoverdistance"] == -1


@pytest.mark.parametrize("which", range(3), ids=["cells", "mask", "states"])
def test_a_selection_dims_nothing(which: int) -> None:
    """Plotly fades the text and the points of every trace that are not selected, unless told what they look like."""
    for trace in spec(every_figure()[which])["data"]:
        if trace["type"] == "scatter" and trace["name"] != "squares":
            assert "color" in trace["selected"]["textfont"], trace["name"]
            assert trace["unselected"]["marker"]["opacity"] == 1, trace["name"]


def test_a_square_of_the_mask_can_be_outlined() -> None:
    part, ubatch = stored(played([decode(3, 0)], 64, n_pad=32))
    shapes = spec(mask_figure(part, ubatch, selected=(1, 30)))["layout"]["shapes"]
    assert {(shape["path"], shape["xref"], shape["yref"]) for shape in shapes} == {
        ("M29.5,0.5H30.5V1.5H29.5Z", "x2", "y2")
    }
    for outside in ((3, 0), (0, 32), (-1, 0), (0, -1)):
        assert not spec(mask_figure(part, ubatch, selected=outside))["layout"].get("shapes")


def test_the_points_of_a_map_stay_light() -> None:
    part = after(played([decode(900, 0)], 1024))
    heat, points = (len(cells_figure(part, clickable=clickable).to_json()) for clickable in (False, True))
    assert points < heat + 20_000
    assert traces(cells_figure(part))["cells"]["x"].dtype == np.int16
