"""The command's live mode: recorded runs agree with the model, and whatever is changed in one is found."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvmodel.caches.iswa import IswaCache
from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.memory_recurrent import RecurrentMemory
from kvmodel.caches.recurrent import RecurrentCache
from kvmodel.caches.unified import UnifiedCache
from kvmodel.configs import IswaConfig, LegacyConfig
from tests.replay.live import OWN_RUNS, replay_live
from tests.replay.live_config import scenario_of
from tests.replay.live_play import LivePlayer
from tests.replay.live_run import find_runs, read_run
from tests.replay.run import main
from tests.sources import ROOT

NEW = "live 0.3.11: 10 runs, 85 calls, 74 maps compared, 11 files compared, 0 differences"
OLD = "live 0.3.7: 8 runs, 68 calls, 0 maps compared, 9 files compared, 0 differences"
Change = Callable[[Any], None]


def test_every_recorded_run_agrees_with_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--live"]) == 0
    assert capsys.readouterr().out.splitlines() == [NEW, OLD]


def test_the_command_itself() -> None:
    command = [sys.executable, "-m", "tests.replay", "--live", str(OWN_RUNS / "0.3.11" / "recurrent.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    told = "live 0.3.11: 1 runs, 8 calls, 0 maps compared, 1 files compared, 0 differences\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, told, "")


def test_each_run_is_played_on_its_own_kind_of_cache() -> None:
    kinds = {
        "0.3.11/swa-slide": IswaCache,
        "0.3.11/recurrent": RecurrentMemory,
        "0.3.11/self-extend": UnifiedCache,
        "0.3.7/recurrent": RecurrentCache,
        "0.3.7/speculative": LegacyCache,
    }
    found = {name: type(LivePlayer(read_run(OWN_RUNS / f"{name}.json")).cache) for name in kinds}
    assert found == kinds


def test_the_log_says_what_the_cache_is_made_of() -> None:
    pair = scenario_of(read_run(OWN_RUNS / "0.3.11" / "swa-slide.json"))
    assert isinstance(pair.cache, IswaConfig)
    assert (pair.cache.kv_size, pair.cache.n_swa, pair.cache.arch) == (128, 16, "gemma3")
    assert pair.cache.swa_layers == (True,) * 5 + (False,)
    assert pair.cache.pair(pair.context.n_ubatch).swa_cells == 64
    older = scenario_of(read_run(OWN_RUNS / "0.3.7" / "types-q8_0-q8_0-fa.json"))
    assert isinstance(older.cache, LegacyConfig)
    assert (older.cache.flash_attn, older.cache.type_k, older.cache.n_embd_head_v) == (True, "q8_0", 32)
    assert (older.context.n_max_nodes, pair.context.n_max_nodes) == (8192, 65_536)


def copied(folder: Path, name: str) -> Path:
    """A copy of a run under another name, as nothing but the log may tell the model."""
    source = OWN_RUNS / f"{name}.json"
    for path in source.parent.glob(f"{source.stem}*"):
        shutil.copy(path, folder / path.name.replace(source.stem, "run"))
    path = folder / "run.json"
    change(path, lambda run: run["config"].update(model="a.gguf"))
    return path


def change(path: Path, how: Change) -> None:
    run = json.loads(path.read_text(encoding="utf-8"))
    how(run)
    path.write_text(json.dumps(run), encoding="utf-8")


def differences(path: Path) -> list[str]:
    return [str(difference) for summary in replay_live([path]) for difference in summary.differences]


@pytest.mark.parametrize("name", ["0.3.11/swa-slide", "0.3.11/recurrent", "0.3.7/recurrent", "0.3.7/types-f32-f32"])
def test_names_of_files_play_no_part(name: str, tmp_path: Path) -> None:
    assert differences(copied(tmp_path, name)) == []


@pytest.mark.parametrize(
    ("name", "how", "told"),
    [
        (
            "0.3.11/chat-context-shift",
            lambda run: run["steps"][0].update(result=1),
            ["run.json, record 0 (decode), result: expected 1, got 0"],
        ),
        (
            "0.3.11/swa-slide",
            lambda run: run["steps"][2]["ranges"].update({"0": [11, 44]}),
            ["run.json, record 2 (decode), ranges.0[0]: expected 11, got 10"],
        ),
        (
            "0.3.11/recurrent",
            lambda run: run["steps"][0]["ranges"].update({"1": [0, 0]}),
            ["run.json, record 0 (decode), ranges.1: expected [0, 0], got nothing"],
        ),
        (
            "0.3.7/speculative",
            lambda run: run["steps"][1]["view"]["cells"][3][1].append(1),
            ["run.json, record 1 (decode), view.cells.3[1][1]: expected 1, got nothing"],
        ),
        (
            "0.3.7/recurrent",
            lambda run: run["steps"][0]["view"].update(max_contiguous=4),
            ["run.json, record 0 (decode), view.max_contiguous: expected 4, got 3"],
        ),
        (
            "0.3.11/types-f32-f32",
            lambda run: run["steps"][-2]["op"].update(tokens=[1, 2, 3]),
            [
                "run.json, record 5 (save_seq), token ids[2]: expected nothing, got 3",
            ],
        ),
        (
            "0.3.11/self-extend",
            lambda run: run["steps"][-1].update(result=9725),
            ["run.json, record 4 (save_seq), result: expected 9725, got 9724"],
        ),
    ],
)
def test_a_changed_record_is_found(name: str, how: Change, told: list[str], tmp_path: Path) -> None:
    path = copied(tmp_path, name)
    change(path, how)
    assert differences(path) == told


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        (
            "0.3.11/cache-full",
            "0000000011111111........",
            "0000000011111110........",
            ["searches[3].differing cells[0]: expected nothing, got 23"],
        ),
        (
            "0.3.11/cache-full",
            "head =    24, size",
            "head =    23, size",
            ["searches[3].head: expected 23, got 24"],
        ),
        (
            "0.3.11/swa-slide",
            "min[1] =    10, max[1] =    48",
            "min[1] =     9, max[1] =    48",
            ["ranges.1: expected (9, 48), got (10, 48)"],
        ),
        (
            "0.3.11/swa-slide",
            "size =    0.04 MiB (    64 cells",
            "size =    0.05 MiB (    64 cells",
            ["memory[1].K and V: expected '0.05', got '0.04'"],
        ),
        (
            "0.3.7/types-q8_0-f16",
            "K (q8_0):    0.03 MiB",
            "K (q8_0):    0.04 MiB",
            ["memory[0].K: expected '0.04', got '0.03'"],
        ),
        ("0.3.7/recurrent", "can_shift = 0", "can_shift = 1", ["memory[0].can_shift: expected True, got False"]),
        (
            "0.3.7/recurrent",
            "layer 1: n_embd_k_gqa = 192",
            "layer 1: n_embd_k_gqa = 193",
            ["row widths.1: expected (193, 1024)"],
        ),
        ("0.3.11/self-extend", "update: applying K-shift\n", "", ["log, shift: expected 0, got 1"]),
        (
            "0.3.11/cache-full",
            "used =     8,",
            "used =     7,",
            ["searches[1].used: expected 7, got 8", "log, faults[0]"],
        ),
    ],
)
def test_a_changed_log_is_found(name: str, old: str, new: str, told: list[str], tmp_path: Path) -> None:
    path = copied(tmp_path, name)
    log = path.with_suffix(".log")
    text = log.read_text(encoding="utf-8")
    assert old in text
    log.write_text(text.replace(old, new, 1), encoding="utf-8")
    found = differences(path)
    assert all(any(words in line for line in found) for words in told), found


@pytest.mark.parametrize(
    ("at", "value", "told"),
    [
        (24, 9, "record 5 (save_seq), halves[0].pos[0]: expected 9, got 0"),
        (12, 9, "record 5 (save_seq), token ids[0]: expected 9, got 1"),
        (4, 3, "record 5 (save_seq), file: expected 'run-slot0.bin', got 'FormatError: version at byte 4 is 3; "),
    ],
)
def test_a_changed_file_is_found(at: int, value: int, told: str, tmp_path: Path) -> None:
    path = copied(tmp_path, "0.3.11/types-f32-f32")
    file = tmp_path / "run-slot0.bin"
    data = bytearray(file.read_bytes())
    data[at] = value
    file.write_bytes(data)
    assert any(told in line for line in differences(path)), differences(path)


def test_a_missing_file_is_a_difference(tmp_path: Path) -> None:
    path = copied(tmp_path, "0.3.11/recurrent")
    (tmp_path / "run-slot2.bin").unlink()
    assert differences(path) == [
        "run.json, record 7 (save_seq), file: expected 'run-slot2.bin', got nothing",
        "run.json, record 7 (save_seq), result: expected 9812, got None",
    ]


def test_an_unknown_call_is_a_difference(tmp_path: Path) -> None:
    path = copied(tmp_path, "0.3.11/recurrent")
    change(path, lambda run: run["steps"].append({"op": {"op": "reboot"}, "result": None, "ranges": None}))
    [told] = differences(path)
    assert "record 8 (reboot), result: expected None, got 'no such call; known: seq_rm, " in told


@pytest.mark.parametrize("version", ["0.3.11", "0.3.7"])
def test_a_saved_slot_can_be_loaded_as_another_sequence(version: str, tmp_path: Path) -> None:
    """The slot has 6 cells of sequence 0, which become those of sequence 3; the log knows of no such search."""
    path = copied(tmp_path, f"{version}/types-f32-f32")
    size = (tmp_path / "run-slot0.bin").stat().st_size

    def load(run: Any) -> None:
        last = run["steps"][-1]
        ranges = None if last["ranges"] is None else {**last["ranges"], "3": [0, 5]}
        call = {"op": "load_seq", "seq": 3, "file": "slot0.bin"}
        run["steps"].append({"op": call, "result": size, "ranges": ranges})
        run["steps"].append(
            {"op": {"op": "load_session", "file": "session.bin"}, "result": True, "ranges": last["ranges"]}
        )
        run["steps"].append(
            {"op": {**call, "seq": 63 if version == "0.3.11" else 3, "file": "x.bin"}, "result": 0, "ranges": None}
        )
        shutil.copy(tmp_path / "run-session.bin", tmp_path / "run-x.bin")

    change(path, load)
    expected = ["run.json, log, searches: expected 2, got 3"] if version == "0.3.11" else []
    assert differences(path) == expected


def test_nothing_to_play_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rope.json").write_text('{"rows": []}', encoding="utf-8")
    assert main(["--live", str(tmp_path)]) == 2
    assert "no recorded runs in it" in capsys.readouterr().err
    assert main(["--live", str(tmp_path / "none")]) == 2
    assert "there is no such file or folder" in capsys.readouterr().err


def test_a_damaged_run_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copied(tmp_path, "0.3.11/recurrent")
    assert find_runs([tmp_path]) == [path.resolve()]
    log = path.with_suffix(".log")
    text = log.read_text(encoding="utf-8")
    log.write_text("llama_context: n_batch = 1\n", encoding="utf-8")
    assert main(["--live", str(path)]) == 2
    assert "the log tells of no cache" in capsys.readouterr().err
    log.write_text(text.replace("n_ubatch      = 16", ""), encoding="utf-8")
    assert main(["--live", str(path)]) == 2
    assert "n_ubatch is 'nothing'; allowed: a whole number in the log" in capsys.readouterr().err
    log.unlink()
    assert main(["--live", str(path)]) == 2
    assert "FileNotFoundError" in capsys.readouterr().err
    path.write_text("{}", encoding="utf-8")
    assert main(["--live", str(path)]) == 2
    assert "KeyError: 'steps'" in capsys.readouterr().err


def test_differences_fail_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copied(tmp_path, "0.3.7/recurrent")
    change(path, lambda run: run["steps"][0].update(result=1))
    assert main(["--live", str(path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "run.json, record 0 (decode), result: expected 1, got 0",
        "live 0.3.7: 1 runs, 8 calls, 0 maps compared, 1 files compared, 1 differences",
    ]
