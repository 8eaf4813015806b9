"""Debug logs: recorded ones, and every way in which a log can come wrapped, mixed or cut off."""

from pathlib import Path

import numpy as np
import pytest

from kvmodel.errors import ParamError
from kvmodel.formats import debuglog, debuglog_text
from kvmodel.formats.debuglog import EMPTY, SEVERAL, UNCLEAR, DebugLog, LoggedSearch, open_log, read_log
from kvmodel.formats.debuglog_cut import Budget
from kvmodel.limits import MAX_LOG_BYTES
from tests.printed_log import Printed

LIVE = Path(__file__).parent / "data" / "live"
N_MAPS = {
    "cache-full": 9, "chat-context-shift": 9, "fragment-then-defrag": 19, "recurrent": 0, "self-extend": 3,
    "swa-slide": 26, "types-f32-f32": 2, "types-q8_0-f16": 2, "types-q8_0-q8_0-fa": 2, "y-equals-x-plus-1": 2,
}  # fmt: skip
"""Searches in the recorded logs of mid-2025, counted by their summary lines."""

PAD = " " * 4
HAND = f"""\
load: something before
find_slot: n =     7, used =     5, head =     3, size =     8, n_swa =     0

01.1M.0.

0    0    .    7    12   .    1    .{PAD}
find_slot: min[0] =     0, max[0] =    12
find_slot: min[1] =     0, max[1] =    12
decode: something after
"""


def codes(search: LoggedSearch) -> list[int]:
    assert search.owners is not None
    return [int(code) for code in search.owners]


def positions(search: LoggedSearch) -> list[int]:
    assert search.pos is not None
    return [int(pos) for pos in search.pos]


def assert_hand(log: DebugLog) -> None:
    [search] = log.searches
    assert (search.n, search.used, search.head, search.size, search.n_swa) == (7, 5, 3, 8, 0)
    assert codes(search) == [0, 1, EMPTY, 1, SEVERAL, EMPTY, 0, EMPTY]
    assert positions(search) == [0, 0, -1, 7, 12, -1, 1, -1]
    assert search.spans == {0: (0, 12), 1: (0, 12)}
    assert log.faults == ()


def test_a_search_by_hand() -> None:
    log = read_log(HAND)
    assert_hand(log)
    assert (log.searches[0].line, log.level, log.missing) == (2, 3, "")


@pytest.mark.parametrize("name", N_MAPS)
def test_every_search_of_a_recorded_log_has_its_maps(name: str) -> None:
    path = LIVE / "0.3.11" / f"{name}.log"
    log = open_log(path)
    assert len(log.maps) == len(log.searches) == path.read_text().count("find_slot: n =") == N_MAPS[name]
    assert log.faults == ()


def test_a_recorded_pair_is_told_apart_by_its_window() -> None:
    log = open_log(LIVE / "0.3.11" / "swa-slide.log")
    assert [search.part for search in log.searches[:6]] == ["base"] * 3 + ["swa"] * 3
    assert {(search.part, search.size, search.n_swa) for search in log.searches} == {("base", 128, 0), ("swa", 64, 16)}
    last = log.searches[-1]
    assert (last.line, last.used, last.head, dict(last.spans)) == (326, 54, 40, {0: (40, 59), 1: (20, 53)})
    assert codes(last)[:12] == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0]
    assert log.window_layers == (True,) * 5 + (False,)


def test_what_was_done_is_listed() -> None:
    told = [(notice.line, notice.kind) for notice in open_log(LIVE / "0.3.11" / "fragment-then-defrag.log").notices]
    assert [kind for _, kind in told] == ["defrag", "retry", "no_slot"]
    lines = (LIVE / "0.3.11" / "fragment-then-defrag.log").read_text().splitlines()
    assert lines[told[0][0] - 1] == "update: defragmenting KV cache"
    older = open_log(LIVE / "0.3.7" / "fragment-then-defrag.log").notices
    assert [notice.text for notice in older] == ["llama_decode: failed to decode, ret = 1"] * 2


def test_settings_of_the_recorded_logs() -> None:
    new, old = (open_log(LIVE / version / "types-q8_0-f16.log") for version in ("0.3.11", "0.3.7"))
    for log in (new, old):
        names = ("n_ctx", "n_ubatch", "n_seq_max", "n_layer", "n_head_kv", "n_embd_head_k", "flash_attn", "n_tensors")
        assert [log.number(name) for name in names] == [256, 16, 4, 2, 2, 32, 0, 21]
        assert log.settings["arch"] == "llama"
        assert log.settings["rope scaling"] == "linear"
    with pytest.raises(ParamError, match="arch is 'llama'; allowed: a whole number in the log"):
        new.number("arch")
    with pytest.raises(ParamError, match="n_moons is 'nothing'"):
        new.number("n_moons")


