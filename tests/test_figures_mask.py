"""The map of the mask against the rules of the mask, one square at a time."""

import numpy as np
import pytest

from kvmodel.batch import UBatch
from kvmodel.figures import mask_figure
from kvmodel.figures.palette import theme
from kvmodel.mask import mask_reasons
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline
from tests.figures import colours_of, decode, legend, played, spec, traces

VISIBLE, EMPTY, OTHER, FUTURE, OUTSIDE, PADDING = range(6)
WORDS = ["visible", "empty", "other sequence", "future", "outside the window", "padding row"]


def stored(timeline: Timeline) -> tuple[PartSnapshot, UBatch]:
    """The last ubatch and the cells after it."""
    frame = max(i for i, frame in enumerate(timeline.frames) if frame.ubatch is not None)
    return timeline.cursor().seek(frame).first, timeline.frames[frame].ubatch


def reason(pos: int, owners: tuple[int, ...], query: int, seq: int, window: int | None) -> int:
    """Why a query does not see one cell."""
    if pos < 0:
        return EMPTY
    if seq not in owners:
        return OTHER
    if pos > query:
        return FUTURE
    return OUTSIDE if window is not None and query - pos >= window else VISIBLE


@pytest.fixture(scope="module")
def plain() -> Timeline:
    """Ten tokens of 0, ten of 1, five of both, and eight of 0 with text."""
    texts = [" so", " it", " <i>", "goes", ",", " on", " and", " on"]
    return played([decode(10, 0), decode(10, 1), decode(5, 0, 1, pos=10), decode(8, 0, pos=15, text=texts)])


@pytest.fixture(scope="module")
def window() -> Timeline:
    ops = [decode(12, seq) for seq in (0, 1)] + [decode(16, 0), decode(5, 1), decode(16, 0)]
    return played(ops, 96, swa_type="standard", n_swa=12, n_pad=32)


@pytest.mark.parametrize("name", ["plain", "window"])
def test_codes_are_the_reasons(name: str, request: pytest.FixtureRequest) -> None:
    part, ubatch = stored(request.getfixturevalue(name))
    drawn, told = (traces(mask_figure(part, ubatch, clickable=clickable)) for clickable in (True, False))
    trace, points = drawn["reasons"], drawn["squares"]
    assert trace["z"].dtype == np.uint8
    assert (trace["z"] == told["reasons"]["z"]).all()
    for row, (query, seq) in enumerate(zip(ubatch.pos.tolist(), ubatch.first_seq.tolist(), strict=True)):
        for cell in range(part.n_kv):
            expected = reason(part.pos[cell], part.owners(cell), query, seq, part.params.n_swa or None)
            assert trace["z"][row, cell] == expected
            assert told["reasons"]["text"][row][cell] == WORDS[expected]
            point = row * part.n_kv + cell
            assert (points["x"][point], points["y"][point], points["hovertext"][point]) == (cell, row, WORDS[expected])


def test_the_model_gives_the_same_codes(window: Timeline) -> None:
    part, ubatch = stored(window)
    codes = mask_reasons(
        part.pos[: part.n_kv], part.seqs[: part.n_kv], ubatch.pos, ubatch.first_seq,
        swa_type=part.params.swa_type, n_swa=part.params.n_swa, padding=True,
    )  # fmt: skip
    assert (traces(mask_figure(part, ubatch, padding=True))["reasons"]["z"] == codes).all()


def test_a_chunk_is_named_as_such() -> None:
    part, ubatch = stored(played([decode(8, 0), decode(4, 0)], swa_type="chunked", n_swa=8))
    figure = mask_figure(part, ubatch)
    assert traces(figure)["reasons"]["z"][0, :12].tolist() == [OUTSIDE] * 8 + [VISIBLE] + [FUTURE] * 3
    assert "outside the chunk" in legend(figure)


def test_without_causality_nothing_is_future(plain: Timeline) -> None:
    figure = mask_figure(*stored(plain), causal=False)
    assert FUTURE not in traces(figure)["reasons"]["z"]
    assert "future" not in legend(figure)


def test_padding_rows_are_shown_when_asked_for(plain: Timeline) -> None:
    part, ubatch = stored(plain)
    z = traces(mask_figure(part, ubatch, padding=True))["reasons"]["z"]
    assert z.shape == (64, part.n_kv)
    assert (z[8:] == PADDING).all()
    assert PADDING not in traces(mask_figure(part, ubatch))["reasons"]["z"]


@pytest.mark.parametrize("name", ["light", "dark"])
def test_a_reason_has_its_colour(plain: Timeline, name: str) -> None:
    trace = traces(mask_figure(*stored(plain), theme=name))["reasons"]
    assert (colours_of(trace) == np.array(theme(name).reasons)[trace["z"]]).all()
    assert spec(mask_figure(*stored(plain), theme=name))["layout"]["paper_bgcolor"] == theme(name).paper


