"""What the map says in words: on hover and inside the cells."""

import numpy as np
import pytest

from kvmodel.figures import cells_figure
from kvmodel.timeline import Timeline
from tests.figures import (
    after,
    blocks,
    decode,
    hover_words,
    played,
    scattered,
    shared_prefix,
    traces,
)
from tests.test_palette import contrast

OWNERS = {**dict.fromkeys(range(4), (0, 1)), 6: (0,), 7: (1,), 8: (1,), 9: (1,), 10: (2,), 11: (2,)}


@pytest.fixture(scope="module")
def shared() -> Timeline:
    return shared_prefix()


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
    for clickable in (True, False):
        figure = cells_figure(after(shared), tokens=shared.tokens, clickable=clickable)
        trace = traces(figure)["cells"]
        assert hover_words(figure)[cell] == words
        assert trace["customdata"].reshape(-1, 1)[cell].tolist() == [cell]
        assert trace["hovertemplate"].startswith("<b>cell %{customdata[0]}</b>")


def test_beyond_4096_cells_hover_gives_numbers() -> None:
    part = scattered(16_384, 5)
    trace = traces(cells_figure(part))["cells"]
    assert "text" not in trace
    for cell in (0, 1, 777, 16_383):
        owners = part.owners(cell)
        facts = [cell, part.pos[cell], owners[0] if owners else 0, len(owners), part.shift[cell]]
        assert trace["customdata"][divmod(cell, 256)].tolist() == facts


def test_text_in_cells_says_position_owners_and_token(shared: Timeline) -> None:
    trace = traces(cells_figure(after(shared), tokens=shared.tokens))["text in cells"]
    told = dict(zip(zip(np.rint(trace["y"]).astype(int), trace["x"].tolist(), strict=True), trace["text"], strict=True))
    small = "<br><span style='font-size:10px'>{}</span>"
    assert told[0, 3] == "<b>3</b>" + small.format("0-1") + small.format("time")
    assert told[0, 9] == "<b>11</b>" + small.format("1")
    assert told[0, 6] == "<b>6</b>" + small.format("0") + small.format("&lt;b&gt;fo…")
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


@pytest.mark.parametrize(("n", "lines"), [(32, 3), (64, 3), (128, 2), (256, 2), (512, 1)])
@pytest.mark.parametrize("owners", [(0,), (0, 1)], ids=["plain", "shared"])
def test_a_cell_holds_as_many_lines_as_fit(n: int, lines: int, owners: tuple[int, ...]) -> None:
    timeline = played([decode(3, *owners, text=["a", "b", "c"])], n)
    trace = traces(cells_figure(after(timeline), tokens=timeline.tokens))["text in cells"]
    assert {text.count("<br>") + 1 for text in trace["text"]} == {lines}
    high = {32: 56, 64: 56, 128: 34, 256: 34, 512: 17}[n]
    assert trace["textfont"]["size"] * (1.3 * (lines - 1) + 1) <= high
