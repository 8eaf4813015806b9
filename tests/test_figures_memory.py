"""The pictures of memory and their tables against bytes worked out by hand and figures that real runs printed."""

import re
from typing import Any

import numpy as np
import pytest

from kvmodel.errors import ParamError
from kvmodel.figures import (
    checks_table,
    growth_figure,
    growth_table,
    memory_figure,
    memory_table,
    plans_figure,
    plans_table,
    savings_figure,
    savings_table,
)
from kvmodel.figures.memory_words import describe_growth, describe_memory, describe_plans, describe_savings
from kvmodel.figures.palette import theme
from kvmodel.formats.memlog import reconcile
from kvmodel.geometry import Geometry
from kvmodel.memory import MemoryPlan, Settings, growth, plan, savings
from tests.figures import legend, notes, spec, traces
from tests.memory_cases import ROWS, planned
from tests.sources import ROOT

MIB = 1 << 20
HEAD = 8 * 256 * 2
"""Bytes of a K row of Gemma 3 12B in f16: 8 heads of 256 elements."""

BASE, WINDOW = 32768 * HEAD, (4 * 1024 + 512) * HEAD
"""Bytes of K of one of its layers for 32,768 positions: without a window, and with one of 1,024 for four sequences."""

GEMMA = Geometry(
    48, 8, 256, 256, name="Gemma 3 12B", arch="gemma3", swa_type="standard", n_swa=1024,
    swa_layers=tuple(il % 6 < 5 for il in range(48)),
)  # fmt: skip
FOUR = Settings(n_ctx=32768, n_seq_max=4)
GIB = 1 << 30


@pytest.fixture(scope="module")
def gemma() -> MemoryPlan:
    return plan(GEMMA, FOUR)


def test_a_bar_for_each_layer_holds_its_bytes(gemma: MemoryPlan) -> None:
    drawn = traces(memory_figure(gemma))
    assert list(drawn) == ["K, base", "V, base", "K, window (swa)", "V, window (swa)"]
    assert drawn["K, base"]["x"].tolist() == [5, 11, 17, 23, 29, 35, 41, 47]
    assert set(drawn["V, base"]["customdata"].tolist()) == {BASE}
    assert len(drawn["K, window (swa)"]["x"]) == 40
    assert set(drawn["K, window (swa)"]["customdata"].tolist()) == {WINDOW}
    assert drawn["K, base"]["y"][0] == 128


def test_halves_and_caches_differ_in_more_than_colour(gemma: MemoryPlan) -> None:
    figure = memory_figure(gemma)
    shapes = [trace["marker"]["pattern"]["shape"] for trace in spec(figure)["data"]]
    assert len(set(shapes)) == 4
    assert legend(figure) == ["K, base", "V, base", "K, window (swa)", "V, window (swa)"]
    assert spec(figure)["layout"]["barmode"] == "stack"


def test_a_bar_for_each_cache_ends_with_its_sum(gemma: MemoryPlan) -> None:
    figure = memory_figure(gemma, by="cache")
    assert {note["y"]: note["text"] for note in notes(figure)} == {
        "base": "2,048.00 MiB",
        "window (swa)": "1,440.00 MiB",
    }
    drawn = traces(figure)
    assert drawn["K, base"]["customdata"].tolist() == [8 * BASE, 0]
    assert drawn["V, window (swa)"]["customdata"].tolist() == [0, 40 * WINDOW]


def test_a_bar_for_each_type_stacks_the_caches() -> None:
    figure = memory_figure(plan(GEMMA, Settings(n_ctx=32768, n_seq_max=4, type_k="q8_0")), by="type")
    k = (8 * BASE + 40 * WINDOW) * 34 / 64
    assert {note["y"]: note["text"] for note in notes(figure)} == {
        "K in q8_0": f"{k / MIB:,.2f} MiB",
        "V in f16": "1,744.00 MiB",
    }


def test_states_have_letters_of_their_own() -> None:
    mamba = planned(ROWS["m28"])
    figure = memory_figure(mamba, by="type")
    assert [note["y"] for note in notes(figure)] == ["R in f32", "S in f32"]
    assert legend(figure) == ["R, recurrent", "S, recurrent"]


def test_the_only_cache_is_called_by_what_it_holds() -> None:
    figure = memory_figure(plan(Geometry(2, 1, 64, 64), Settings(n_ctx=256)), by="cache")
    assert [note["y"] for note in notes(figure)] == ["K and V"]
    assert legend(figure) == ["K", "V"]