def test_memory_lines_of_every_kind() -> None:
    def told(name: str) -> list[tuple[object, ...]]:
        log = open_log(LIVE / f"{name}.log")
        return [
            (m.kind, m.part, m.cells, m.n_layer, m.n_seqs, m.can_shift, m.mib, m.type_k, m.k_mib, m.type_v, m.v_mib)
            for m in log.memory
        ]

    assert told("0.3.11/types-q8_0-f16") == [
        ("unified", "kv", 256, 2, 4, None, 0.1, "q8_0", 0.03, "f16", 0.06),
    ]
    assert told("0.3.11/swa-slide") == [
        ("unified", "base", 128, 1, 2, None, 0.02, "f16", 0.01, "f16", 0.01),
        ("unified", "swa", 64, 5, 2, None, 0.04, "f16", 0.02, "f16", 0.02),
    ]
    assert told("0.3.11/recurrent") == [("memory_recurrent", "kv", 4, 2, 4, None, 0.04, "f32", 0.01, "f32", 0.03)]
    assert told("0.3.7/types-q8_0-f16") == [("legacy", "kv", 256, 2, None, True, 0.1, "q8_0", 0.03, "f16", 0.06)]
    assert told("0.3.7/recurrent") == [("legacy", "kv", 4, 2, None, False, 0.04, "f32", 0.01, "f32", 0.03)]
    [memory] = open_log(LIVE / "0.3.7" / "recurrent.log").memory
    assert (memory.buffers, dict(memory.widths)) == ((("CPU", 0.04),), {0: (192, 1024), 1: (192, 1024)})


def test_a_memory_line_of_upstreams_own_documentation() -> None:
    line = (
        "llama_kv_cache_unified: size =  512.00 MiB (  4096 cells,  32 layers,  1 seqs),"
        " K (f16):  256.00 MiB, V (f16):  256.00 MiB"
    )
    [memory] = read_log(line).memory
    assert (memory.cells, memory.n_layer, memory.n_seqs, memory.mib, memory.k_mib) == (4096, 32, 1, 512.0, 256.0)


@pytest.mark.parametrize(
    ("prefix", "everywhere"),
    [
        ("[1764536400] ", False),
        ("0.00.123.456 D ", False),
        ("srv  update_slots: ", False),
        ("Nov 30 21:13:00 host-1 llama-server[123]: ", True),
        ("2025-11-30T21:13:00.123456789Z ", True),
        ("2025-11-30 21:13:00,123 | ", True),
        ("1764536400 ", True),
        ("llama-1  | ", True),
    ],
)
def test_prefixes_of_messages_or_of_all_lines(prefix: str, everywhere: bool) -> None:
    lines = [prefix + line if everywhere or "find_slot" in line else line for line in HAND.splitlines()]
    assert_hand(read_log("\n".join(lines)))


def test_a_prefix_of_the_collector_on_all_lines_and_one_of_the_logger_on_the_first() -> None:
    lines = [f"Nov 30 21:13:0{i} host x[1]: {line}" for i, line in enumerate(HAND.splitlines())]
    text = "\n".join(lines).replace(": find_slot", ": 0.00.123.456 D find_slot")
    assert_hand(read_log(text))


def test_times_in_a_prefix_may_change_from_line_to_line() -> None:
    lines = [f"{9 + i}.{i:03d} {line}" for i, line in enumerate(HAND.splitlines())]
    assert_hand(read_log("\n".join(lines)))


def test_colours_and_other_line_ends() -> None:
    coloured = HAND.replace("find_slot:", "\x1b[35mfind_slot:\x1b[0m").replace("01.1M", "\x1b[1;32m01.1M\x1b[0m")
    assert_hand(read_log(coloured))
    assert_hand(read_log(HAND.replace("\n", "\r\n")))
    assert_hand(read_log(HAND.replace("\n", "\r")))
    assert_hand(read_log("\x1b]0;title\x07" + HAND))


def test_encodings_of_a_redirected_log() -> None:
    assert_hand(read_log(HAND.encode()))
    assert_hand(read_log(b"\xef\xbb\xbf" + HAND.encode()))
    assert_hand(read_log(b"\xff\xfe" + HAND.encode("utf-16-le")))
    assert_hand(read_log(b"\xfe\xff" + HAND.encode("utf-16-be")))
    assert_hand(read_log(b"\xff caf\xe9\n" + HAND.encode()))


def test_blank_lines_and_trailing_spaces_may_be_gone() -> None:
    assert_hand(read_log("\n".join(line.rstrip() for line in HAND.splitlines() if line.strip())))


def test_lines_of_others_in_between() -> None:
    lines = HAND.splitlines()
    noise = ["srv  log_server_r: request: POST /completion 200", "slot update: id  0 | n_past = 12", "", "12 3"]
    mixed = [text for line in lines for text in (line, *noise)]
    assert_hand(read_log("\n".join(mixed)))


