"""Reports: everything an issue needs to know of one step, and nothing in a scenario that could break their form."""

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.cellruns import cell_lines
from kvmodel.errors import ParamError
from kvmodel.library import IDS, load
from kvmodel.limits import MAX_REPORT_CHARS
from kvmodel.markdown import address, cut, escaped, fenced, table, within
from kvmodel.ops import Decode, SeqRm, TokenRun
from kvmodel.player import play
from kvmodel.report import to_markdown
from kvmodel.scenario import Scenario
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline
from tests.random_scenarios import any_scenario

SMALL: dict[str, Any] = {"title": "t", "cache": {"kv_size": 32, "n_seq_max": 2}}
FENCE = re.compile(r"^(`{3,})\w*$")
BAR = re.compile(r"(?<!\\)\|")


def section(report: str, heading: str) -> str:
    """What stands under one heading, up to the next."""
    return report.split(f"\n## {heading}\n\n")[1].split("\n\n## ", maxsplit=1)[0]


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


@pytest.fixture(scope="module")
def full() -> Timeline:
    return play(load("cache-full"))


def test_a_failed_decode_is_told_in_full(full: Timeline) -> None:
    report = to_markdown(full, 2)
    assert report.startswith("# The cache is full, and what helps: step 2 of 6\n\nDescription: A decode that finds")
    assert "context.decode(Batch.from_runs([(0, 20, [1])], auto_pos=True))" in section(report, "Call")
    assert section(report, "Call").endswith("It returned 1.")
    assert "- Ubatch 1: 8 cells in a row sought from head, cell 24; found cells 24-31." in report
    assert section(report, "Why it failed").split("\n")[2:] == [
        "- In kv, try 1, ubatch 2:",
        "  - 4 cells in a row sought from head, cell 32.",
        "  - The end of the cache is reached.",
        "  - Cells 0-28 are still seen by their sequences.",
        "  - Cells 29-31 are too few before the end of the cache.",
        "  - Cell 0 is still seen by its sequence.",
        "  - No slot: 0 cells free.",
        "",
        "Of 20 tokens in the batch, the first 16 would have fit.",
    ]
    assert "- Send at most 16 tokens in one decode." in section(report, "What to do")
    assert section(report, "Cells after the step").split("\n") == [
        "| cells of | number | used | head | n_kv | shift pending | fragmentation |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| kv | 32 | 16 | 16 | 32 | no | 0.000 |",
        "",
        "| cells of | sequence | positions | number |",
        "| --- | --- | --- | --- |",
        "| kv | 0 | 0-15 | 16 |",
        "",
        "```text",
        "kv:",
        "cells 0-15: sequence 0, positions 0 to 15",
        "cells 16-31: empty",
        "```",
    ]


def test_the_configuration_is_complete(full: Timeline) -> None:
    rows = dict(
        re.findall(r"^\| (\S+|llama.cpp of) \| (.*) \|$", section(to_markdown(full, 0), "Configuration"), re.MULTILINE)
    )
    del rows["setting"], rows["---"]
    expected = full.scenario.cache.model_dump() | full.scenario.context.model_dump(exclude={"n_max_nodes"})
    assert rows == {"llama.cpp of": "mid-2025"} | {name: str(value) for name, value in expected.items()}
    assert "| llama.cpp of | January 2025 |" in to_markdown(play(load("older-partial-decode")), 0)


def test_the_document_goes_along(full: Timeline) -> None:
    document = section(to_markdown(full, 3), "Scenario").removeprefix("```json\n").removesuffix("\n```\n")
    assert Scenario.from_json(document) == full.scenario


def test_the_empty_cache_has_no_call(full: Timeline) -> None:
    report = to_markdown(full, 0)
    assert "The cache is empty: no call was made yet." in report
    assert "## Call" not in report
    assert "cells 0-31: empty" in report


