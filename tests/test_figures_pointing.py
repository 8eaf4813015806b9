"""The marks of a beat and of a comparison, against cells placed by hand in rows of 16."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.beats import Marks
from kvmodel.figures import cells_figure
from kvmodel.figures.grid import Grid
from kvmodel.figures.palette import DARK, LIGHT
from kvmodel.snapshot import PartSnapshot
from tests.figures import after, boxes, decode, legend, played, shapes


@pytest.fixture(scope="module")
def part() -> PartSnapshot:
    return after(played([decode(9, 0)], 64))


@pytest.mark.parametrize(
    ("run", "path"),
    [
        ((3, 5), "M2.5,-0.5H4.5V0.5H2.5Z"),
        ((0, 16), "M-0.5,-0.5H15.5V0.5H-0.5Z"),
        ((14, 18), "M13.5,-0.5H15.5V0.5H13.5ZM-0.5,0.5H1.5V1.5H-0.5Z"),
        ((4, 40), "M3.5,-0.5H15.5V1.5H7.5V2.5H-0.5V0.5H3.5Z"),
        ((0, 64), "M-0.5,-0.5H15.5V2.5H15.5V3.5H-0.5V0.5H-0.5Z"),
        ((60, 99), "M11.5,2.5H15.5V3.5H11.5Z"),
        ((0, 0), ""),
        ((64, 70), ""),
    ],
)
def test_a_run_has_one_line_around_it(run: tuple[int, int], path: str) -> None:
    assert Grid(64, 16).contour(*run) == path


@given(begin=st.integers(0, 90), length=st.integers(0, 90), first=st.integers(0, 20))
def test_what_the_line_surrounds_is_the_run(begin: int, length: int, first: int) -> None:
    """The area within, by the shoelace formula, is the number of drawn cells."""
    drawn = set(range(begin, begin + length)) & set(range(first, first + 61))
    area = sum(_area(piece) for piece in Grid(61, 7, first=first).contour(begin, begin + length).split("Z") if piece)
    assert area == pytest.approx(len(drawn))


def _area(piece: str) -> float:
    start, *steps = piece.removeprefix("M").replace("H", " H").replace("V", " V").split()
    x, y = map(float, start.split(","))
    corners = [(x, y)]
    for step in steps:
        x, y = (float(step[1:]), y) if step[0] == "H" else (x, float(step[1:]))
        corners.append((x, y))
    turns = zip(corners, [*corners[1:], corners[0]], strict=True)
    return abs(sum(a * d - b * c for (a, b), (c, d) in turns)) / 2


def test_a_refused_run_and_what_stopped_it(part: PartSnapshot) -> None:
    figure = cells_figure(part, marks=Marks(tried=(20, 24), blocked=(24, 26)))
    [tried] = shapes(figure, LIGHT.ink, dash="dash")
    [blocked] = shapes(figure, LIGHT.ink, width=3)
    assert (tried["path"], blocked["path"]) == ("M3.5,0.5H7.5V1.5H3.5Z", "M7.5,0.5H9.5V1.5H7.5Z")
    assert legend(figure)[-2:] == ["looked at", "in the way"]


def test_cells_in_the_way_are_crossed_out(part: PartSnapshot) -> None:
    """Each cross lies within its cell; on a dark page its light lines have a dark edge."""
    figure = cells_figure(part, marks=Marks(blocked=(24, 27)), theme="dark")
    [cross] = shapes(figure, DARK.ink, width=1.5, dash="solid") or shapes(figure, DARK.ink, width=1.5)[-1:]
    ends = [tuple(map(float, point.split(","))) for point in cross["path"].replace("L", "M").split("M")[1:]]
    assert len(ends) == 3 * 4
    assert [round(x) for x, _ in ends] == [8] * 4 + [9] * 4 + [10] * 4
    assert {round(y) for _, y in ends} == {1}
    assert cross["path"] in [shape["path"] for shape in shapes(figure, DARK.paper, width=3.5)]


def test_small_squares_are_not_crossed() -> None:
    part = after(played([decode(9, 0)], 16_384))
    figure = cells_figure(part, marks=Marks(blocked=(24, 27)))
    assert len(shapes(figure, LIGHT.ink, width=3)) == 1
    assert shapes(figure, LIGHT.paper, width=3.5) == []


def test_a_slot_and_what_is_touched_beside_it(part: PartSnapshot) -> None:
    filled = cells_figure(part, marks=Marks(slot=(9, 12), cells=np.arange(9, 12)))
    [slot] = shapes(filled, LIGHT.accent, width=4)
    assert boxes(slot["path"]) == [(8.5, -0.5, 11.5, 0.5)]
    assert legend(filled)[-1] == "slot"
    touching = cells_figure(part, marks=Marks(cells=np.array([2, 3, 40])))
    [touched] = shapes(touching, LIGHT.accent, width=2)
    assert boxes(touched["path"]) == [(1.5, -0.5, 3.5, 0.5), (7.5, 1.5, 8.5, 2.5)]
    assert legend(touching)[-1] == "touched"


def test_a_beat_that_points_at_nothing_adds_nothing(part: PartSnapshot) -> None:
    plain = cells_figure(part)
    assert cells_figure(part, marks=Marks()).to_json() == plain.to_json()
    assert cells_figure(part, differs=[]).to_json() == plain.to_json()


def test_marks_outside_a_window_are_left_out() -> None:
    part = after(played([decode(9, 0)], 4096))
    marks = Marks(tried=(0, 70), blocked=(70, 90), slot=(2000, 2100), cells=np.array([5]))
    figure = cells_figure(part, window=(64, 1024), marks=marks, differs=[3])
    [tried] = shapes(figure, LIGHT.ink, dash="dash")
    assert boxes(tried["path"]) == [(-0.5, -0.5, 5.5, 0.5)]
    assert legend(figure)[1:] == ["looked at", "in the way"]


def test_what_differs_has_a_line_and_a_corner(part: PartSnapshot) -> None:
    figure = cells_figure(part, differs=np.array([3, 4, 17]), changed=[40])
    [line] = shapes(figure, LIGHT.ink, dash="dashdot")
    assert boxes(line["path"]) == [(2.5, -0.5, 4.5, 0.5), (0.5, 0.5, 1.5, 1.5)]
    [corners] = shapes(figure, LIGHT.ink, width=0)
    tips = [piece.split("H")[1].split("V")[0] for piece in corners["path"].split("Z")[:-1]]
    assert tips == ["3.5", "4.5", "1.5"]
    assert legend(figure)[-2:] == ["changed", "differs"]


def test_what_differs_in_a_pooled_map_marks_its_squares() -> None:
    part = after(played([decode(9, 0)], 262_144))
    [line] = shapes(cells_figure(part, differs=[1, 2, 3]), LIGHT.ink, dash="dashdot")
    assert boxes(line["path"]) == [(-0.5, -0.5, 1.5, 0.5)]