@pytest.mark.parametrize("name", ["light", "dark"])
def test_every_figure_takes_the_colours_of_the_page(gemma: MemoryPlan, name: Any) -> None:
    grown = growth(GEMMA, FOUR, "n_ctx", [4096, 32768])
    figures = [
        memory_figure(gemma, theme=name),
        memory_figure(gemma, by="cache", theme=name),
        savings_figure(savings(GEMMA, FOUR), theme=name),
        growth_figure(grown, now=4096, theme=name),
        plans_figure({"A": gemma}, theme=name),
    ]
    assert {spec(figure)["layout"]["paper_bgcolor"] for figure in figures} == {theme(name).paper}


def test_an_encoder_has_an_empty_picture() -> None:
    encoder = plan(Geometry(12, 12, 64, 64, name="an encoder", has_cache=False))
    assert spec(memory_figure(encoder))["data"] == []
    assert len(memory_table(encoder)) == 0
    assert describe_memory(encoder) == "an encoder has no cache."


@pytest.mark.parametrize("make", [memory_figure, memory_table])
def test_another_way_to_stack_is_refused(gemma: MemoryPlan, make: Any) -> None:
    with pytest.raises(ParamError, match="layer, cache or type"):
        make(gemma, by="head")


def test_the_table_has_the_bytes_of_the_bars(gemma: MemoryPlan) -> None:
    layers = memory_table(gemma)
    assert layers["layer"].tolist() == list(range(48))
    assert layers.loc[5, ["cache", "K bytes", "V bytes", "MiB"]].tolist() == ["base", BASE, BASE, 256.0]
    caches = memory_table(gemma, by="cache")
    assert caches["MiB"].tolist() == [2048.0, 1440.0]
    assert caches["cells"].tolist() == [32768, 4608]
    assert memory_table(gemma, by="type")["bytes"].tolist() == [8 * BASE, 8 * BASE, 40 * WINDOW, 40 * WINDOW]


PRINTED = re.compile(r"KV self size = +([\d.]+) MiB, K \(\w+\): +([\d.]+), V \(\w+\): +([\d.]+)")
"""All, K and V as the older versions print them."""


@pytest.mark.parametrize("row", ["m01", "m04", "m05", "m11"])
def test_the_table_has_the_figures_that_runs_printed(row: str) -> None:
    printed = PRINTED.match(ROWS[row]["printed_as"])
    assert printed
    [cache] = memory_table(planned(ROWS[row]), by="cache")[["MiB", "K MiB", "V MiB"]].to_numpy().tolist()
    assert cache == [float(size) for size in printed.groups()]


def test_what_a_choice_takes_saves_and_costs() -> None:
    found = savings(GEMMA, FOUR)
    drawn = traces(savings_figure(found))
    labels = list(drawn["takes"]["y"])
    total = 2 * (8 * BASE + 40 * WINDOW)
    at = labels.index("K in q8_0")
    assert drawn["saves"]["customdata"][at] == total / 2 * (1 - 34 / 64)
    assert drawn["takes"]["customdata"][at] + drawn["saves"]["customdata"][at] == total
    full = labels.index("window layers in full size")
    assert drawn["takes more"]["customdata"][full] == 2 * 40 * (BASE - WINDOW)
    assert drawn["takes"]["customdata"][full] == total


def test_a_choice_says_what_it_saves_and_that_it_is_refused() -> None:
    told = {note["y"]: note["text"] for note in notes(savings_figure(savings(GEMMA, FOUR))) if note.get("yref") == "y"}
    assert told["K in q8_0"] == "saves 817.50 MiB"
    assert told["V in q8_0"] == "saves 817.50 MiB, refused"
    assert told["window layers in full size"] == "takes 8,800.00 MiB more"
    assert told["flash attention on"] == "changes nothing"


def lines(figure: Any) -> dict[str, dict[str, Any]]:
    return {shape["name"]: shape for shape in spec(figure)["layout"]["shapes"]}


def test_the_budget_is_a_line_where_it_can_be_seen() -> None:
    found = savings(GEMMA, FOUR)
    drawn = lines(savings_figure(found, budget=8 * GIB))
    assert (drawn["now"]["x0"], drawn["budget"]["x0"]) == (3488, 8192)
    assert set(lines(savings_figure(found, budget=80 * GIB))) == {"now"}
    assert set(lines(savings_figure(found))) == {"now"}


@pytest.mark.parametrize(("budget", "sides"), [(8 * GIB, ("right", "left")), (2 * GIB, ("left", "right"))])
def test_words_of_two_lines_face_away_from_each_other(budget: int, sides: tuple[str, str]) -> None:
    words = {note["text"]: note["xanchor"] for note in notes(savings_figure(savings(GEMMA, FOUR), budget=budget))}
    assert (words["now"], words[f"budget {budget // GIB}.00 GiB"]) == sides


