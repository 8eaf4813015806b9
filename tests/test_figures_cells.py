"""The map of cells, read from its JSON and compared with what the operations must have left."""

from dataclasses import replace

import numpy as np
import pytest

from kvmodel.errors import ParamError
from kvmodel.figures import cells_figure
from kvmodel.figures.palette import DARK, LIGHT, THEMES, seq_tone, theme
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline
from tests.figures import after, blocks, boxes, colours_of, decode, legend, played, shapes, spec, traces
from tests.test_palette import contrast

SKY, ORANGE, GREEN, PURPLE = "#56B4E9", "#E69F00", "#009E73", "#CC79A7"
PROMPT = ("Once", " upon", " a", " time", ",", " a", " <b>fox</b>")


@pytest.fixture(scope="module")
def shared() -> Timeline:
    """Cells 0-3 belong to 0 and 1, 4-6 to 0, 7-9 to 1, 10-11 to 2; then 4-5 are freed and 1 moves on by 5."""
    return played(
        [
            decode(7, 0, text=PROMPT),
            {"op": "seq_cp", "src": 0, "dst": 1, "p0": 0, "p1": 4},
            decode(3, 1, pos=4),
            decode(2, 2),
            {"op": "seq_rm", "seq": 0, "p0": 4, "p1": 6},
            {"op": "seq_add", "seq": 1, "p0": 4, "p1": -1, "shift": 5},
        ]
    )


OWNERS = {**dict.fromkeys(range(4), (0, 1)), 6: (0,), 7: (1,), 8: (1,), 9: (1,), 10: (2,), 11: (2,)}
FILL = {0: SKY, 1: ORANGE, 2: GREEN}


def scattered(n: int, n_seq: int, seed: int = 7) -> PartSnapshot:
    """A cache of n cells filled at random, one in five with several owners."""
    rng = np.random.default_rng(seed)
    part = after(played([], n))
    filled = rng.random(n) < 0.7
    owners = np.left_shift(np.uint64(1), rng.integers(0, n_seq, n, np.uint64))
    more = np.where(rng.random(n) < 0.2, np.left_shift(np.uint64(1), rng.integers(0, n_seq, n, np.uint64)), 0)
    pos = np.where(filled, rng.integers(0, 9 * n, n), -1).astype(np.int32)
    shift = np.where(filled, rng.integers(-9, 10, n), 0).astype(np.int32)
    seqs = np.where(filled, owners | more.astype(np.uint64), 0).astype(np.uint64)
    return replace(part, arrays={**part.arrays, "pos": pos, "shift": shift, "seqs": seqs})


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
    assert "pending delta 5" in traces(figure)["cells"]["text"][0][7]


def test_changes_are_coloured_and_named(shared: Timeline) -> None:
    figure = cells_figure(after(shared, 5), colour="changed", changed=shared.changed(5, 5, "kv"))
    colours = colours_of(traces(figure)["colours"]).ravel()
    assert set(colours[4:6]) == {LIGHT.freed}
    assert set(colours[[0, 6, 11]]) == {LIGHT.filled}
    assert legend(figure) == ["emptied", "in use", "empty"]
    stored = cells_figure(after(shared, 3), colour="changed", changed=[7, 8, 9])
    assert set(colours_of(traces(stored)["colours"]).ravel()[7:10]) == {LIGHT.accent}


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


def test_nothing_changed_nothing_outlined(shared: Timeline) -> None:
    figure = cells_figure(after(shared), changed=[])
    assert shapes(figure, LIGHT.ink, width=2) == []
    assert "changed" not in legend(figure)


def test_a_selected_cell_is_outlined_in_the_accent(shared: Timeline) -> None:
    [shape] = shapes(cells_figure(after(shared), selected=18), LIGHT.accent, width=3.5)
    assert boxes(shape["path"]) == [(1.5, 0.5, 2.5, 1.5)]


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
    words = [annotation["text"] for annotation in spec(figure)["layout"]["annotations"]]
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
        head, n_kv = spec(cells_figure(part))["layout"]["annotations"]
        pixels = [note["y"] * 56 - note["yshift"] for note in (head, n_kv)]
        assert abs(pixels[0] - pixels[1]) >= 14, n_tokens


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (2, "position 2, sequences 0-1<br>token “ a”"),
        (4, "empty"),
        (6, "position 6, sequence 0<br>token “ &lt;b&gt;fox&lt;/b&gt;”"),
        (7, "position 9, sequence 1<br>pending shift 5"),
        (11, "position 1, sequence 2"),
        (63, "empty"),
    ],
)
def test_hover_tells_all_of_a_cell(shared: Timeline, cell: int, words: str) -> None:
    trace = traces(cells_figure(after(shared), tokens=shared.tokens))["cells"]
    row, column = divmod(cell, 16)
    assert trace["text"][row][column] == words
    assert trace["customdata"][row, column].tolist() == [cell]
    assert trace["hovertemplate"].startswith("<b>cell %{customdata[0]}</b>")


