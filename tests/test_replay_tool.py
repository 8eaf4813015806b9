"""The replay's own parts: hash, encodings, the command and its exit codes."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.replay import codec
from tests.replay.families import DRIVERS, FAMILIES
from tests.replay.fnv import CHUNK, fnv1a
from tests.replay.run import OWN_RECORDINGS, main
from tests.sources import ROOT

SAMPLE = OWN_RECORDINGS / "unified" / "inputs_swa_06.jsonl.gz"
SAME = "unified: 1 traces, 17 operations, 0 differences"


def literal_fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


@pytest.mark.parametrize(
    ("data", "expected"),
    # From the test vectors of the FNV authors.
    [
        (b"", "cbf29ce484222325"),
        (b"a", "af63dc4c8601ec8c"),
        (b"foobar", "85944171f73967e8"),
        (b"\0", "af63bd4c8601b7df"),
    ],
)
def test_the_hash_of_known_texts(data, expected):
    assert fnv1a(data) == expected


@given(st.binary(max_size=300) | st.lists(st.sampled_from([0, 0, 0, 1, 128, 255]), max_size=300).map(bytes))
def test_the_hash_is_the_literal_one(data):
    assert fnv1a(data) == literal_fnv(data)


@pytest.mark.parametrize("size", [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 5])
def test_the_hash_of_several_chunks(size):
    data = np.random.default_rng(size).integers(0, 3, size, np.uint8).tobytes()
    assert fnv1a(data) == literal_fnv(data)
    assert fnv1a(bytes(size)) == literal_fnv(bytes(size))


SMALL = st.integers(-1, 3)


@given(st.integers(0, 40).flatmap(lambda n: st.tuples(*(st.lists(SMALL, min_size=n, max_size=n) for _ in range(3)))))
def test_cell_runs_stand_for_the_cells(columns):
    pos, shift, owners = (np.array(column, np.int32) for column in columns)
    seqs = owners.clip(0).astype(np.uint64) << np.uint64(61)
    used = {
        i: [int(pos[i]), int(shift[i]), int(seqs[i])]
        for i in range(len(pos))
        if (pos[i], shift[i], seqs[i]) != (-1, 0, 0)
    }
    assert codec.spell_cells(codec.cell_runs(pos, shift, seqs)) == used


def test_cell_runs_are_as_long_as_they_can_be():
    pos = np.array([0, 1, 2, 2, 2, 3, -1, 4, 9], np.int32)
    seqs = np.array([3, 3, 3, 3, 3, 3, 0, 3, 2**63], np.uint64)
    assert codec.cell_runs(pos, np.zeros(9, np.int32), seqs) == [
        [0, 3, 0, 1, 0, "3"],
        [3, 2, 2, 0, 0, "3"],
        [5, 1, 3, 1, 0, "3"],
        [7, 1, 4, 1, 0, "3"],
        [8, 1, 9, 1, 0, "8000000000000000"],
    ]


@given(arrays.arrays(np.int32, st.integers(0, 30), elements=st.integers(0, 3)))
def test_value_and_index_runs_stand_for_their_entries(values):
    assert codec.spell_values(codec.value_runs(values)) == {i: v for i, v in enumerate(values.tolist()) if v}
    assert codec.spell_indices(codec.index_runs(values)) == values.tolist()


def test_bytes_of_a_cell_are_position_shift_and_owners():
    one = codec.cell_bytes(np.array([-1], np.int32), np.array([2], np.int32), np.array([2**63 + 1], np.uint64))
    assert one.hex() == "ffffffff" + "02000000" + "0100000000000080"


def test_a_mask_row_has_its_lowest_bit_first():
    visible = np.zeros((2, 9), np.bool_)
    visible[0, [0, 8]] = visible[1, 1] = True
    assert codec.packed_rows(visible).tobytes().hex() == "0101" + "0200"


@pytest.fixture
def command(capsys):
    """Run the command: exit code, lines of output, what it complains of."""

    def command(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out.splitlines(), captured.err

    return command


@pytest.fixture
def folder(tmp_path):
    """A folder of two families with one recording each."""
    for family in ("unified", "legacy"):
        (tmp_path / family).mkdir()
    (tmp_path / "unified" / SAMPLE.name).write_bytes(SAMPLE.read_bytes())
    with gzip.open(tmp_path / "legacy" / "one.jsonl.gz", "wt") as lines:
        lines.write(json.dumps({"header": {"kind": "legacy"}, "res": {}, "state": {}}) + "\n")
    return tmp_path


@pytest.fixture
def unbuilt(monkeypatch):
    """A project in which nothing but the unified cache can be replayed."""
    for family in set(FAMILIES) - {"unified"}:
        monkeypatch.delitem(DRIVERS, family, raising=False)


def test_a_folder_of_families_passes_though_one_is_not_built(command, folder, unbuilt):
    assert command(folder) == (0, [SAME, "legacy: 1 traces, not built yet"], "")


@pytest.mark.parametrize("arguments", ["legacy", "unified legacy", "legacy/one.jsonl.gz", ". --family legacy"])
def test_a_family_that_is_not_built_fails_when_asked_for(command, folder, unbuilt, monkeypatch, arguments):
    monkeypatch.chdir(folder)
    code, lines, complaint = command(*arguments.split())
    assert (code, complaint) == (1, "")
    assert lines[-1] == "legacy: 1 traces, not built yet"


def test_a_family_can_be_asked_for_alone(command, folder):
    assert command(folder, "--family", "unified") == (0, [SAME], "")


def test_a_file_given_twice_is_replayed_once(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert command("unified", folder / "unified" / SAMPLE.name) == (0, [SAME], "")


def test_unpacked_recordings_are_read_too(command, tmp_path):
    (tmp_path / "plain.jsonl").write_bytes(gzip.decompress(SAMPLE.read_bytes()))
    assert command(tmp_path) == (0, [SAME], "")


def test_a_folder_without_recordings_is_told(command, tmp_path):
    code, lines, complaint = command(tmp_path)
    assert (code, lines) == (2, [])
    assert f"{tmp_path}: no recordings in it" in complaint


def test_a_missing_path_is_told(command, tmp_path):
    code, lines, complaint = command(tmp_path / "gone")
    assert (code, lines) == (2, [])
    assert complaint == f"{tmp_path / 'gone'}: there is no such file or folder\n"


def test_a_family_without_recordings_is_told(command, folder):
    code, _, complaint = command(folder, "--family", "iswa")
    assert code == 2
    assert complaint.startswith("no recordings of the family iswa in ")


HEADER = {"kind": "unified", "kv_size": 8, "n_seq_max": 1, "n_pad": 8, "n_ubatch": 4}


def opened(**changes):
    """A header line with changes; None takes a field away."""
    return json.dumps({"header": {k: v for k, v in (HEADER | changes).items() if v is not None}})


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([], "line 1 has no object 'header'"),
        (["{"], "line 1 is no JSON: "),
        (["[]"], "line 1 is no JSON object"),
        (["{}"], "line 1 has no object 'header'"),
        ([opened(kind="round")], "kind is 'round'; allowed: iswa, legacy, recurrent, unified"),
        ([opened(kv_size=None)], "header: kv_size missing"),
        ([opened(), "{}"], "line 2 has no object 'op'"),
        ([opened(), '{"op": {"op": "fly"}}'], "record 0: op is 'fly'; allowed: clear, decode, "),
        ([opened(), '{"op": {"op": "seq_rm", "seq": 0}}'], "record 0: seq_rm lacks p0, p1"),
        ([opened(), '{"op": {"op": "clear"}, "res": {"abort": true}}', '{"op": {}}'], "records follow the abort of"),
    ],
)
def test_a_damaged_recording_is_told(command, tmp_path, lines, complaint):
    path = tmp_path / "damaged.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    code, output, complaints = command(path)
    assert (code, output) == (2, [])
    assert complaints.startswith(f"{path}: {complaint}")


@pytest.mark.parametrize("data", [b"plain", SAMPLE.read_bytes()[:-20], b""])
def test_a_damaged_file_is_told(command, tmp_path, data):
    path = tmp_path / "damaged.jsonl.gz"
    path.write_bytes(data)
    code, output, complaint = command(path)
    assert (code, output) == (2, [])
    assert complaint.startswith(f"{path}: ")


def test_a_header_that_the_model_refuses_is_told(command, tmp_path):
    path = tmp_path / "refused.jsonl"
    path.write_text(opened(type_k="f12"), encoding="utf-8")
    code, lines, _ = command(path)
    assert code == 1
    assert "refused.jsonl, header, res: expected nothing, got \"ParamError: type_k is 'f12'; allowed: f32, " in lines[0]


def test_the_command_runs_as_a_module():
    line = [sys.executable, "-m", "tests.replay", str(SAMPLE)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{SAME}\n", "")


def test_without_a_path_the_own_recordings_are_replayed(command):
    code, lines, _ = command("--family", "state")
    assert code == (0 if "state" in DRIVERS else 1)
    assert lines[-1].startswith("state: 17 traces, ")