def test_no_choices_are_an_empty_picture() -> None:
    assert spec(savings_figure(()))["data"] == []
    assert describe_savings(()) == "Bars of 0 other choices, none of which saves memory."


def test_choices_as_a_table() -> None:
    table = savings_table(savings(GEMMA, FOUR)).set_index("other choice")
    assert table.loc["K in q8_0", ["MiB", "saves MiB", "llama.cpp"]].tolist() == [2670.5, 817.5, ""]
    assert "flash attention" in table.loc["V in q8_0", "llama.cpp"]


def test_growth_is_stacked_with_the_present_and_the_budget() -> None:
    grown = growth(GEMMA, FOUR, "n_ctx", [4096, 32768])
    figure = growth_figure(grown, now=32768, budget=8 * GIB)
    drawn = traces(figure)
    assert drawn["K, base"]["customdata"].tolist() == [8 * 4096 * HEAD, 8 * BASE]
    assert drawn["K, window (swa)"]["customdata"].tolist() == [40 * 4096 * HEAD, 40 * WINDOW]
    assert {trace["stackgroup"] for trace in drawn.values()} == {"bytes"}
    assert len({trace["fillpattern"]["shape"] for trace in drawn.values()}) == 4
    assert (lines(figure)["now"]["x0"], lines(figure)["budget"]["y0"]) == (32768, 8192)
    assert set(lines(growth_figure(grown, now=4096, budget=800 * GIB))) == {"now"}


def test_growth_as_a_table() -> None:
    table = growth_table(growth(GEMMA, FOUR, "n_seq_max", [1, 4]))
    assert table["n_seq_max"].tolist() == [1, 4]
    assert table["swa K bytes"].tolist() == [40 * 1536 * HEAD, 40 * WINDOW]
    assert table["MiB"].tolist() == [2528.0, 3488.0]


def test_plans_below_each_other(gemma: MemoryPlan) -> None:
    plans = {"A": gemma, "B": plan(Geometry(2, 1, 64, 64), Settings(n_ctx=8192))}
    figure = plans_figure(plans, budget=8 * GIB)
    sums = {note["y"]: note["text"] for note in notes(figure) if note.get("yref") == "y"}
    assert sums == {"A": "3,488.00 MiB", "B": "4.00 MiB"}
    assert lines(figure)["budget"]["x0"] == 8192
    assert spec(figure)["layout"]["yaxis"]["autorange"] == "reversed"
    table = plans_table(plans, budget=2 * GIB)
    assert table["left MiB"].tolist() == [2048 - 3488, 2044]
    assert "left MiB" not in plans_table(plans)


@pytest.mark.parametrize("n", [0, 5])
def test_from_one_to_four_plans(gemma: MemoryPlan, n: int) -> None:
    with pytest.raises(ParamError, match="from 1 to 4"):
        plans_figure({str(i): gemma for i in range(n)})


def test_a_log_as_a_table() -> None:
    text = (ROOT / "tests/data/live/0.3.11/swa-slide.log").read_text(encoding="utf-8")
    table = checks_table(reconcile(text))
    assert table["cache"].tolist()[:2] == ["base", "swa"]
    assert (table["printed MiB"] == table["computed MiB"]).all()
    assert (table["difference MiB"] == 0).all()
    number = int(table.loc[0, "line"])
    assert f"{table.loc[0, 'printed MiB']:.2f} MiB" in text.split("\n")[number - 1]


def test_a_size_that_cannot_be_computed_is_missing() -> None:
    line = (
        "llama_kv_cache_unified: size = 2.00 MiB ( 256 cells, 2 layers, 1 seqs), K (f16): 1.00 MiB, V (f16): 1.00 MiB"
    )
    table = checks_table(reconcile(line))
    assert np.isnan(table["computed MiB"]).all()
    assert np.isnan(table["difference MiB"]).all()
    assert table["printed MiB"].tolist() == [2.0]


def test_each_picture_in_one_sentence(gemma: MemoryPlan) -> None:
    told = describe_memory(gemma)
    assert "base 2,048.00 MiB in 8 layers, swa 1,440.00 MiB in 40 layers" in told
    assert "K and V in q4_0, with flash attention saves most" in describe_savings(savings(GEMMA, FOUR))
    grown = describe_growth(growth(GEMMA, FOUR, "n_seq_max", [1, 4]))
    assert grown == "A curve from 2.47 GiB at n_seq_max 1 to 3.41 GiB at 4."
    assert describe_plans({"A": gemma}) == "Stacked bars of 1 plan: A takes 3.41 GiB."