def test_beyond_4096_cells_hover_gives_numbers() -> None:
    part = scattered(16_384, 5)
    trace = traces(cells_figure(part))["cells"]
    assert "text" not in trace
    for cell in (0, 1, 777, 16_383):
        owners = part.owners(cell)
        facts = [cell, part.pos[cell], owners[0] if owners else 0, len(owners), part.shift[cell]]
        assert trace["customdata"][divmod(cell, 256)].tolist() == facts


def test_more_cells_than_pixels_are_pooled_and_told_as_such() -> None:
    part = after(played([decode(60_000, 0), decode(1, 1)], 262_144))
    trace = traces(cells_figure(part, changed=[60_000]))
    assert trace["colours"]["z"].size == 131_072
    assert trace["cells"]["customdata"][0, 0].tolist() == [0, 2, 1]
    assert trace["cells"]["customdata"][divmod(30_000, 512)].tolist() == [60_000, 1, 60_001]
    colours = colours_of(trace["colours"])
    assert [colours[divmod(square, 512)] for square in (29_999, 30_000, 30_001)] == [SKY, ORANGE, LIGHT.empty]


def test_text_in_cells_says_position_owners_and_token(shared: Timeline) -> None:
    trace = traces(cells_figure(after(shared), tokens=shared.tokens))["text in cells"]
    told = dict(zip(zip(np.rint(trace["y"]).astype(int), trace["x"].tolist(), strict=True), trace["text"], strict=True))
    small = "<br><span style='font-size:10px'>{}</span>"
    assert told[0, 3] == "<b>3</b>" + small.format("0-1") + small.format("time")
    assert told[0, 9] == "<b>11</b>" + small.format("1")
    assert told[0, 6] == "<b>6</b>" + small.format("0") + small.format("&lt;b&gt;fox…")
    assert sorted(told) == [(0, cell) for cell in sorted(OWNERS)]


def test_small_cells_hold_no_text() -> None:
    assert "text in cells" in traces(cells_figure(after(played([decode(40, 0)], 512))))
    assert "text in cells" not in traces(cells_figure(after(played([decode(40, 0)], 1024))))


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("colour", ["sequence", "position", "shift", "changed"])
def test_text_reads_on_the_fill_behind_it(name: str, colour: str) -> None:
    part = scattered(64, 12)
    drawn = traces(cells_figure(part, colour=colour, changed=[0, 1, 2], theme=name))
    cells = blocks(drawn["colours"], 4, 16)
    text = drawn["text in cells"]
    for x, y, ink in zip(text["x"].tolist(), text["y"].tolist(), text["textfont"]["color"], strict=True):
        body = cells[int(np.rint(y)) * 16 + x][:4]
        assert min(contrast(ink, fill) for fill in set(body.ravel())) >= 4.5


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
    many = cells_figure(after(played([decode(1, seq) for seq in range(20)])))
    assert legend(many)[15:] == ["sequence 15", "4 more", "empty"]


def test_a_cell_without_owner_is_named(shared: Timeline) -> None:
    part = after(shared)
    lost = replace(part, arrays={**part.arrays, "seqs": np.where(part.pos == 1, 0, part.seqs).astype(np.uint64)})
    figure = cells_figure(lost)
    assert "no owner" in legend(figure)
    assert set(blocks(traces(figure)["colours"], 4, 16)[1].ravel()) == {LIGHT.filled}
    assert traces(figure)["cells"]["text"][0][1] == "position 1, sequence none"


def test_columns_can_be_chosen(shared: Timeline) -> None:
    figure = cells_figure(after(shared), columns=10)
    z = traces(figure)["cells"]["z"]
    assert z.shape == (7, 10)
    cells = blocks(traces(figure)["colours"], 7, 10)
    looks = [set(cells[cell].ravel()) for cell in (7, 63, 64, 69)]
    assert looks == [{ORANGE}, {LIGHT.empty}, {LIGHT.paper}, {LIGHT.paper}]


@pytest.mark.parametrize("name", THEMES)
def test_the_page_has_its_own_colours(shared: Timeline, name: str) -> None:
    layout = spec(cells_figure(after(shared), theme=name))["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == {"light": "#ffffff", "dark": "#1b2025"}[name]
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
