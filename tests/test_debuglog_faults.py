"""Debug logs that lack maps, are damaged or too large; and a search held against a cache."""

from pathlib import Path

import numpy as np
import pytest

from kvmodel.errors import ParamError
from kvmodel.formats import debuglog, debuglog_text
from kvmodel.formats.debuglog import DebugLog, open_log, read_log
from kvmodel.formats.debuglog_cut import Budget
from kvmodel.limits import MAX_LOG_BYTES
from tests.debug_logs import HAND, LIVE, assert_hand
from tests.printed_log import Printed


def test_level_1_has_ranges_only() -> None:
    printed = Printed([(0, {0}), (1, {0}), (-1, set())], head=2)
    log = read_log(printed.text(1) * 12)
    assert [(search.used, dict(search.spans), search.has_map) for search in log.searches] == [
        (2, {0: (0, 1)}, False)
    ] * 12
    assert log.level == 1
    assert (
        log.missing == "the log has 12 searches but no maps: set LLAMA_KV_CACHE_DEBUG=3; window caches print them at 2"
    )
    assert log.missing in str(log)


def test_level_2_has_maps_of_window_caches_only() -> None:
    cells = [(0, {0}), (1, {0}), (-1, set())]
    log = read_log(Printed(cells).text(2) + Printed(cells, n_swa=4).text(2))
    assert [(search.part, search.has_map) for search in log.searches] == [("base", False), ("swa", True)]
    assert log.level == 2
    assert (
        log.missing
        == "the log has 2 searches, but maps of window caches only: set LLAMA_KV_CACHE_DEBUG=3 for the others"
    )


def test_a_log_without_searches_says_what_to_do() -> None:
    assert read_log("").missing == (
        "the log has no searches: set LLAMA_KV_CACHE_DEBUG=3 and let debug messages through (--verbose)"
    )
    for path in (LIVE / "0.3.7" / "recurrent.log", LIVE / "0.3.11" / "recurrent.log"):
        told = "the log has no searches: only the unified cache of mid-2025 prints them"
        assert (open_log(path).missing, open_log(path).level) == (told, 0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("01.1M.0.", "01.1M.", "no map follows the summary, though the log has maps of other searches"),
        ("01.1M.0.", "01.1M00.", "the two maps do not agree on whether cell 5 is empty"),
        ("12   .    ", "12   13   ", "the two maps do not agree on whether cell 5 is empty"),
        ("used =     5", "used =     6", "the maps show 5 used cells up to 7, the summary 6 used cells up to 7"),
        ("7    12", "7    1.2", "the map of positions ends after 0 of 8 cells"),
        ("7    12", "07   12", "the map of positions has a cell that is neither a number nor a point"),
        ("max[0] =    12", "max[0] =     0", "the maps show sequence 0 outside its range 0 to 0"),
        ("size =     8", "size =     6", "the summary has n = 7, used = 5, head = 3, size = 6; no cache is like that"),
        ("size =     8", "size = 9999999", "the summary has n = 7, used = 5, head = 3, size = 9999999; no cache is"),
    ],
)
def test_damage_is_a_fault_and_no_map(old: str, new: str, message: str) -> None:
    log = read_log(HAND.replace(old, new) + HAND)
    assert [fault.message.startswith(message) for fault in log.faults] == [True]
    assert log.faults[0].line == 2
    assert_hand(DebugLog(log.maps, {}, (), (), (), ()))


def test_maps_that_stop_are_a_fault() -> None:
    text = Printed([(i, {0}) for i in range(300)]).text()
    cut = text[: text.index("find_slot: min")]
    whole = read_log(cut)
    assert (len(whole.maps), dict(whole.searches[0].spans)) == (1, {})
    lines = cut.splitlines()
    for end, told in ((3, "owners ends after 256 of 300"), (5, "positions ends after 0 of 300"), (7, "after 128 of")):
        log = read_log("\n".join(lines[:end]))
        assert [told in fault.message for fault in log.faults] == [True]
        assert log.missing == "the log has 1 search, and the maps of 1 cannot be read: see its faults"


def test_ranges_of_a_search_whose_summary_is_lost_are_not_taken_over() -> None:
    first, second = Printed([(0, {0}), (-1, set())]), Printed([(5, {0}), (7, {1})])
    lost = "\n".join(second.text().splitlines()[1:])
    for level in (1, 3):
        text = first.text(level) + (lost if level == 3 else "find_slot: min[0] =     5, max[0] =     5\n")
        assert dict(read_log(text).searches[0].spans) == {0: (0, 0)}


def test_a_log_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.log"
    with path.open("wb") as file:
        file.truncate(MAX_LOG_BYTES + 1)
    with pytest.raises(ParamError, match="log is '67,108,865 bytes'; allowed: 67,108,864 bytes at most"):
        open_log(path)
    with pytest.raises(ParamError, match="log is"):
        debuglog_text.lines_of(bytes(MAX_LOG_BYTES + 1))


def test_too_many_readings_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells in no order, of sequences whose numbers are made of each other's digits."""
    monkeypatch.setattr(debuglog, "Budget", lambda: Budget(1_000))
    rng = np.random.default_rng(0)
    owners = rng.choice([1, 2, 11, 12, 21, 22], 256).tolist()
    cells = [(pos, {seq}) for pos, seq in zip(rng.integers(0, 999, 256).tolist(), owners, strict=True)]
    log = read_log(Printed(cells).text() + HAND)
    assert [fault.message for fault in log.faults] == ["the log has too many symbols that can be read in several ways"]
    assert_hand(DebugLog(log.maps, {}, (), (), (), ()))


def test_a_search_is_compared_with_a_cache() -> None:
    [search] = read_log(HAND).searches
    pos = np.array([0, 0, -1, 7, 12, -1, 1, -1], np.int32)
    seqs = np.array([1, 2, 0, 2, 3, 0, 1, 0], np.uint64)
    assert search.differing(pos, seqs).tolist() == []
    seqs[[3, 4]] = 1, 6
    pos[6] = 2
    assert search.differing(pos, seqs).tolist() == [3, 6]


def test_a_search_and_a_log_show_themselves() -> None:
    log = read_log(HAND)
    assert str(log.searches[0]).splitlines() == [
        "Cells of kv before a slot search (line 2)",
        "8 cells, 5 used, head 3, n_swa 0",
        "0 01.1M.0.",
        "sequence  positions",
        "       0  0-12",
        "       1  0-12",
    ]
    assert str(log).splitlines()[:2] == ["Debug log", "1 search, 1 map, level 3"]
