"""The picture of a recurrent cache: states, tails and sources as a browser gets them; and its table."""

import re
from typing import Any

import numpy as np
import pytest

from kvmodel.figures import states_figure, states_table
from kvmodel.figures.palette import LIGHT, SEQUENCES, THEMES, theme
from kvmodel.library import load
from kvmodel.player import play
from kvmodel.scenario import Scenario
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline
from tests.figures import colours_of, hover_words, legend, shapes, spec, traces

Json = dict[str, Any]


def played(kv_size: int, ops: list[Json]) -> Timeline:
    cache = {"kind": "recurrent", "kv_size": kv_size, "n_seq_max": min(kv_size, 64)}
    return play(Scenario.model_validate({"title": "t", "cache": cache, "ops": ops}))


def begun(*seqs: int) -> Json:
    return {"op": "decode", "tokens": [{"n": 2, "seq": [seq], "pos": 0} for seq in seqs]}


def last(timeline: Timeline) -> PartSnapshot:
    return timeline.cursor().seek(len(timeline.frames) - 1).first


@pytest.fixture(scope="module")
def shared() -> Timeline:
    return play(load("shared-states"))


def moment(timeline: Timeline, step: int, i: int = 0) -> PartSnapshot:
    """The state after frame `i` of a step."""
    return timeline.cursor().seek(timeline.frames_of(step)[i]).first


def curves(figure: Any, colour: str, **line: Any) -> list[tuple[float, float]]:
    """Columns in which the curves of one colour begin and end."""
    found = [shape["path"] for shape in shapes(figure, colour, **line) if "C" in shape["path"]]
    number = r"(-?[\d.]+)"
    return [
        (float(begin), float(end))
        for path in found
        for begin, end in re.findall(rf"M{number},{number[1:-1]}C\S+ \S+ {number},{number[1:-1]}", path)
    ]


def test_cells_have_the_colours_of_their_owners(shared: Timeline) -> None:
    pixels = colours_of(traces(states_figure(moment(shared, 5)))["states"])
    wide = pixels.shape[1] // 4
    assert [set(pixels[:, i * wide : (i + 1) * wide].ravel()) for i in range(4)] == [
        {SEQUENCES[0]},
        {SEQUENCES[2]},
        {SEQUENCES[1]},
        {LIGHT.empty},
    ]