def test_a_pattern_tells_reasons_apart_without_colour(plain: Timeline) -> None:
    drawn = traces(mask_figure(*stored(plain)))
    codes, lines = drawn["reasons"]["z"], drawn["patterns"]["z"]
    rows, columns = codes.shape
    looks = lines.reshape(rows, 4, columns, 4).swapaxes(1, 2).reshape(rows * columns, 16)
    seen = {code: {tuple(look) for look in looks[codes.ravel() == code].tolist()} for code in np.unique(codes).tolist()}
    assert {len(look) for look in seen.values()} == {1}
    assert seen[OTHER] != seen[FUTURE]
    assert not any(next(iter(seen[VISIBLE])))


def test_hover_names_token_and_cell(plain: Timeline) -> None:
    part, ubatch = stored(plain)
    drawn = spec(mask_figure(part, ubatch, tokens=plain.tokens))
    axes = [drawn["layout"][f"{way}axis2"] for way in "xy"]
    assert [axis["tickvals"] for axis in axes] == [list(range(part.n_kv)), list(range(len(ubatch)))]
    trace = traces(mask_figure(part, ubatch, tokens=plain.tokens, clickable=False))["reasons"]
    assert [axis["ticktext"] for axis in axes] == [trace["x"], trace["y"]]
    assert drawn["data"][1]["hovertemplate"] == "<b>%{hovertext}</b><br>%{y}<br>%{x}<extra></extra>"
    assert trace["y"][2] == "token 2 “ &lt;i&gt;”: position 17, sequence 0"
    assert trace["x"][3] == "cell 3: position 3, of 0"
    assert trace["x"][21] == "cell 21: position 11, of 0-1"
    assert trace["x"][part.n_kv - 1] == f"cell {part.n_kv - 1}: empty"
    assert trace["hovertemplate"] == "<b>%{text}</b><br>%{y}<br>%{x}<extra></extra>"
    assert len(set(trace["x"])) == part.n_kv
    assert len(set(trace["y"])) == len(ubatch)


def test_the_legend_names_what_occurs(plain: Timeline, window: Timeline) -> None:
    assert legend(mask_figure(*stored(plain))) == ["visible", "empty", "other sequence", "future"]
    assert legend(mask_figure(*stored(window), padding=True)) == WORDS


def test_a_large_mask_shows_what_pixels_can() -> None:
    part, ubatch = stored(played([decode(3000, 0), decode(1000, 1), decode(200, 0)], 8192))
    figure = mask_figure(part, ubatch)
    trace = traces(figure)["reasons"]
    assert trace["z"].shape == (32, 470)
    assert trace["x"][1] == "cells 9 to 17"
    assert [int(words.split(":")[0].split()[1]) for words in (trace["y"][0], trace["y"][-1])] == [0, 199]
    assert trace["z"][0, 333] == VISIBLE, "cells 2997-3005: three of sequence 0, six of sequence 1"
    assert trace["z"][0, [0, 400, 466, 467, 468]].tolist() == [VISIBLE, OTHER, FUTURE, EMPTY, EMPTY]
    assert len(figure.to_json()) < 150_000


def test_a_square_of_several_cells_counts_them_by_reason() -> None:
    part, ubatch = stored(played([decode(3000, 0), decode(1000, 1), decode(200, 0)], 8192))
    trace = traces(mask_figure(part, ubatch))["reasons"]
    told = "visible %{customdata[0]}, empty %{customdata[1]}, other sequence %{customdata[2]}, future %{customdata[3]}"
    assert trace["hovertemplate"] == f"<b>{told}</b><br>%{{y}}<br>%{{x}}<extra></extra>"
    assert "text" not in trace
    # 4,224 cells, 9 a square: the last square has 3. The first token sees its own cell 4,000 and not the 199 after it.
    assert trace["customdata"][0, 333].tolist() == [3, 0, 6, 0]
    assert trace["customdata"][0, 444].tolist() == [1, 0, 4, 4]
    assert trace["customdata"][0, 469].tolist() == [0, 3, 0, 0]
    assert (trace["customdata"].sum(axis=(1, 2)) == 4224).all()


def test_a_mask_of_sixteen_thousand_squares_is_exact() -> None:
    part, ubatch = stored(played([decode(1008, 0), decode(16, 0)], 1024))
    assert traces(mask_figure(part, ubatch))["reasons"]["z"].shape == (16, 1024)


def test_rows_are_labelled_by_position(plain: Timeline) -> None:
    layout = spec(mask_figure(*stored(plain)))["layout"]
    assert layout["yaxis"]["ticktext"] == ["pos 15", *map(str, range(16, 23))]
    assert layout["xaxis"]["ticktext"][:3] == ["cell 0", "8", "16"]
