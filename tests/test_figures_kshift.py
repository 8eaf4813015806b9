"""The pictures of a K-shift against turns worked out by hand."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from kvmodel.figures import kshift_arrows, kshift_heatmap, kshift_table
from kvmodel.figures.kshift_arrows import RADIUS
from kvmodel.figures.palette import theme
from kvmodel.kshift import KShiftReport, kshift_report, random_key
from kvmodel.rope import RopeParams
from tests.figures import legend, spec, traces

KEYS = ("before", "after", "fresh")


def quarter(**more: Any) -> KShiftReport:
    """One pair of length 5 at (5, 0); a second one that stays 0; two dimensions that are not rotated."""
    rope = RopeParams(4, freq_base=1e8)
    key = np.array([5, 0, 0, 0, 9, 9], np.float32)
    return kshift_report(rope, key, **{"pos": 0, "shift": 1} | more)


def arrow(figure: Any, name: str, pair: int) -> tuple[list[float], list[float]]:
    """Where an arrow starts, and how far it goes to the right and up."""
    trace = traces(figure)[name]
    x, y = (np.array(trace[axis], float)[3 * pair : 3 * pair + 2] for axis in "xy")
    return [x[0], y[0]], [x[1] - x[0], y[0] - y[1]]


@pytest.mark.parametrize(("name", "angle"), [("before", 0), ("after", 1), ("fresh", 1)])
def test_an_arrow_points_where_its_pair_does(name: str, angle: float) -> None:
    start, way = arrow(kshift_arrows(quarter()), name, 0)
    assert start == [0, 0]
    assert way == pytest.approx([RADIUS * np.cos(angle), RADIUS * np.sin(angle)], abs=1e-6)


def test_an_arrowhead_points_along_its_arrow() -> None:
    """Degrees from upright, with the clock: an arrow to the right has 90."""
    drawn = traces(kshift_arrows(quarter()))
    assert np.array(drawn["before"]["marker"]["angle"])[1] == pytest.approx(90)
    assert np.array(drawn["after"]["marker"]["angle"])[1] == pytest.approx(90 - np.degrees(1))
    sizes = np.array(drawn["after"]["marker"]["size"])
    assert (sizes.reshape(-1, 3) > 0).tolist() == [[False, True, False]] * 2


def test_a_pair_of_zeros_has_no_arrow() -> None:
    assert arrow(kshift_arrows(quarter()), "after", 1) == ([1, 0], [0, 0])


def test_the_wrong_sign_shows_as_two_directions() -> None:
    report = quarter(pos=2, shift=-1, k_shift=1)
    ways = [arrow(kshift_arrows(report), name, 0)[1] for name in KEYS]
    angles = [np.arctan2(up, right) for right, up in ways]
    assert angles == pytest.approx([2, 3, 1], abs=1e-6)


def test_a_grown_key_reaches_beyond_its_circle() -> None:
    rope = RopeParams(4, freq_scale=0.25, ext_factor=1.0)
    figure = kshift_arrows(kshift_report(rope, random_key(4), pos=3, shift=2, times=4))
    lengths = {name: np.hypot(*arrow(figure, name, 0)[1]) for name in KEYS}
    assert lengths["after"] == pytest.approx(RADIUS)
    assert lengths["before"] == pytest.approx(lengths["fresh"], rel=1e-5)
    assert lengths["after"] / lengths["fresh"] == pytest.approx((1 + 0.1 * np.log(4)) ** 4, rel=1e-5)
    circle = traces(figure)["circles"]
    assert np.hypot(circle["x"][0], circle["y"][0]) == pytest.approx(lengths["fresh"], rel=1e-5)


def test_the_arc_goes_the_way_of_the_turn() -> None:
    arc = traces(kshift_arrows(quarter(pos=9, shift=-2)))["turns"]
    n = len(arc["x"]) // 2 - 1
    angles = np.unwrap(np.arctan2(-np.array(arc["y"], float)[:n], np.array(arc["x"], float)[:n]))
    assert (angles[-1] - angles[0], angles[0] % (2 * np.pi)) == pytest.approx((-2, 9 - 2 * np.pi), abs=1e-5)


def test_squares_are_numbered_and_say_what_they_hold() -> None:
    drawn = traces(kshift_arrows(quarter()))
    assert drawn["numbers"]["text"] == ["0", "1"]
    assert drawn["pairs"]["text"][0].split("<br>") == [
        "<b>pair 0: dimensions 0 and 1</b>",
        "turned by +1 radians, due +1",
        "before: 5.0000, 0.0000",
        "after: 2.7015, 4.2074",
        "fresh: 2.7015, 4.2074",
    ]


@pytest.mark.parametrize(("n_rot", "columns", "rows"), [(6, 3, 1), (64, 8, 4), (128, 12, 6), (256, 16, 8)])
def test_squares_stand_in_rows(n_rot: int, columns: int, rows: int) -> None:
    drawn = traces(kshift_arrows(kshift_report(RopeParams(n_rot), random_key(n_rot), pos=5, shift=1)))
    x, y = (np.array(drawn["pairs"][axis], int) for axis in "xy")
    assert (x.max() + 1, y.max() + 1, len(x)) == (columns, rows, n_rot // 2)
    assert (y * columns + x).tolist() == list(range(n_rot // 2))


def test_more_pairs_than_there_is_room_for_are_counted() -> None:
    figure = kshift_arrows(kshift_report(RopeParams(300), random_key(300), pos=5, shift=1))
    assert len(traces(figure)["pairs"]["x"]) == 128
    assert legend(figure)[-1] == "first 128 of 150 pairs"


def test_the_legend_says_which_shift() -> None:
    assert legend(kshift_arrows(quarter(pos=4000, shift=-1000)))[:3] == [
        "before, at position 4,000", "after the K-shift of -1,000", "made fresh at position 3,000",
    ]  # fmt: skip
    assert legend(kshift_arrows(quarter(times=3)))[1] == "after the 3 K-shifts of +1"


def test_the_heatmap_holds_the_pairs_of_each_key() -> None:
    report = kshift_report(RopeParams(8, "neox"), random_key(12), pos=5, shift=-2, type_k="f16")
    drawn = traces(kshift_heatmap(report))
    for name in (*KEYS, "difference"):
        assert drawn[name]["z"].tolist() == [getattr(report, name)[:4].tolist(), getattr(report, name)[4:8].tolist()]
    assert drawn["before"]["customdata"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_the_difference_has_its_own_scale() -> None:
    report = quarter(pos=9, shift=-3)
    drawn = traces(kshift_heatmap(report))
    largest = max(float(np.abs(getattr(report, name)[:4]).max()) for name in KEYS)
    for name in KEYS:
        assert (drawn[name]["zmin"], drawn[name]["zmax"]) == (-largest, largest)
    assert drawn["difference"]["zmax"] == report.error > 0
    assert legend(kshift_heatmap(report)) == [
        f"{-largest:.2f}", "0", f"{largest:+.2f}", f"difference: {-report.error:.2g} to {report.error:+.2g}",
        "2 dimensions are not rotated",
    ]  # fmt: skip


def test_no_difference_is_said() -> None:
    figure = kshift_heatmap(quarter(times=0))
    assert "no difference" in legend(figure)
    assert not traces(figure)["difference"]["z"].any()


def test_bands_do_not_touch() -> None:
    drawn = traces(kshift_heatmap(quarter()))
    tops = [drawn[name]["y0"] - drawn[name]["dy"] / 2 for name in (*KEYS, "difference")]
    assert all(next_ - top > 2 * drawn["before"]["dy"] for top, next_ in pairwise(tops))


@pytest.mark.parametrize("draw", [kshift_arrows, kshift_heatmap])
@pytest.mark.parametrize("name", ["light", "dark"])
def test_the_page_gives_the_colours(draw: Any, name: Any) -> None:
    figure = spec(draw(quarter(), theme=name))
    assert figure["layout"]["paper_bgcolor"] == theme(name).paper
    drawn = {trace["name"]: trace for trace in figure["data"]}
    if draw is kshift_arrows:
        styles = [tuple(drawn[key]["line"][part] for part in ("color", "width", "dash")) for key in KEYS]
        assert [len(set(column)) for column in zip(*styles, strict=True)] == [3, 3, 2]
    else:
        assert [stop[1] for stop in drawn["after"]["colorscale"]] == [
            theme(name).falling, theme(name).filled, theme(name).rising,
        ]  # fmt: skip


def test_a_wide_head_stays_light() -> None:
    report = kshift_report(RopeParams(256), random_key(256), pos=5, shift=1)
    assert len(kshift_arrows(report).to_json()) < 200_000
    assert len(kshift_heatmap(report).to_json()) < 50_000


def test_the_table_says_the_same() -> None:
    report = kshift_report(RopeParams(8, "neox"), random_key(12), pos=9, shift=-6, k_shift=6)
    table, drawn = kshift_table(report), traces(kshift_heatmap(report))
    assert table["pair"].tolist() == [0, 1, 2, 3]
    assert table[["dimension x", "dimension y"]].to_numpy().T.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    for name in KEYS:
        assert table[[f"{name} x", f"{name} y"]].to_numpy().T.tolist() == drawn[name]["z"].tolist()
    assert table["largest difference"].tolist() == np.abs(drawn["difference"]["z"]).max(axis=0).tolist()
    assert table["turned (rad)"].tolist() == pytest.approx([6, 0.6, 0.06, 0.006])
    assert (table["turned (rad)"] + table["due (rad)"]).abs().max() == pytest.approx(0, abs=1e-6)
