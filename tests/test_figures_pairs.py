"""Maps side by side in narrow panels, and the deltas of the older cache, those left in empty cells among them."""

import re

import pytest

from kvmodel.figures import cells_figure, cells_table
from kvmodel.figures.grid import Grid
from kvmodel.figures.palette import LIGHT
from kvmodel.library import load
from kvmodel.player import play
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline
from tests.figures import after, blocks, colours_of, decode, hover_words, legend, played, scattered, spec, traces

NARROW = 400


@pytest.mark.parametrize(
    ("n", "rows", "columns"),
    [(8, 1, 8), (32, 4, 8), (64, 8, 8), (96, 6, 16), (128, 8, 16), (1024, 32, 32), (1536, 24, 64), (4096, 64, 64)],
)
def test_a_narrow_map_is_about_as_wide_as_high(n: int, rows: int, columns: int) -> None:
    grid = Grid.of(n, width=262)
    assert (grid.rows, grid.columns) == (rows, columns)


@pytest.fixture(scope="module")
def pair() -> dict[str, PartSnapshot]:
    timeline = play(load("recorded-window-pair"))
    return timeline.cursor().seek(timeline.frame_of(8)).parts


@pytest.mark.parametrize(("half", "rows", "columns"), [("base", 8, 16), ("swa", 8, 8)])
def test_each_half_shows_every_cell_with_its_text(
    pair: dict[str, PartSnapshot], half: str, rows: int, columns: int
) -> None:
    part = pair[half]
    figure = cells_figure(part, width=NARROW)
    by_name = traces(figure)
    points = by_name["cells"]
    assert (len(points["x"]), points["y"].max() + 1, points["x"].max() + 1) == (rows * columns, rows, columns)
    told = [int(re.search(r"<b>(\d+)</b>", text)[1]) for text in by_name["text in cells"]["text"]]
    assert told == part.pos[part.pos >= 0].tolist()
    assert by_name["text in cells"]["textfont"]["size"] == 10
    assert spec(figure)["layout"]["height"] <= 400


@pytest.mark.parametrize(("width", "fits"), [(NARROW, True), (366, True), (360, False), (335, False)])
def test_two_digits_stand_two_pixels_from_each_side(pair: dict[str, PartSnapshot], width: int, fits: bool) -> None:
    """16 columns share the width less 138 pixels of margins; two digits of 5 pixels need 14."""
    assert ((width - 138) / 16 >= 14) == fits
    assert ("text in cells" in traces(cells_figure(pair["base"], width=width))) == fits


def test_numbers_of_columns_stand_apart(pair: dict[str, PartSnapshot]) -> None:
    axis = spec(cells_figure(pair["base"], width=NARROW))["layout"]["xaxis"]
    assert axis["ticktext"] == ["+0", "+2", "+4", "+6", "+8", "+10", "+12", "+14"]
    assert axis["tickangle"] == 0


def test_a_wide_map_is_what_it_was(pair: dict[str, PartSnapshot]) -> None:
    assert cells_figure(pair["base"], width=698).to_json() == cells_figure(pair["base"]).to_json()


@pytest.mark.parametrize("colour", ["sequence", "position", "shift", "changed"])
def test_a_place_too_narrow_still_holds_a_map(colour: str) -> None:
    figure = cells_figure(scattered(1024, 4), width=10, colour=colour, changed=[3])
    assert traces(figure)["cells"]["x"].tolist() == list(range(32)) * 32


@pytest.mark.parametrize(("width", "legend_height"), [(None, 0), (NARROW, 20)])
def test_the_bar_of_a_scale_stands_above_its_figures_and_beside_or_above_the_legend(
    pair: dict[str, PartSnapshot], width: int | None, legend_height: int
) -> None:
    figure = spec(cells_figure(pair["base"], colour="position", width=width))
    layout, bar = figure["layout"], figure["data"][0]["colorbar"]
    below = bar["y"] * layout["height"]
    assert below == pytest.approx(legend_height + 13)
    assert layout["margin"]["b"] >= below + 8 + 14


@pytest.fixture(scope="module")
def older() -> Timeline:
    return play(load("older-partial-decode"))


def test_a_delta_left_in_an_empty_cell_shows_at_its_foot(older: Timeline) -> None:
    figure = cells_figure(after(older, 6), colour="shift")
    cells = blocks(traces(figure)["colours"], 4, 16)
    assert [set(cells[cell].ravel()) for cell in (19, 24, 30)] == [{LIGHT.falling}, {LIGHT.filled}, {LIGHT.empty}]
    assert cells[20, :, 0].tolist() == [LIGHT.empty] * 3 + [LIGHT.falling]
    assert legend(figure) == ["empty", "empty, delta left"]
    assert traces(figure)["colours"]["colorbar"]["title"]["text"] == "pending delta"


def test_a_delta_left_is_told(older: Timeline) -> None:
    part = after(older, 6)
    figure = cells_figure(part, colour="shift")
    by_name, hover = traces(figure), hover_words(figure)
    assert [hover[cell] for cell in (20, 30)] == ["empty<br>pending delta -4", "empty"]
    assert len(by_name["text in cells"]["text"]) == 22 + 4
    assert sum("-4" in text for text in by_name["text in cells"]["text"]) == 12
    table = cells_table(part)
    assert table["delta"].tolist()[18:22] == [-4, -4, -4, -4]
    assert table["position"].isna().tolist()[18:22] == [False, False, True, True]


def test_without_anything_left_the_map_is_flat(older: Timeline) -> None:
    figure = cells_figure(after(older, 5), colour="shift")
    assert traces(figure)["colours"]["z"].shape == (4, 16)
    assert legend(figure) == ["empty"]
    flat = cells_figure(after(played([decode(4, 0)]), 1), colour="shift")
    assert legend(flat) == ["in use, no shift pending", "empty"]


def test_a_dark_page_has_its_own_scale(older: Timeline) -> None:
    figure = cells_figure(after(older, 6), colour="shift", theme="dark")
    assert LIGHT.falling not in set(colours_of(traces(figure)["colours"]).ravel())
