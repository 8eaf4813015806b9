"""The picture of a defragmentation against moves worked out by hand."""

from typing import Any

import numpy as np
import pytest

from kvmodel.defrag import DefragPlan, plan_defrag
from kvmodel.errors import ParamError
from kvmodel.figures import defrag_figure
from kvmodel.figures.palette import LIGHT, theme
from kvmodel.snapshot import PartSnapshot
from tests.figures import after, colours_of, decode, legend, played, shapes, spec, traces

SKY, ORANGE = "#56B4E9", "#E69F00"
EMPTY = LIGHT.empty


@pytest.fixture(scope="module")
def part() -> PartSnapshot:
    """Sequence 0 in cells 0-1 and 4-5, holes in 2-3, sequence 1 in 6-8: cells 7-8 fill the holes."""
    return after(played([decode(6, 0), decode(3, 1), {"op": "seq_rm", "seq": 0, "p0": 2, "p1": 4}], 32))


def test_both_rows_have_the_colours_of_their_owners(part: PartSnapshot) -> None:
    drawn = traces(defrag_figure(part, plan_defrag(part.pos[:9] >= 0, 0)))
    before, moved = (colours_of(drawn[name])[0].tolist() for name in ("before", "after"))
    assert before == [SKY] * 2 + [EMPTY] * 2 + [SKY] * 2 + [ORANGE] * 3
    assert moved == [SKY] * 2 + [ORANGE] * 2 + [SKY] * 2 + [ORANGE, EMPTY, EMPTY]


def test_a_block_has_a_ribbon_from_place_to_place(part: PartSnapshot) -> None:
    figure = defrag_figure(part, plan_defrag(part.pos[:9] >= 0, 0))
    [ribbon] = shapes(figure, LIGHT.accent)
    corners = [tuple(map(float, point.split(","))) for point in ribbon["path"].strip("MZ").split("L")]
    assert [x for x, _ in corners] == [6.5, 8.5, 3.5, 1.5]
    top, bottom = corners[0][1], corners[2][1]
    rows = traces(figure)
    assert rows["before"]["y0"] - rows["before"]["dy"] / 2 == pytest.approx(top)
    assert rows["after"]["y0"] + rows["after"]["dy"] / 2 == pytest.approx(bottom)


def test_hover_names_where_a_cell_goes(part: PartSnapshot) -> None:
    rows = [
        trace["text"][0]
        for trace in spec(defrag_figure(part, plan_defrag(part.pos[:9] >= 0, 0)))["data"]
        if "text" in trace
    ]
    assert rows[0][7] == "<b>before: cell 7</b><br>position 1, sequences 1<br>goes to cell 2"
    assert rows[0][2] == "<b>before: cell 2</b><br>empty"
    assert rows[1][2] == "<b>after: cell 2</b><br>position 1, sequences 1<br>came from cell 7"
    assert rows[1][0] == "<b>after: cell 0</b><br>position 0, sequences 0"


def test_the_legend_counts_moves_against_the_budget(part: PartSnapshot) -> None:
    filled = part.pos[:9] >= 0
    assert legend(defrag_figure(part, plan_defrag(filled, 0)))[-1] == "1 block move"
    assert legend(defrag_figure(part, plan_defrag(filled, 7)))[-1] == "1 block move of at most 7"


def test_without_holes_nothing_moves() -> None:
    part = after(played([decode(5, 0)], 32))
    figure = defrag_figure(part, plan_defrag(part.pos[:5] >= 0, 0))
    assert legend(figure)[-1] == "nothing moves"
    assert shapes(figure, LIGHT.accent) == []
    assert (traces(figure)["before"]["z"] == traces(figure)["after"]["z"]).all()


def test_an_empty_cache_can_be_drawn() -> None:
    part = after(played([], 32))
    figure = defrag_figure(part, plan_defrag(np.zeros(0, np.bool_), 0))
    assert set(colours_of(traces(figure)["before"]).ravel()) == {EMPTY}


def test_a_large_cache_stays_light() -> None:
    holes = [{"op": "seq_rm", "seq": 0, "p0": p, "p1": p + 8} for p in range(0, 16_000, 32)]
    part = after(played([decode(16_000, 0), *holes], 16_384))
    figure = defrag_figure(part, plan_defrag(part.pos[:16_000] >= 0, 0))
    assert traces(figure)["before"]["z"].shape == (1, 16_000)
    assert len(figure.to_json()) < 200_000


