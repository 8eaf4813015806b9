"""What is drawn around the cells: outlines, head, n_kv and the words beside them."""

from dataclasses import replace

import numpy as np
import pytest

from kvmodel.figures import cells_figure
from kvmodel.figures.palette import LIGHT
from kvmodel.timeline import Timeline
from tests.figures import (
    after,
    boxes,
    decode,
    legend,
    notes,
    played,
    shapes,
    shared_prefix,
)


@pytest.fixture(scope="module")
def shared() -> Timeline:
    return shared_prefix()


@pytest.mark.parametrize("colour", ["sequence", "position", "shift", "changed"])
def test_changed_cells_are_outlined(shared: Timeline, colour: str) -> None:
    changed = [3, 14, 15, 16, 17, 40]
    figure = cells_figure(after(shared), colour=colour, changed=np.array(changed))
    [shape] = shapes(figure, LIGHT.ink, width=2)
    outlined = [
        round(top + 0.5) * 16 + column
        for left, top, right, _ in boxes(shape["path"])
        for column in range(round(left + 0.5), round(right + 0.5))
    ]
    assert outlined == changed
    assert len(boxes(shape["path"])) == 4


def test_neighbouring_rows_have_one_line_around_them(shared: Timeline) -> None:
    figure = cells_figure(after(shared), changed=np.arange(16, 48))
    [shape] = shapes(figure, LIGHT.ink, width=2)
    assert shape["path"] == "M-0.5,0.5H15.5V1.5H15.5V2.5H-0.5V1.5H-0.5Z"


def test_nothing_changed_nothing_outlined(shared: Timeline) -> None:
    figure = cells_figure(after(shared), changed=[])
    assert shapes(figure, LIGHT.ink, width=2) == []
    assert "changed" not in legend(figure)


def test_a_selected_cell_has_a_double_line(shared: Timeline) -> None:
    figure = cells_figure(after(shared), selected=18)
    [wide], [narrow] = shapes(figure, LIGHT.ink, width=5), shapes(figure, LIGHT.accent, width=2)
    assert boxes(wide["path"]) == boxes(narrow["path"]) == [(1.5, 0.5, 2.5, 1.5)]
    assert legend(figure)[-1] == "selected"


@pytest.mark.parametrize("n", [64, 1024, 4096])
def test_head_and_n_kv_are_marked_at_their_cells(n: int) -> None:
    part = after(played([decode(37, 0)], n))
    figure = cells_figure(part)
    columns = {64: 16, 1024: 64, 4096: 128}[n]
    row, column = divmod(37, columns)
    [bracket] = shapes(figure, LIGHT.accent, width=3)
    assert f"{row - 0.5}H{column - 0.5}V{row + 0.5}H" in bracket["path"]
    [line] = shapes(figure, LIGHT.ink, dash="dot")
    row, column = divmod(64, columns)
    end = f"M-0.5,{row + 0.5}H{column - 0.5}" if column else f"M-0.5,{row - 0.5}H{columns - 0.5}"
    assert line["path"].startswith(end)
    words = [note["text"] for note in notes(figure)]
    assert words == ["<b>head 37</b>", "n_kv 64"]


def test_marks_know_both_ends() -> None:
    full = after(played([decode(64, 0)]))
    moved = replace(full, counters={**full.counters, "head": 64})
    [bracket] = shapes(cells_figure(moved), LIGHT.accent, width=3)
    assert "H15.5V3.5H" in bracket["path"]
    empty = after(played([]))
    [bracket] = shapes(cells_figure(empty), LIGHT.accent, width=3)
    assert "H-0.5V0.5H" in bracket["path"]


def test_words_beside_the_map_do_not_overlap() -> None:
    for n_tokens in range(1, 64):
        part = after(played([decode(n_tokens, 0)], n_pad=1))
        head, n_kv = notes(cells_figure(part))
        pixels = [note["y"] * 56 - note["yshift"] for note in (head, n_kv)]
        assert abs(pixels[0] - pixels[1]) >= 14, n_tokens
