"""Legends: never more than two lines, whatever the number of sequences, and what each form of them says."""

from typing import Any

import numpy as np
import pytest

from kvmodel.figures import cells_figure
from kvmodel.figures.entries import LINE_HEIGHT, Entry, Forms, lines
from kvmodel.figures.palette import LIGHT, PATTERNS, SEQUENCES, seq_colour, seq_symbol
from kvmodel.snapshot import PartSnapshot
from tests.figures import after, colours_of, decode, legend, played, spec, traces

PAIR = 366


def of_sequences(n: int, kv_size: int = 1024, **more: Any) -> PartSnapshot:
    return after(played([decode(2, seq) for seq in range(n)], kv_size, **more))


def n_lines(figure: Any) -> int:
    [told] = [words for words in spec(figure)["layout"]["annotations"] if words.get("name") == "legend"]
    return 1 + int(told["text"].count("<br>"))


@pytest.mark.parametrize("width", [None, PAIR])
@pytest.mark.parametrize("n", [1, 2, 5, 8, 9, 16, 17, 24, 25, 33, 63, 64])
def test_a_legend_takes_two_lines_at_most(n: int, width: int | None) -> None:
    part = of_sequences(n)
    figure = cells_figure(part, changed=[1], selected=0, width=width)
    assert n_lines(figure) <= 2
    assert legend(figure)[-3:] == ["empty", "changed", "selected"]
    one = cells_figure(of_sequences(1), width=width)
    difference = spec(figure)["layout"]["height"] - spec(one)["layout"]["height"]
    assert difference == LINE_HEIGHT * (n_lines(figure) - n_lines(one))


def test_few_sequences_are_named_and_more_are_numbered() -> None:
    assert legend(cells_figure(of_sequences(3))) == ["sequence 0", "sequence 1", "sequence 2", "empty"]
    assert legend(cells_figure(of_sequences(12))) == [*map(str, range(12)), "empty"]


def test_a_number_has_the_look_of_its_sequence() -> None:
    [told] = [words for words in spec(cells_figure(of_sequences(12)))["layout"]["annotations"] if "name" in words]
    assert told["text"].startswith("sequence\u2002")
    assert f'<span style="color:{SEQUENCES[1]};font-size:14px">▤</span> 9' in told["text"]
    assert f'<span style="color:{SEQUENCES[1]};font-size:19px">■</span> 1' in told["text"]


def test_colour_and_pattern_add_up_to_the_sequence() -> None:
    told = legend(cells_figure(of_sequences(64)))
    assert told == [*map(str, range(8)), *(f"+{8 * i}" for i in range(1, 8)), "empty"]
    for seq in range(64):
        assert seq == SEQUENCES.index(seq_colour(seq)) + 8 * PATTERNS.index(seq_symbol(seq))


def test_the_key_has_what_occurs_only() -> None:
    ops = [decode(1, seq) for seq in range(64) if seq % 8 in (1, 6)]
    assert [entry for entry in legend(cells_figure(after(played(ops, 64)))) if entry.strip("+").isdigit()] == [
        *(str(seq) for seq in range(64) if seq % 8 in (1, 6))
    ]
    many = [decode(1, seq) for seq in range(64) if seq % 8 not in (2, 3) and seq // 8 != 4]
    assert legend(cells_figure(after(played(many, 64)))) == [
        *map(str, (0, 1, 4, 5, 6, 7)),
        *(f"+{8 * i}" for i in (1, 2, 3, 5, 6, 7)),
        "empty",
    ]


def test_a_narrow_map_counts_its_sequences() -> None:
    figure = cells_figure(of_sequences(64), changed=[0], width=PAIR)
    assert legend(figure)[-3:] == ["64 sequences: number on hover", "empty", "changed"]


def test_more_owners_than_a_cell_has_pixels_are_several() -> None:
    part = after(played([decode(3, *range(64)), decode(2, 0, 1)], 1024))
    figure = cells_figure(part)
    pixels = colours_of(traces(figure)["colours"])
    high, wide = pixels.shape[0] // 16, pixels.shape[1] // 64
    assert set(pixels[:high, :wide].ravel()) == {LIGHT.several}
    assert set(pixels[:high, 3 * wide : 4 * wide].ravel()) == {SEQUENCES[0], SEQUENCES[1]}
    assert "several sequences" in legend(figure)


def test_forms_get_shorter_only_as_far_as_they_must() -> None:
    def form(n: int, length: int) -> tuple[Entry, ...]:
        return tuple(Entry("x" * length, LIGHT.ink) for _ in range(n))

    item = Forms((form(4, 50), form(4, 20), form(1, 5)))
    widths = [sum(len(row) for row in lines([item, *form(1, 5)], width)) for width in (2000, 400, 200, 10)]
    assert [len(lines([item], width)[0][0].name) for width in (2000, 400, 100)] == [50, 20, 5]
    assert widths == [5, 5, 2, 2]


def test_a_legend_of_nothing_has_no_line() -> None:
    assert lines([], 300) == []
    assert np.array_equal([len(row) for row in lines([Entry("one", LIGHT.ink)], 1)], [1])
