"""The map of cells, read from its JSON and compared with what the operations must have left."""

from dataclasses import replace

import numpy as np
import pytest

from kvmodel.errors import ParamError
from kvmodel.figures import cells_figure
from kvmodel.figures.palette import DARK, LIGHT, THEMES, seq_tone, theme
from kvmodel.timeline import Timeline
from tests.figures import (
    after,
    blocks,
    colours_of,
    decode,
    hover_words,
    legend,
    played,
    scattered,
    shared_prefix,
    spec,
    traces,
)

SKY, ORANGE, GREEN = "#56B4E9", "#E69F00", "#009E73"
OWNERS = {**dict.fromkeys(range(4), (0, 1)), 6: (0,), 7: (1,), 8: (1,), 9: (1,), 10: (2,), 11: (2,)}
FILL = {0: SKY, 1: ORANGE, 2: GREEN}


@pytest.fixture(scope="module")
def shared() -> Timeline:
    return shared_prefix()


def test_a_pixel_has_the_colour_of_its_owner(shared: Timeline) -> None:
    cells = blocks(traces(cells_figure(after(shared)))["colours"], 4, 16)
    for cell, block in enumerate(cells):
        foot = block[-1].tolist()
        owners = OWNERS.get(cell, ())
        if not owners:
            assert set(block.ravel()) == {LIGHT.empty}, cell
        elif len(owners) == 1:
            assert set(block.ravel()) == {FILL[owners[0]]}, cell
        else:
            half = len(foot) // 2
            assert foot == [SKY] * half + [ORANGE] * half, cell
            assert block[0, 0] == LIGHT.filled


@pytest.mark.parametrize(("n", "rows", "columns"), [(1024, 16, 64), (4096, 32, 128)])
def test_every_owner_has_a_stripe_of_its_own(n: int, rows: int, columns: int) -> None:
    part = scattered(n, 3)
    cells = blocks(traces(cells_figure(part))["colours"], rows, columns)
    for cell in range(n):
        seen = [colour for i, colour in enumerate(cells[cell, 0]) if i == 0 or colour != cells[cell, 0, i - 1]]
        assert seen == ([FILL[seq] for seq in part.owners(cell)] or [LIGHT.empty]), cell


def test_sequences_of_one_colour_differ_by_pattern() -> None:
    part = after(played([decode(1, 0), decode(1, 8), decode(1, 16)], 1024))
    cells = blocks(traces(cells_figure(part))["colours"], 16, 64)
    assert set(cells[0].ravel()) == {SKY}
    assert set(cells[1].ravel()) == set(cells[2].ravel()) == {SKY, seq_tone(8)}
    assert cells[1].tolist() != cells[2].tolist()


def test_patterns_run_across_cells_too_small_for_one_each() -> None:
    """Sequence 8 has lines in every second row of 128 squares, sequence 16 in every second column."""
    part = after(played([decode(128, 0), decode(2, 3, 11), *(decode(510, seq) for seq in (8, 16))], 8192))
    colours = colours_of(traces(cells_figure(part, columns=128))["colours"])
    rows = {0: {SKY}, 2: {SKY}, 3: {seq_tone(8)}, 4: {SKY}}
    assert {row: set(colours[row, 2:]) for row in rows} == rows
    assert set(colours[6, ::2]) == {SKY}
    assert set(colours[6, 1::2]) == {seq_tone(16)}
    assert set(colours[1, :2]) == {LIGHT.several}
    assert colours[10, 0] == LIGHT.empty


@pytest.mark.parametrize("n", [64, 1024, 4096, 16_384])
def test_codes_are_one_byte_each(n: int) -> None:
    figure = cells_figure(scattered(n, 20))
    z = traces(figure)["colours"]["z"]
    assert z.dtype == np.uint8
    assert z.size <= 200_000


def test_positions_follow_a_scale() -> None:
    part = scattered(256, 4)
    trace = traces(cells_figure(part, colour="position"))["colours"]
    codes = trace["z"].ravel()
    assert ((codes == 0) == (part.pos == -1)).all()
    filled = part.pos >= 0
    order = np.argsort(part.pos[filled], kind="stable")
    assert (np.diff(codes[filled][order].astype(int)) >= 0).all()
    assert (codes[filled].min(), codes[filled].max()) == (1, 255)
    ends = [text.replace(",", "") for text in trace["colorbar"]["ticktext"]]
    assert (int(ends[0]), int(ends[-1])) == (part.pos[filled].min(), part.pos.max())


def test_shifts_follow_a_scale_around_none(shared: Timeline) -> None:
    trace = traces(cells_figure(after(shared), colour="shift"))["colours"]
    colours = colours_of(trace).ravel()
    assert set(colours[7:10]) == {LIGHT.rising}
    assert set(colours[[0, 1, 2, 3, 6, 10, 11]]) == {LIGHT.filled}
    assert set(colours[[4, 5, 12, 63]]) == {LIGHT.empty}
    assert trace["colorbar"]["ticktext"] == ["-5", "0", "+5"]


