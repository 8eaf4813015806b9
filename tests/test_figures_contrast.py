"""Every text of every figure reads at 4.5:1 on what is behind it, in both themes (WCAG 2, criterion 1.4.3)."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kvmodel.beats import Marks
from kvmodel.defrag import plan_defrag
from kvmodel.figures import (
    cells_figure,
    defrag_figure,
    kshift_arrows,
    kshift_heatmap,
    mask_figure,
    overview_figure,
    shift_figure,
    states_figure,
    usage_figure,
)
from kvmodel.figures.palette import THEMES, Theme, theme
from kvmodel.kshift import kshift_report, random_key
from kvmodel.library import load
from kvmodel.player import play
from kvmodel.rope import RopeParams
from tests.figures import decode, played, scattered, shared_prefix, spec
from tests.test_palette import contrast

READS = 4.5


def figures(name: Any) -> dict[str, Any]:
    """Each figure with as much of its words and marks as it can have."""
    timeline = shared_prefix()
    part, ubatch = timeline.cursor().seek(timeline.frame_of(3)).first, timeline.frames[timeline.frame_of(3)].ubatch
    states, rm = play(load("shared-states")), {"op": "seq_rm", "seq": 0, "p0": 2, "p1": 4}
    holes = played([decode(6, 0), decode(3, 1), rm], 32)
    before = holes.cursor().seek(holes.frame_of(3)).first
    report = kshift_report(RopeParams(8), random_key(8), pos=9, shift=-2)
    marks = Marks(tried=(1, 3), blocked=(3, 5), slot=(6, 9), cells=np.array([20]))
    many = scattered(64, 60)
    return {
        "cells": cells_figure(many, marks=marks, differs=[4], changed=[2], selected=7, theme=name),
        "positions": cells_figure(many, colour="position", theme=name),
        "shifts": cells_figure(many, colour="shift", theme=name),
        "overview": overview_figure(scattered(4096, 5), window=(0, 1024), changed=[3], theme=name),
        "mask": mask_figure(part, ubatch, padding=True, selected=(0, 0), theme=name),
        "usage": usage_figure(timeline, "kv", step=2, theme=name),
        "defrag": defrag_figure(before, plan_defrag(before.pos[:9] >= 0, 4), n_moved=0, theme=name),
        "shift": shift_figure(many, theme=name),
        "states": states_figure(states.cursor().seek(5).first, before=states.start["kv"], theme=name),
        "arrows": kshift_arrows(report, theme=name),
        "pairs": kshift_heatmap(report, theme=name),
    }


def fonts(node: Any) -> Iterator[str]:
    """The colours of all fonts below a node."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in {"font", "tickfont", "textfont"} and isinstance(value, dict) and "color" in value:
                yield from [value["color"]] if isinstance(value["color"], str) else value["color"]
            else:
                yield from fonts(value)
    elif isinstance(node, list):
        for value in node:
            yield from fonts(value)


def on_paper(figure: Any) -> set[str]:
    """Colours of the texts that stand on the page: the layout's, and those of traces that write beside squares."""
    drawn = spec(figure)
    scales = [trace["colorbar"] for trace in drawn["data"] if "colorbar" in trace]
    beside = [trace["textfont"] for trace in drawn["data"] if trace.get("name") in {"numbers", "far tails"}]
    return {*fonts(drawn["layout"]), *fonts(scales), *(font["color"] for font in beside)}


@pytest.mark.parametrize("name", THEMES)
def test_words_read_on_the_page(name: Any) -> None:
    page: Theme = theme(name)
    for what, figure in figures(name).items():
        colours = on_paper(figure)
        assert colours, what
        for colour in colours:
            assert contrast(colour, page.paper) >= READS, (what, colour)


@pytest.mark.parametrize("name", THEMES)
def test_no_text_is_set_in_a_colour_of_its_own(name: Any) -> None:
    """Legends colour their marks, never their words."""
    for what, figure in figures(name).items():
        for note in spec(figure)["layout"]["annotations"]:
            outside = note["text"].split("</span>")[1:] if note.get("name") == "legend" else [note["text"]]
            assert all("color:" not in words.split("<span")[0] for words in outside), what


@pytest.mark.parametrize("name", THEMES)
def test_marks_that_are_lines_stand_out_from_the_page(name: Any) -> None:
    """3:1 for graphics (WCAG 2, criterion 1.4.11); fills have words, patterns or places beside their colour."""
    page = theme(name)
    pointing = spec(figures(name)["cells"])["layout"]["shapes"]
    lines = {shape["line"]["color"] for shape in pointing} - {page.paper}
    assert lines == {page.ink, page.accent}
    assert min(contrast(line, page.paper) for line in lines) >= 3