def test_a_shared_cell_shows_its_owners_at_its_foot(shared: Timeline) -> None:
    pixels = colours_of(traces(states_figure(moment(shared, 3)))["states"])
    wide = pixels.shape[1] // 4
    assert set(pixels[:6, :wide].ravel()) == {LIGHT.filled}
    assert [set(pixels[7:, i * wide // 3 : (i + 1) * wide // 3].ravel()) for i in range(3)] == [
        {SEQUENCES[seq]} for seq in range(3)
    ]


def test_a_tail_is_a_line_from_the_sequence_to_its_cell(shared: Timeline) -> None:
    figure = states_figure(moment(shared, 5))
    assert [(begin, round(end)) for begin, end in curves(figure, LIGHT.muted)] == [(0, 0), (1, 2), (2, 1)]
    together = states_figure(moment(shared, 3))
    lines = curves(together, LIGHT.muted)
    assert [(begin, round(end)) for begin, end in lines] == [(0, 0), (1, 0), (2, 0)]
    assert len({end for _, end in lines}) == 3
    assert traces(together)["tails"]["x"].tolist() == pytest.approx([end for _, end in lines], abs=1e-3)


def test_a_source_is_a_line_from_cell_to_cell(shared: Timeline) -> None:
    figure = states_figure(moment(shared, 4))
    assert [(round(begin), round(end)) for begin, end in curves(figure, LIGHT.accent)] == [(0, 1)]
    labels = traces(figure)["numbers"]["text"]
    assert labels == ["cell 0", "cell 1<br><b>from cell 0</b>", "cell 2", "cell 3"]
    after = states_figure(moment(shared, 4, 1))
    assert curves(after, LIGHT.accent) == []
    assert traces(after)["numbers"]["text"] == ["cell 0", "cell 1", "cell 2", "cell 3"]


def test_two_states_that_change_places_have_two_lines(shared: Timeline) -> None:
    lines = curves(states_figure(moment(shared, 12)), LIGHT.accent)
    assert sorted((round(begin), round(end)) for begin, end in lines) == [(0, 3), (3, 0)]
    assert len({*lines[0], *lines[1]}) == 4


def test_a_new_state_starts_from_zero(shared: Timeline) -> None:
    figure = states_figure(moment(shared, 10))
    assert traces(figure)["numbers"]["text"][3] == "cell 3<br><b>from zero</b>"
    assert curves(figure, LIGHT.accent) == []
    assert "source: cell to cell" not in legend(figure)


def test_words_in_the_cells(shared: Timeline) -> None:
    figure = states_figure(moment(shared, 5), tokens=shared.tokens)
    told = [re.sub(r"<[^>]+>", "|", text) for text in traces(figure)["text in cells"]["text"]]
    assert told == ["|7|||seq 0|and|", "|8|||seq 2|slept|", "|9|||seq 1|it|"]
    assert hover_words(figure) == [
        "position 7, sequence 0<br>last token “ and”<br>next: as it is",
        "position 8, sequence 2<br>last token “ slept”<br>next: from cell 0",
        "position 9, sequence 1<br>last token “ it”<br>next: from cell 1",
        "empty",
    ]
    assert traces(figure)["cells"]["customdata"].ravel().tolist() == [0, 1, 2, 3]


def test_text_of_a_person_is_no_markup() -> None:
    op = {"op": "decode", "tokens": [{"text": ["<b>x</b>"], "pos": 0}]}
    timeline = played(2, [op])
    figure = states_figure(last(timeline), tokens=timeline.tokens)
    assert "&lt;b&gt;x&lt;/b&gt;" in hover_words(figure)[0]
    assert "<b>x" not in traces(figure)["text in cells"]["text"][0]


def test_sequences_say_where_their_state_is(shared: Timeline) -> None:
    chips = traces(states_figure(moment(shared, 3)))["sequences"]
    assert chips["text"] == ["0", "1", "2", "3"]
    assert chips["hovertext"] == [
        "sequence 0: its state is in cell 0",
        "sequence 1: its state is in cell 0",
        "sequence 2: its state is in cell 0",
        "sequence 3: no state",
    ]
    assert chips["marker"]["color"] == [*SEQUENCES[:3], LIGHT.paper]


def test_a_tail_without_a_state_is_dotted() -> None:
    figure = states_figure(last(played(4, [begun(0, 1), {"op": "seq_rm", "seq": -1}])))
    dotted = [(begin, round(end)) for begin, end in curves(figure, LIGHT.ink, dash="dot")]
    assert sorted(dotted) == [(0, 1), (1, 0)]
    assert legend(figure) == ["tail without a state", "empty"]
    told = traces(figure)["sequences"]["hovertext"]
    assert told[0] == "sequence 0: its tail points at cell 1, which it does not own"


def test_the_legend_names_what_there_is(shared: Timeline) -> None:
    part = moment(shared, 4)
    assert legend(states_figure(part)) == ["tail: sequence to cell", "source: cell to cell", "shared", "empty"]
    marked = states_figure(part, before=moment(shared, 3), selected=1)
    assert legend(marked)[-2:] == ["changed", "selected"]


def test_changed_states_and_tails_are_outlined_apart(shared: Timeline) -> None:
    figure = states_figure(moment(shared, 4), before=moment(shared, 3))
    [outline] = [shape["path"] for shape in shapes(figure, LIGHT.ink, width=1.5) if "Z" in shape["path"]]
    boxes = re.findall(r"M(-?[\d.]+),([\d.]+)H(-?[\d.]+)V", outline)
    assert [(float(left), float(right)) for left, top, right in boxes if float(top)] == [(-0.5, 0.5), (0.5, 1.5)]
    assert [round((float(left) + float(right)) / 2) for left, top, right in boxes if not float(top)] == [1]


def test_head_and_slot_are_told(shared: Timeline) -> None:
    notes = spec(states_figure(moment(shared, 5)))["layout"]["annotations"]
    words = [note["text"] for note in notes if note.get("name") != "legend"]
    assert words == ["sequence", "state", "<b>head 1</b>", "slot 2 long"]


def test_of_many_cells_only_the_busy_rows_are_drawn() -> None:
    figure = states_figure(last(played(100, [begun(*range(20))])))
    by_name = traces(figure)
    assert [name for name in by_name if name.startswith("states")] == ["states", "states from 12"]
    assert by_name["cells"]["customdata"].ravel().tolist() == [*range(24)]
    assert by_name["cells"]["x"].tolist() == [*range(12)] * 2
    assert len(set(by_name["cells"]["y"].tolist())) == 2
    assert "and 76 more" in [note["text"] for note in spec(figure)["layout"]["annotations"]]


def test_a_tail_to_another_row_is_told_in_words() -> None:
    part = last(played(24, [begun(*range(20))]))
    by_name = traces(states_figure(part))
    assert part.tail[:20].tolist() == [*range(19, -1, -1)]
    assert by_name["far tails"]["text"] == [f"→ {19 - seq}" for seq in (*range(8), *range(12, 20))]
    assert len(by_name["tails"]["x"]) == 4


def test_many_states_stand_in_low_rows_with_every_number() -> None:
    copies = [{"op": "seq_cp", "src": seq, "dst": seq + 32} for seq in (0, 12)]
    part = last(played(64, [begun(*range(64)), *copies]))
    figure = states_figure(part)
    by_name = traces(figure)
    assert [name for name in by_name if name.startswith("states")] == [
        "states",
        *(f"states from {i}" for i in (16, 32, 48)),
    ]
    assert by_name["cells"]["customdata"].ravel().tolist() == [*range(64)]
    assert by_name["sequences"]["text"] == [*map(str, range(64))]
    told = {re.sub(r"<[^>]+>", "|", text) for text in by_name["text in cells"]["text"]}
    assert {"|1|||0, 32|", "|1|||12 +1|", "|1|||1|", "|1|||63|"} <= told
    two_rows = states_figure(last(played(24, [begun(*range(24))])))
    assert spec(figure)["layout"]["height"] <= spec(two_rows)["layout"]["height"] + 60


@pytest.mark.parametrize("width", [None, 400, 250])
@pytest.mark.parametrize("n", [1, 12, 25, 64, 1024])
def test_no_number_of_states_is_higher_than_a_screen_allows(n: int, width: int | None) -> None:
    part = last(played(n, [begun(*range(min(n, 64)))]))
    layout = spec(states_figure(part, before=part, selected=0, width=width))["layout"]
    assert layout["height"] <= 476


def test_a_source_in_another_low_row_is_told_under_the_cell() -> None:
    ops = [begun(*range(32)), {"op": "seq_cp", "src": 3, "dst": 40}, begun(40)]
    timeline = played(64, ops)
    frames = timeline.frames_of(3)
    labels = [traces(states_figure(timeline.cursor().seek(i).first))["numbers"]["text"] for i in frames]
    assert any("<b>←" in text for told in labels for text in told)


def test_owners_that_do_not_fit_are_counted() -> None:
    copies = [{"op": "seq_cp", "src": 0, "dst": dst} for dst in range(2, 12, 2)]
    figure = states_figure(last(played(12, [begun(0), *copies])), width=700)
    assert "6 seqs" in traces(figure)["text in cells"]["text"][0]


@pytest.mark.parametrize("name", THEMES)
def test_the_page_has_its_own_colours(shared: Timeline, name: Any) -> None:
    layout = spec(states_figure(moment(shared, 5), theme=name))["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == theme(name).paper
    assert layout["font"]["color"] == theme(name).ink


def test_a_narrow_figure_keeps_every_cell(shared: Timeline) -> None:
    figure = states_figure(moment(shared, 5), width=400)
    assert traces(figure)["numbers"]["text"] == [
        "cell 0",
        "cell 1<br><b>from 0</b>",
        "cell 2<br><b>from 1</b>",
        "cell 3",
    ]
    assert spec(figure)["layout"]["height"] < 320


def test_the_table_says_the_same(shared: Timeline) -> None:
    table = states_table(moment(shared, 5), tokens=shared.tokens)
    assert table["cell"].tolist() == [0, 1, 2, 3]
    assert table["position"].tolist()[:3] == [7, 8, 9]
    assert table["position"].isna().tolist() == [False, False, False, True]
    assert table["sequences"].tolist() == ["0", "2", "1", ""]
    assert table["source"].tolist() == ["0", "0", "1", ""]
    assert table["token"].tolist() == [" and", " slept", " it", ""]
    assert table["tail of the sequence"].tolist()[:3] == [0, 2, 1]
    assert table["tail of the sequence"].isna().tolist() == [False, False, False, True]
    assert states_table(moment(shared, 10))["source"].tolist()[3] == "zero"


def test_a_state_below_position_0_is_no_empty_cell() -> None:
    part = last(played(2, [begun(0), {"op": "seq_add", "seq": 0, "shift": -2}]))
    assert part.pos.tolist() == [-1, -1]
    assert states_table(part)["position"].isna().tolist() == [False, True]
    pixels = colours_of(traces(states_figure(part))["states"])
    assert set(pixels[:, : pixels.shape[1] // 2].ravel()) == {SEQUENCES[0]}
    assert "<b>-1</b>" in traces(states_figure(part))["text in cells"]["text"][0]


def test_drawing_changes_nothing(shared: Timeline) -> None:
    part = moment(shared, 4)
    before = {name: array.copy() for name, array in part.arrays.items()}
    first = states_figure(part).to_json()
    assert all(np.array_equal(part.arrays[name], array) for name, array in before.items())
    assert states_figure(part).to_json() == first