def test_other_compilers_name_the_class_too() -> None:
    assert_hand(read_log(HAND.replace("find_slot:", "llama_kv_cache_unified::find_slot:")))


def wide(cells: list[tuple[int, set[int]]], **more) -> LoggedSearch:
    log = read_log(Printed(cells, **more).text())
    assert log.faults == ()
    return log.searches[0]


def test_two_digits_are_told_by_the_ranges() -> None:
    """`1112` for three cells: sequence 1 ends at position 4, sequence 12 begins at 30."""
    search = wide([(3, {1}), (4, {1}), (30, {12})])
    assert codes(search) == [1, 1, 12]


def test_two_digits_are_told_by_what_goes_on() -> None:
    """`1` 100 times and `11` 50 times: both begin at position 0, and the fewest breaks keep sequence 1 in one piece."""
    search = wide([(pos, {1}) for pos in range(100)] + [(pos, {11}) for pos in range(50)])
    assert codes(search) == [1] * 100 + [11] * 50


def test_empty_and_shared_cells_cut_two_digits() -> None:
    cells = [(0, {10}), (1, {1, 2}), (-1, set()), (0, {3}), (1, {33}), (5, {63})]
    assert codes(wide(cells)) == [10, SEVERAL, EMPTY, 3, 33, 63]


def test_two_digits_that_cannot_be_told_apart_are_unclear() -> None:
    """`111` for two cells, and both sequences have both positions."""
    search = wide([(4, {1}), (6, {11})], ranges={1: (0, 9), 11: (0, 9)})
    assert codes(search) == [UNCLEAR, UNCLEAR]
    assert positions(search) == [4, 6]
    assert "?" in str(search)
    assert search.differing(np.array([4, 6], np.int32), np.array([2, 2048], np.uint64)).tolist() == []


def test_a_line_of_the_map_is_256_cells_however_wide() -> None:
    cells = [(i, {15}) for i in range(300)] + [(-1, set())] * 200 + [(i, {2}) for i in range(12)]
    search = wide(cells, head=500)
    assert codes(search) == [15] * 300 + [EMPTY] * 200 + [2] * 12
    assert positions(search)[254:257] == [254, 255, 256]


@pytest.mark.parametrize("first", [9_970, 99_970, 999_970])
def test_positions_without_spaces_between_them(first: int) -> None:
    cells = [(first + i, {0}) for i in range(60)] + [(-1, set()), (7, {1}), (first + 60, {0}), (9, {1})] * 10
    search = wide(cells)
    assert positions(search) == [pos for pos, _ in cells]
    assert codes(search) == [min(owners, default=EMPTY) for _, owners in cells]


def test_large_positions_without_trailing_spaces() -> None:
    """Fifteen characters for three cells, as positions of five digits take, but then one of them would begin with 0."""
    text = Printed([(100_001, {0}), (100_002, {0}), (123, {0})]).text()
    assert positions(read_log(text).searches[0]) == [100_001, 100_002, 123]
    assert positions(read_log(text.replace("123  ", "123")).searches[0]) == [100_001, 100_002, 123]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("100001100002", "900001900002", "a line of the map of positions has no 3 positions up to 100,002"),
        ("100001100002", "1000011000002", "a line of the map of positions has no 3 positions up to 100,002"),
        ("0 0 0", "9" * 20, "the map of positions has a number that no position can be"),
    ],
)
def test_large_positions_that_cannot_be(old: str, new: str, message: str) -> None:
    text = Printed([(100_001, {0}), (100_002, {0}), (7, {0})]).text()
    if old not in text:
        text = Printed([(1, {0}), (2, {0})]).text(1).split("find_slot: min")[0] + f"\n00\n\n{new}\n"
    log = read_log(text.replace(old, new))
    assert [fault.message for fault in log.faults] == [message]


@pytest.mark.parametrize(
    ("owners", "message"),
    [
        ("1012.", "the two maps do not agree on which cells are empty"),
        ("1.123", "2 cells in a row have 1 characters in the map of owners"),
        ("10129", "3 cells in a row cannot belong to the sequences 10129"),
    ],
)
def test_two_digits_that_cannot_be(owners: str, message: str) -> None:
    text = Printed([(0, {10}), (1, {10}), (2, {12})]).text()
    if "." in owners:
        text = Printed([(0, {10}), (1, {1}), (-1, set()), (2, {1})]).text()
    log = read_log(text.replace("101012", owners).replace("101.1", owners))
    assert [fault.message for fault in log.faults] == [message]


def test_a_prefix_of_too_many_words_is_taken_for_none() -> None:
    assert_hand(read_log(HAND.replace("find_slot: n", "a " * 40 + "find_slot: n")))


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
