"""Objects in Jupyter: plain HTML in which every word is escaped, and a text twin that says the same."""

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from IPython.lib.pretty import pretty

from kvmodel.batch import Batch
from kvmodel.caches.unified import UnifiedCache
from kvmodel.context import Context
from kvmodel.defrag import plan_defrag
from kvmodel.player import play
from kvmodel.scenario import Scenario
from kvmodel.show import Card, Shown, Table, cell_map
from kvmodel.timeline import Timeline
from kvmodel.types import CacheParams

ALLOWED_TAGS = {"div", "p", "b", "pre", "table", "thead", "tbody", "tr", "th", "td"}
NASTY = "<script>alert('x')</script> & \"quoted\""


class Reader(HTMLParser):
    """Collects the tags, the attributes and the words of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[Any] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data.split()


class FakePrinter:
    def __init__(self) -> None:
        self.said = ""

    def text(self, words: str) -> None:
        self.said += words


def cache() -> UnifiedCache:
    cache = UnifiedCache(
        CacheParams(kv_size=64, n_seq_max=4, n_layer=4, n_head_kv=8, n_embd_head_k=128, n_embd_head_v=128)
    )
    Context(cache).decode(Batch.from_runs([(0, 3, (0,)), (0, 2, (1, 2)), (3, 1, (0,))]))
    cache.seq_add(0, 2, 3, 4)
    return cache


def timeline(title: str = "t", note: str = "", n: int = 3) -> Timeline:
    ops = [{"op": "decode", "note": note, "tokens": [{"n": 1, "text": [NASTY[:60]]}]}] * n
    return play(Scenario.model_validate({"title": title, "cache": {"kv_size": 32}, "ops": ops}))


SHOWN = {
    "cache": cache,
    "timeline": lambda: timeline(NASTY, NASTY),
    "snapshot": lambda: timeline().cursor().seek(2).first,
    "plan": lambda: plan_defrag(np.array([True, False, False, True, True]), 9),
    "empty plan": lambda: plan_defrag(np.array([True]), 9),
}


@pytest.mark.parametrize("name", SHOWN)
def test_html_is_plain_and_says_what_the_text_says(name: str) -> None:
    shown: Shown = SHOWN[name]()
    read = Reader(shown._repr_html_())
    assert set(read.tags) <= ALLOWED_TAGS
    assert read.attributes == []
    assert read.open == []
    assert read.words == str(shown).split()


@pytest.mark.parametrize("name", SHOWN)
def test_jupyter_prints_the_text_twin(name: str) -> None:
    shown: Shown = SHOWN[name]()
    assert pretty(shown) == str(shown)
    printer = FakePrinter()
    shown._repr_pretty_(printer, cycle=True)
    assert printer.said == "..."


def test_a_cache_as_text() -> None:
    assert str(cache()).splitlines() == [
        "Unified cache kv",
        "64 cells, 6 used, head 0, n_kv 32, a shift is pending, K and V 1.00 MiB",
        " 0 000MM0" + "." * 58,
        "sequence  positions  cells",
        "       0  0-6            4",
        "       1  0-1            2",
        "       2  0-1            2",
    ]


def test_a_plan_as_text() -> None:
    filled = np.array([bit == "1" for bit in "1100110101"])
    assert str(plan_defrag(filled, 2)).splitlines() == [
        "Defrag plan",
        "2 of 2 empty cells filled in 2 block moves (at most 2 moves)",
        "from cells  to cells  number",
        "         7         2       1",
        "         9         3       1",
    ]


def test_a_timeline_as_text() -> None:
    assert str(timeline(note="One token")).splitlines() == [
        "t",
        "3 steps in 4 frames, 32 cells",
        "step  call    returned  used  head  n_kv  note",
        "   1  decode         0     1     1    32  One token",
        "   2  decode         0     2     2    32  One token",
        "   3  decode         0     3     3    32  One token",
    ]


def test_a_long_timeline_is_cut() -> None:
    lines = str(timeline(n=30)).splitlines()
    assert (len(lines), lines[-1]) == (28, "and 6 more rows")
    assert "and 6 more rows" in timeline(n=30)._repr_html_()


def test_a_failed_step_shows_its_error() -> None:
    ops = [{"op": "decode", "tokens": [{"n": 3}]}]
    document = {"title": "t", "cache": {"kv_size": 32}, "context": {"n_batch": 2}, "ops": ops}
    told = str(play(Scenario.model_validate(document))).splitlines()[-1]
    assert "ended" in told
    assert "the batch has 3 tokens; allowed: n_batch = 2 at most" in told


@pytest.mark.parametrize(
    ("pos", "seqs", "expected"),
    [
        ([-1, 0, 1, 2], [0, 1, 3, 0], "0 .0M?"),
        ([0, 0, -1, 0], [1 << 12, 1, 0, 3], "0 12  0  .  M"),
        ([0], [1 << 63], "0 63"),
    ],
)
def test_symbols(pos: list[int], seqs: list[int], expected: str) -> None:
    assert cell_map(np.array(pos, np.int32), np.array(seqs, np.uint64)) == expected


def test_a_large_map_is_cut_into_lines_and_counted() -> None:
    pos, seqs = np.arange(1500, dtype=np.int32), np.full(1500, 2, np.uint64)
    lines = cell_map(pos, seqs).splitlines()
    assert len(lines) == 17
    assert lines[1] == "  64 " + "1" * 64
    assert lines[-1] == "and 476 more cells"


def test_long_words_are_cut() -> None:
    table = Table.of(("word",), [("x" * 100,)])
    assert table.rows == (("x" * 57 + "...",),)


def test_a_card_without_rows_has_no_table() -> None:
    card = Card("Title", "facts", tables=(Table.of(("a",), []),))
    assert card.text() == "Title\nfacts"
    assert "<table>" not in card.html()
