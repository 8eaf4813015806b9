"""Usage over the steps against counts made by hand."""

import numpy as np
import pytest

from kvmodel.figures import usage_figure, usage_table
from kvmodel.figures.palette import theme
from kvmodel.timeline import Timeline
from tests.figures import decode, legend, notes, played, spec, traces


@pytest.fixture(scope="module")
def small() -> Timeline:
    """After the steps: 10, 40, 36 and 0 cells in use."""
    ops = [decode(10, 0), decode(30, 1), {"op": "seq_rm", "seq": 0, "p0": 6, "p1": -1}, {"op": "clear"}]
    return played(ops)


@pytest.fixture(scope="module")
def holes() -> Timeline:
    """2,560 cells in use; of the first 2,048 every second block of 64 is freed, step by step."""
    rm = [{"op": "seq_rm", "seq": 0, "p0": p, "p1": p + 64} for p in range(0, 2048, 128)]
    return played([decode(2048, 0), decode(512, 1), *rm], 4096)


def test_lines_hold_the_counts(small: Timeline) -> None:
    drawn = traces(usage_figure(small, "kv", step=2))
    assert drawn["used"]["x"].tolist() == [0, 1, 2, 3, 4]
    assert drawn["used"]["y"].tolist() == [0, 10, 40, 36, 0]
    assert drawn["n_kv"]["y"].tolist() == [32, 32, 64, 64, 32]


def test_bytes_are_those_of_the_cells(small: Timeline) -> None:
    """2 layers x 2 heads x 64 elements x 2 bytes, for K and for V: 1,024 bytes a cell."""
    drawn = traces(usage_figure(small, "kv", step=0))
    assert drawn["used"]["customdata"][:, 0] == pytest.approx(np.array([0, 10, 40, 36, 0]) * 1024 / 2**20)
    axis = spec(usage_figure(small, "kv", step=0))["layout"]["yaxis2"]
    assert axis["ticktext"] == ["0.00 MiB", "0.03 MiB", "0.06 MiB"]
    assert axis["range"] == spec(usage_figure(small, "kv", step=0))["layout"]["yaxis"]["range"]


@pytest.mark.parametrize("step", [0, 2, 4])
def test_the_current_step_is_marked(small: Timeline, step: int) -> None:
    drawn = usage_figure(small, "kv", step=step)
    figure = spec(drawn)
    [line] = figure["layout"]["shapes"]
    assert (line["x0"], line["x1"]) == (step, step)
    assert [note["text"] for note in notes(drawn)] == [f"<b>step {step}</b>"]
    dots = {
        (trace["x"][0], trace["y"][0])
        for trace in figure["data"]
        if trace.get("mode") == "markers" and trace["x"][0] is not None
    }
    assert dots == {(step, [0, 10, 40, 36, 0][step]), (step, [32, 32, 64, 64, 32][step])}


def test_no_fragmentation_is_said_on_hover_only(small: Timeline) -> None:
    figure = usage_figure(small, "kv", step=0)
    assert legend(figure) == ["used", "n_kv"]
    assert not traces(figure)["used"]["customdata"][:, 1].any()
    assert "yaxis3" not in spec(figure)["layout"]


def test_fragmentation_has_its_strip(holes: Timeline) -> None:
    figure = usage_figure(holes, "kv", step=3)
    assert legend(figure) == ["used", "n_kv"]
    assert [note["text"] for note in notes(figure)] == ["<b>step 3</b>", "fragmentation"]
    share = traces(figure)["fragmentation"]["y"]
    assert share[:4].tolist() == [0, 0, 0, np.float32(1) - np.float32(2560 - 64 + 32) / np.float32(2560)]
    assert share[-1] == np.float32(1) - np.float32(2560 - 16 * 64 + 32) / np.float32(2560)
    layout = spec(figure)["layout"]
    assert layout["yaxis3"]["domain"][1] < layout["yaxis"]["domain"][0]


@pytest.mark.parametrize("name", ["light", "dark"])
def test_lines_differ_by_dash_and_follow_the_page(small: Timeline, name: str) -> None:
    figure = usage_figure(small, "kv", step=1, theme=name)
    drawn = traces(figure)
    assert len({drawn[line]["line"]["dash"] for line in ("used", "n_kv")}) == 2
    assert spec(figure)["layout"]["paper_bgcolor"] == theme(name).paper


def test_a_start_alone_can_be_drawn() -> None:
    assert traces(usage_figure(played([]), "kv", step=0))["used"]["y"].tolist() == [0]


def test_the_table_says_the_same(holes: Timeline) -> None:
    drawn, table = traces(usage_figure(holes, "kv", step=0)), usage_table(holes, "kv")
    for column, line in (("used", "used"), ("n_kv", "n_kv"), ("fragmentation", "fragmentation")):
        assert table[column].tolist() == drawn[line]["y"].tolist()
    assert table["MiB in use"].tolist() == pytest.approx(drawn["used"]["customdata"][:, 0].tolist())


def test_labels_of_a_large_cache_have_room() -> None:
    """1,048,576 cells of 1,024 bytes: nine characters at the left, eleven at the right."""
    margin = spec(usage_figure(played([], 1 << 20), "kv", step=0))["layout"]["margin"]
    assert (margin["l"], margin["r"]) == (62, 74)
    small = spec(usage_figure(played([]), "kv", step=0))["layout"]["margin"]
    assert (small["l"], small["r"]) == (44, 64)
