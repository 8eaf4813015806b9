"""The form of a report: no text breaks it, long parts are cut, and runs of cells cover each cell once."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.cellruns import cell_lines
from kvmodel.library import load
from kvmodel.limits import MAX_REPORT_CHARS
from kvmodel.markdown import address, cut, escaped, fenced, table, within
from kvmodel.ops import Decode, SeqRm, TokenRun
from kvmodel.player import play
from kvmodel.report import to_markdown
from kvmodel.scenario import Scenario
from kvmodel.snapshot import PartSnapshot
from tests.random_scenarios import any_scenario
from tests.reports import SMALL, section

FENCE = re.compile(r"^(`{3,})\w*$")

BAR = re.compile(r"(?<!\\)\|")


def skeleton(report: str) -> list[str]:
    """The form of a report: headings, tables by their bars, fences and other lines by their kind, never a word."""
    form, fence = [], ""
    for line in report.split("\n"):
        opened = FENCE.match(line)
        if fence:
            fence = "" if line == fence else fence
            form += [] if fence else ["end of fence"]
        elif opened:
            fence = opened[1]
            form.append("fence")
        else:
            form.append(line[:2] if line[:1] in "#-" else f"{len(BAR.findall(line))} bars" if line else "")
    return form


def with_texts(title: str, words: str) -> Scenario:
    op = SeqRm(seq=0, note=words)
    texts = {"title": title, "description": words, "source": words}
    return Scenario.model_validate(SMALL | texts | {"cache": {"kv_size": 32, "arch": words}, "ops": [op.model_dump()]})


FORM = skeleton(to_markdown(play(with_texts("t", "w")), 1))

NASTY = [
    "a | b || c",
    "```",
    "`````\n# not a heading",
    "line\n\n## heading\n\n- item",
    "\\",
    "\\| end \\",
    "<script>alert(1)</script>",
    "<!-- open",
    "~~~ [x](javascript:1) ![y](z) **b** _i_ $m$ &lt;",
    "\u2028\u0085\r\x0b\x0c\x00\t",
    "http://a/|`<b>",
]


@pytest.mark.parametrize("words", NASTY)
def test_no_text_breaks_the_form(words: str) -> None:
    report = to_markdown(play(with_texts(words[:120], words)), 1)
    assert skeleton(report) == FORM


@given(
    st.text(min_size=1, max_size=120).filter(str.strip), st.text(alphabet="|`\\ \n#<>-*_~@1a", min_size=3, max_size=60)
)
def test_no_text_at_all_breaks_the_form(title: str, words: str) -> None:
    report = to_markdown(play(with_texts(title, f"w{words}")), 1)
    assert skeleton(report) == FORM


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("n_kv of seq_rm", "n_kv of seq_rm"),
        ("a|b", "a\\|b"),
        ("*b* _i_ `c` ~s~", "\\*b\\* \\_i\\_ \\`c\\` \\~s\\~"),
        ("[x](y) <b> &amp; $1$ \\", "\\[x\\](y) \\<b\\> \\&amp; \\$1\\$ \\\\"),
        ("@name, #12, # x, a@b", "@<!-- -->name, #<!-- -->12, \\# x, a@<!-- -->b"),
        ("two\n lines\u2028and\ttabs ", "two lines and tabs"),
        (3, "3"),
    ],
)
def test_words_show_as_they_are(words: object, shown: str) -> None:
    assert escaped(words) == shown


def test_only_an_address_becomes_a_link() -> None:
    assert address("https://example.org/a_b/issues/1?x=1&y=2#c") == "<https://example.org/a_b/issues/1?x=1&y=2#c>"
    assert address("https://example.org/> <b>") == "https://example.org/\\> \\<b\\>"
    assert address("javascript:alert(1)") == "javascript:alert(1)"


def test_a_fence_is_longer_than_any_inside() -> None:
    assert fenced("a", "text") == "```text\na\n```"
    assert fenced("a ``` b\n`````") == "``````\na ``` b\n`````\n``````"


def test_tables_and_cuts() -> None:
    assert table(("a", "b|c"), [(1, "x|y")]) == "| a | b\\|c |\n| --- | --- |\n| 1 | x\\|y |"
    assert (cut("abcdef", 6), cut("abc defg", 7)) == ("abcdef", "abc...")
    assert within(["abc", "def", "ghi"], 8) == ["abc", "def", "and 1 more"]
    assert within(["abc", "def"], 8) == ["abc", "def"]
    assert within(["abcdefghi", "b"], 8, "- ") == ["- and 2 more"]


def test_a_long_text_is_cut_and_a_large_document_left_out() -> None:
    noted = [SeqRm(seq=0, note="@1" * 1000) for _ in range(40)]
    scenario = with_texts("#1" * 60, "@1" * 200).model_copy(update={"ops": tuple(noted), "description": "@1" * 2000})
    report = to_markdown(play(scenario), 40)
    assert len(report) <= MAX_REPORT_CHARS
    size = len(scenario.to_json()) - 1
    assert (
        section(report, "Scenario")
        == f"The document has {size:,} characters, too many for a report: attach it as a file.\n"
    )


def scattered() -> Scenario:
    """A pair with a thousand tokens of 64 sequences, each cell another owner than its neighbours."""
    runs = tuple(TokenRun(n=1, pos=i // 2, seq=tuple(range(i % 2, 64, 2))) for i in range(1_000))
    cache = {"kind": "iswa", "kv_size": 2048, "n_seq_max": 64, "n_swa": 512, "swa_full": True, "n_layer": 2}
    return Scenario.model_validate({"title": "s", "cache": cache, "context": {"n_ubatch": 1}}).with_op(
        Decode(tokens=runs)
    )


def test_the_largest_parts_stay_within_their_bounds() -> None:
    timeline = play(scattered())
    report = to_markdown(timeline, 1)
    assert len(report) <= MAX_REPORT_CHARS
    assert re.search(r"\nand [\d,]+ more\n\]?.*```", section(report, "Call"), re.DOTALL)
    assert re.search(r"\n- and [\d,]+ more$", section(report, "What happened"))


def part_of(scenario: Scenario) -> PartSnapshot:
    timeline = play(scenario)
    return timeline.cursor().seek(len(timeline.frames)).first


def test_runs_of_cells_are_cut_where_owners_positions_or_shifts_change() -> None:
    ops = [
        {"op": "decode", "tokens": [{"n": 4}, {"n": 2, "seq": [1]}]},
        {"op": "seq_cp", "src": 0, "dst": 1, "p1": 1},
        {"op": "seq_add", "seq": 0, "p0": 3, "shift": 5},
        {"op": "seq_rm", "seq": 0, "p0": 2, "p1": 3},
    ]
    assert cell_lines(part_of(Scenario.model_validate(SMALL | {"ops": ops}))) == [
        "cell 0: sequences 0 and 1, position 0",
        "cell 1: sequence 0, position 1",
        "cell 2: empty",
        "cell 3: sequence 0, position 8, shift +5",
        "cells 4-5: sequence 1, positions 0 to 1",
        "cells 6-31: empty",
    ]


def test_states_tell_where_they_come_from() -> None:
    timeline = play(load("shared-states"))
    filled, computed = timeline.frames_of(4)
    assert cell_lines(timeline.cursor().seek(filled).first) == [
        "cell 0: sequences 0 and 2, position 7",
        "cell 1: sequence 1, position 8, goes on from cell 0",
        "cells 2-3: empty",
    ]
    assert cell_lines(timeline.cursor().seek(computed).first)[1] == "cell 1: sequence 1, position 8"


def test_many_runs_are_counted() -> None:
    runs = [{"n": 1, "pos": 2 * i} for i in range(8)]
    older = {"kind": "legacy", "kv_size": 9}
    part = part_of(Scenario.model_validate(SMALL | {"cache": older, "ops": [{"op": "decode", "tokens": runs}]}))
    assert cell_lines(part, most=2) == [
        "cell 0: sequence 0, position 0",
        "cell 1: sequence 0, position 2",
        "and 7 more runs",
    ]


@given(any_scenario)
def test_runs_cover_every_cell_once(scenario: Scenario) -> None:
    part = part_of(scenario)
    spans = [re.match(r"cells? (\d+)(?:-(\d+))?: (\w+)", line) for line in cell_lines(part, most=part.n_cells)]
    told = [(int(span[1]), int(span[2] or span[1]), span[3]) for span in spans if span]
    cells = [cell for first, last, _ in told for cell in range(first, last + 1)]
    assert cells == list(range(part.n_cells))
    empty = [cell for first, last, word in told if word == "empty" for cell in range(first, last + 1)]
    assert empty == np.flatnonzero((part.pos == -1) & (part.seqs == 0)).tolist()