def test_a_negative_shift_has_the_other_end() -> None:
    timeline = played([decode(8, 0), {"op": "seq_add", "seq": 0, "p0": 4, "p1": -1, "shift": -2}])
    figure = cells_figure(after(timeline), colour="shift", theme="dark")
    assert colours_of(traces(figure)["colours"]).ravel()[[0, 4]].tolist() == [DARK.filled, DARK.falling]
    assert [text for text in traces(figure)["text in cells"]["text"] if "-2" in text]


def test_without_a_shift_the_legend_says_so(shared: Timeline) -> None:
    figure = cells_figure(after(shared, 1), colour="shift")
    assert legend(figure) == ["in use, no shift pending", "empty"]
    assert not traces(figure)["colours"]["showscale"]


def test_the_older_cache_calls_it_delta(shared: Timeline) -> None:
    part = after(shared)
    arrays = {name: array for name, array in part.arrays.items() if name != "shift"} | {"delta": part.shift}
    figure = cells_figure(replace(part, arrays=arrays), colour="shift")
    assert traces(figure)["colours"]["colorbar"]["title"]["text"] == "pending delta"
    assert "pending delta 5" in hover_words(figure)[7]


def test_changes_are_coloured_and_named(shared: Timeline) -> None:
    figure = cells_figure(after(shared, 5), colour="changed", changed=shared.changed(5, 5, "kv"))
    colours = colours_of(traces(figure)["colours"]).ravel()
    assert set(colours[4:6]) == {LIGHT.freed}
    assert set(colours[[0, 6, 11]]) == {LIGHT.filled}
    assert legend(figure) == ["emptied", "in use", "empty"]
    stored = cells_figure(after(shared, 3), colour="changed", changed=[7, 8, 9])
    assert set(colours_of(traces(stored)["colours"]).ravel()[7:10]) == {LIGHT.accent}


def test_more_cells_than_pixels_are_pooled_and_told_as_such() -> None:
    part = after(played([decode(60_000, 0), decode(1, 1)], 262_144))
    trace = traces(cells_figure(part, changed=[60_000]))
    assert trace["colours"]["z"].size == 131_072
    assert trace["cells"]["customdata"][0, 0].tolist() == [0, 2, 1]
    assert trace["cells"]["customdata"][divmod(30_000, 512)].tolist() == [60_000, 1, 60_001]
    colours = colours_of(trace["colours"])
    assert [colours[divmod(square, 512)] for square in (29_999, 30_000, 30_001)] == [SKY, ORANGE, LIGHT.empty]


def test_the_legend_is_words(shared: Timeline) -> None:
    assert legend(cells_figure(after(shared), changed=[1])) == [
        "sequence 0",
        "sequence 1",
        "sequence 2",
        "shared",
        "empty",
        "changed",
    ]
    assert legend(cells_figure(after(shared), colour="position")) == ["empty"]


def test_a_cell_without_owner_is_named(shared: Timeline) -> None:
    part = after(shared)
    lost = replace(part, arrays={**part.arrays, "seqs": np.where(part.pos == 1, 0, part.seqs).astype(np.uint64)})
    figure = cells_figure(lost)
    assert "no owner" in legend(figure)
    assert set(blocks(traces(figure)["colours"], 4, 16)[1].ravel()) == {LIGHT.filled}
    assert hover_words(figure)[1] == "position 1, sequence none"


def test_columns_can_be_chosen(shared: Timeline) -> None:
    figure = cells_figure(after(shared), columns=10)
    points = traces(figure)["cells"]
    assert (points["x"].tolist(), points["y"].tolist()) == ([n % 10 for n in range(64)], [n // 10 for n in range(64)])
    cells = blocks(traces(figure)["colours"], 7, 10)
    looks = [set(cells[cell].ravel()) for cell in (7, 63, 64, 69)]
    assert looks == [{ORANGE}, {LIGHT.empty}, {LIGHT.paper}, {LIGHT.paper}]


@pytest.mark.parametrize("name", THEMES)
def test_the_page_has_its_own_colours(shared: Timeline, name: str) -> None:
    layout = spec(cells_figure(after(shared), theme=name))["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == {"light": "#ffffff", "dark": "#14181c"}[name]
    assert layout["font"]["color"] == theme(name).ink
    assert "layout" not in layout["template"]


@pytest.mark.parametrize(("n", "most"), [(64, 40_000), (1024, 120_000), (4096, 400_000), (131_072, 6_000_000)])
def test_a_figure_stays_light(n: int, most: int) -> None:
    assert len(cells_figure(scattered(n, 20), changed=np.arange(0, n, 2)).to_json()) < most


def test_a_map_of_a_thousand_cells_fits_its_panel() -> None:
    assert spec(cells_figure(after(played([decode(9, 0)], 1024))))["layout"]["height"] <= 345


def test_drawing_changes_nothing(shared: Timeline) -> None:
    part = after(shared)
    before = {name: array.copy() for name, array in part.arrays.items()}
    first = cells_figure(part, tokens=shared.tokens).to_json()
    assert all((part.arrays[name] == array).all() for name, array in before.items())
    assert cells_figure(part, tokens=shared.tokens).to_json() == first


def test_an_unknown_colouring_is_refused(shared: Timeline) -> None:
    with pytest.raises(ParamError, match="colour is 'rainbow'; allowed: sequence, position, shift or changed"):
        cells_figure(after(shared), colour="rainbow")