@pytest.mark.parametrize("name", ["light", "dark"])
def test_the_page_has_its_own_colours(part: PartSnapshot, name: str) -> None:
    figure = defrag_figure(part, plan_defrag(part.pos[:9] >= 0, 0), theme=name)
    assert spec(figure)["layout"]["paper_bgcolor"] == theme(name).paper


@pytest.fixture(scope="module")
def holes() -> tuple[PartSnapshot, DefragPlan]:
    """Cells 2-3 and 6-7 of 12 are empty: cells 8-9 go to 6-7, then cells 10-11 to 2-3."""
    rm = [{"op": "seq_rm", "seq": 0, "p0": p, "p1": p + 2} for p in (2, 6)]
    part = after(played([decode(10, 0), decode(2, 1), *rm], 32))
    return part, plan_defrag(part.pos[:12] >= 0, 16)


def test_under_way_the_lower_row_shows_the_moves_made(holes: tuple[PartSnapshot, DefragPlan]) -> None:
    part, plan = holes
    assert plan.moves.tolist() == [[8, 6, 2], [10, 2, 2]]
    rows = [
        colours_of(traces(defrag_figure(part, plan, n_moved=n))["after"])[0].tolist()
        for n in range(len(plan.moves) + 1)
    ]
    sky, hole, orange = [SKY] * 2, [EMPTY] * 2, [ORANGE] * 2
    assert rows == [
        sky + hole + sky + hole + sky + orange,
        sky + hole + sky + sky + hole + orange,
        sky + orange + sky + sky + hole + hole,
    ]
    whole = traces(defrag_figure(part, plan))
    assert colours_of(whole["after"])[0].tolist() == rows[-1]


def test_ribbons_tell_made_next_and_later_apart(holes: tuple[PartSnapshot, DefragPlan]) -> None:
    part, plan = holes
    looks = {
        n: {
            (shape["line"]["color"], shape["line"]["dash"], shape["opacity"]): shape["path"].split(",")[0]
            for shape in spec(defrag_figure(part, plan, n_moved=n))["layout"]["shapes"]
            if "fillcolor" in shape
        }
        for n in range(3)
    }
    made, coming, later = (LIGHT.accent, "solid", 0.75), (LIGHT.ink, "solid", 1), (LIGHT.accent, "dot", 0.15)
    assert looks == {
        0: {coming: "M7.5", later: "M9.5"},
        1: {made: "M7.5", coming: "M9.5"},
        2: {made: "M7.5"},
    }


def test_the_legend_counts_the_moves_made(holes: tuple[PartSnapshot, DefragPlan]) -> None:
    part, plan = holes
    assert legend(defrag_figure(part, plan, n_moved=1))[-2:] == ["1 of 2 moves, budget 16", "next move"]
    assert legend(defrag_figure(part, plan, n_moved=2))[-1] == "2 of 2 moves, budget 16"
    free = plan_defrag(part.pos[:12] >= 0, 0)
    assert legend(defrag_figure(part, free, n_moved=2))[-1] == "2 of 2 moves, no budget"
    rows = [spec(defrag_figure(part, plan, n_moved=n))["layout"]["yaxis"]["ticktext"][1] for n in range(3)]
    assert rows == ["after 0", "after 1", "after"]


@pytest.mark.parametrize("n_moved", [-1, 3, "1", True])
def test_more_moves_than_planned_are_refused(holes: tuple[PartSnapshot, DefragPlan], n_moved: Any) -> None:
    with pytest.raises(ParamError, match="allowed: a whole number from 0 to 2"):
        defrag_figure(*holes, n_moved=n_moved)


def test_of_many_moves_those_around_the_next_are_drawn() -> None:
    rm = [{"op": "seq_rm", "seq": 0, "p0": p, "p1": p + 1} for p in range(0, 3000, 2)]
    part = after(played([decode(6000, 0), *rm], 8192))
    plan = plan_defrag(part.pos[:6000] >= 0, 0)
    assert len(plan.moves) == 1500
    drawn = spec(defrag_figure(part, plan, n_moved=900))["layout"]["shapes"]
    assert sum(shape["path"].count("M") for shape in drawn if "fillcolor" in shape) == 500
    assert any(shape["line"]["color"] == LIGHT.ink for shape in drawn)