def test_a_beat_shows_the_cells_on_the_way() -> None:
    ops = [{"op": "decode", "tokens": [{"n": 6}]}]
    timeline = play(Scenario.model_validate(SMALL | {"ops": ops}))
    found = section(to_markdown(timeline, 1, 4), "Cells at beat 4 of 6")
    assert found.startswith("Found cells 0-5.\n\n| cells of |")
    assert "cells 0-31: empty" in found
    stored = section(to_markdown(timeline, 1, 5), "Cells at beat 5 of 6")
    assert stored.startswith("Ubatch 0 (6 tokens) is stored")
    assert "cells 0-5: sequence 0, positions 0 to 5" in stored
    assert to_markdown(timeline, 1, 0) == to_markdown(timeline, 1)


@pytest.mark.parametrize(
    ("step", "beat", "message"),
    [
        (7, None, "step is 7; allowed: a whole number from 0 to 6"),
        (-1, None, "step is -1; allowed: a whole number from 0 to 6"),
        ("1", None, "step is '1'; allowed: a whole number from 0 to 6"),
        (2, 18, "beat is 18; allowed: a whole number from 0 to 17"),
        (2, -1, "beat is -1; allowed: a whole number from 0 to 17"),
        (0, 1, "beat is 1; allowed: a whole number from 0 to 0"),
    ],
)
def test_what_is_not_there_is_told(full: Timeline, step: Any, beat: int | None, message: str) -> None:
    with pytest.raises(ParamError) as told:
        to_markdown(full, step, beat)
    assert str(told.value) == message


def test_a_pair_tells_of_both_halves() -> None:
    report = to_markdown(play(load("window-pair-no-slot")), 2)
    assert "- In swa, try 1, ubatch 0:" in report
    assert "| base | 96 | 40 | 40 | 64 | no | 0.000 |\n| swa | 32 | 32 | 8 | 32 | no | 0.000 |" in report
    assert "swa:\ncells 0-7: sequence 0, positions 32 to 39\ncells 8-31: sequence 0, positions 8 to 31" in report


@pytest.mark.parametrize(
    ("ops", "step", "returned"),
    [
        ([{"op": "seq_rm", "seq": 0}], 1, "It returned True."),
        ([{"op": "seq_keep", "seq": 0}], 1, "It returned nothing."),
        ([{"op": "update"}], 1, "It returned nothing: nothing to update"),
        (
            [{"op": "decode", "tokens": [{"n": 1}]}, {"op": "decode", "tokens": [{"n": 1, "pos": 9}]}],
            2,
            "It returned -1: sequence 0",
        ),
        (
            [{"op": "decode", "tokens": [{"n": 9}]}],
            1,
            "llama.cpp would end its process here: the batch has 9 tokens; allowed: n_batch = 8 at most",
        ),
    ],
)
def test_what_a_call_returned(ops: list[dict[str, Any]], step: int, returned: str) -> None:
    timeline = play(Scenario.model_validate(SMALL | {"ops": ops, "context": {"n_batch": 8}}))
    assert f"\n\n{returned}" in section(to_markdown(timeline, step), "Call")


@pytest.mark.parametrize("scenario_id", IDS)
def test_every_shipped_step_has_a_report(scenario_id: str) -> None:
    timeline = play(load(scenario_id))
    for step in range(timeline.n_steps):
        report = to_markdown(timeline, step)
        assert len(report) <= MAX_REPORT_CHARS
        assert ("## Why it failed" in report) == bool(step and timeline.results[step - 1].failed)


@given(any_scenario, st.data())
def test_any_step_has_a_report(scenario: Scenario, data: st.DataObject) -> None:
    timeline = play(scenario)
    report = to_markdown(timeline, data.draw(st.integers(0, timeline.n_steps - 1)))
    assert len(report) <= MAX_REPORT_CHARS
    assert json.loads(section(report, "Scenario").removeprefix("```json\n").removesuffix("\n```\n"))["title"] == "drawn"


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
