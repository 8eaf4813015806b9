"""Debug logs: recorded ones, and every way in which a log can come wrapped or mixed with other lines."""

import pytest

from kvmodel.errors import ParamError
from kvmodel.formats.debuglog import open_log, read_log
from tests.debug_logs import HAND, LIVE, assert_hand, codes

N_MAPS = {
    "cache-full": 9, "chat-context-shift": 9, "fragment-then-defrag": 19, "recurrent": 0, "self-extend": 3,
    "swa-slide": 26, "types-f32-f32": 2, "types-q8_0-f16": 2, "types-q8_0-q8_0-fa": 2, "y-equals-x-plus-1": 2,
}  # fmt: skip
"""Searches in the recorded logs of mid-2025, counted by their summary lines."""


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
