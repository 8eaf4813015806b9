"""The model gives what the C++ gave, field by field; and the replay tells where it does not."""

import copy
import gzip
import json

import pytest

from tests.replay.compare import ABSENT, differences
from tests.replay.families import DRIVERS
from tests.replay.player import play
from tests.replay.recording import read
from tests.replay.run import OWN_RECORDINGS, main

COUNTS = {"unified": 138, "iswa": 42, "state": 17, "legacy": 69, "recurrent": 28}
BUILT = sorted(path for family in DRIVERS for path in (OWN_RECORDINGS / family).glob("*.jsonl.gz"))
UNIFIED = OWN_RECORDINGS / "unified"
SAMPLE = UNIFIED / "inputs_swa_06.jsonl.gz"
RICH = ("inputs_swa_06", "inputs_alibi_02", "inputs_bucket_05", "odd_args_01", "sizes_03", "quirk_no_seq")


def load(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture
def sample():
    return load(SAMPLE)


@pytest.fixture
def told(tmp_path, capsys):
    """Replay altered records: exit code and lines of output."""

    def told(records):
        path = tmp_path / "altered.jsonl.gz"
        with gzip.open(path, "wt", encoding="utf-8") as lines:
            lines.writelines(json.dumps(record) + "\n" for record in records)
        code = main([str(path)])
        captured = capsys.readouterr()
        assert captured.err == ""
        return code, captured.out.splitlines()

    return told


@pytest.mark.parametrize("path", BUILT, ids=lambda path: f"{path.parent.name}-{path.name.removesuffix('.jsonl.gz')}")
def test_recording(path):
    recording = read(path)
    played = list(play(recording, DRIVERS[recording.family]))
    assert [str(difference) for found in played for difference in found] == []
    assert recording.family == path.parent.name
    assert len(played) == len(load(path))


@pytest.mark.parametrize("family", COUNTS)
def test_no_recording_is_missing(family):
    assert len(list((OWN_RECORDINGS / family).glob("*.jsonl.gz"))) == COUNTS[family]


def set_in(value, *path):
    """An alteration: put `value` at a path of record 8, a decode."""

    def alter(records):
        target = records[9]
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value

    return alter


def drop(*path):
    """An alteration: remove what stands at a path of record 8."""

    def alter(records):
        target = records[9]
        for step in path[:-1]:
            target = target[step]
        del target[path[-1]]

    return alter


UBATCH = ("res", "ubatches", 0)
CELLS = ("state", "kv", "cells")


@pytest.mark.parametrize(
    ("alter", "field", "expected", "got"),
    [
        (set_in([2, 1, 3, 1, 0, "4"], *CELLS, 1), "state.kv.cells[2]", [3, 0, 4], [1, 0, 4]),
        (set_in([28, 1, 10, 1, 4, "4"], *CELLS, -1), "state.kv.cells[28]", [10, 4, 4], [10, 0, 4]),
        (set_in([28, 1, 10, 1, 0, "c"], *CELLS, -1), "state.kv.cells[28]", [10, 0, 12], [10, 0, 4]),
        (drop(*CELLS, -1), "state.kv.cells[28]", ABSENT, [10, 0, 4]),
        (drop(*CELLS), "state.kv.cells", ABSENT, "[["),
        (set_in("800e0411", *UBATCH, "kv", "mask", "rows", 0), "mask.rows[0]", "800e0411", "800e0401"),
        (set_in("800e0401", *UBATCH, "kv", "mask_nc", "rows", 0), "mask_nc.rows[0]", "800e0401", "800e0403"),
        (drop(*UBATCH, "kv", "mask", "fnv"), "res.ubatches[0].kv.mask.fnv", ABSENT, "96a23cdbe45b0b1b"),
        (set_in(25, *UBATCH, "kv", "head"), "res.ubatches[0].kv.head", 25, 24),
        (set_in([[0, 4]], *UBATCH, "idx"), "res.ubatches[0].idx[3]", 3, ABSENT),
        (set_in([[5, 2, [0]], [9, 1, [2]]], *UBATCH, "tokens"), "ubatches[0].tokens[2]", [9, [2]], [9, [1]]),
        (drop("res", "ubatches", 1), "res.ubatches[1]", ABSENT, "{"),
        (set_in(28, "state", "kv", "head"), "state.kv.head", 28, 29),
        (drop("state", "kv", "used"), "state.kv.used", ABSENT, 29),
        (set_in(3, "state", "kv", "extra"), "state.kv.extra", 3, ABSENT),
        (set_in(0, "state", "kv", "has_shift"), "state.kv.has_shift", 0, False),
        (set_in([0, 0, -1], "state", "kv", "pmin"), "state.kv.pmin[2]", -1, 0),
        (drop("state"), "state", ABSENT, "{"),
        (set_in({}, "extra"), "extra", {}, ABSENT),
        (set_in(9, "i"), "i", 9, 8),
        (set_in(2, "op", "extra"), "op.extra", 2, ABSENT),
    ],
)
def test_an_altered_record_is_told(told, sample, alter, field, expected, got):
    alter(sample)
    code, [line, summary] = told(sample)
    assert code == 1
    assert line.startswith("altered.jsonl.gz, record 8 (decode), ")
    assert f"{field}: expected {str_of(expected)}" in line
    assert f"got {str_of(got)}" in line
    assert summary == "unified: 1 traces, 17 operations, 1 differences"


def str_of(value):
    """What a line shows of a value; a text that opens a list or an object stands for itself."""
    return value if value in ("{", "[[") else repr(value)


@pytest.mark.parametrize(
    ("alter", "field"),
    [
        (lambda first: first["res"]["kv"].update(size=33), "res.kv.size"),
        (lambda first: first["res"]["kv"].pop("total_size"), "res.kv.total_size"),
        (lambda first: first["res"]["get_padding"].update({"flash_attn=true": 32}), "res.get_padding.flash_attn=true"),
        (lambda first: first["header"].update(extra=1), "header.extra"),
        (lambda first: first.update(extra=1), "extra"),
    ],
)
def test_an_altered_header_is_told(told, sample, alter, field):
    alter(sample[0])
    code, [line, _] = told(sample)
    assert code == 1
    assert line.startswith(f"altered.jsonl.gz, header, {field}: expected ")


def leaves(value, path=()):
    """Paths of everything in a JSON value that is neither a list nor an object."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, below in items:
            yield from leaves(below, (*path, key))
    else:
        yield path, value


def other(value):
    match value:
        case bool():
            return not value
        case str():
            return format(int(value, 16) ^ 1, f"0{len(value)}x") if value.strip("0123456789abcdef") == "" else value[1:]
        case None:
            return 0.0
    return value + 1


def is_idle_step(path, record):
    """Whether a leaf is the step of a cell run of one cell, which means nothing."""
    return path[-3:-2] == ("cells",) and path[-1] == 3 and record["state"]["kv"]["cells"][path[-2]][1] == 1


@pytest.mark.parametrize("name", RICH)
def test_no_leaf_of_a_recording_passes_unread(name):
    first, *records = load(UNIFIED / f"{name}.jsonl.gz")
    driver = DRIVERS["unified"](first["header"])
    unread = []
    for i, record in enumerate(records):
        got = {"i": i, "op": record["op"], "res": driver.run(record["op"]), "state": driver.state()}
        assert list(differences(record, got)) == []
        for path, value in leaves({"res": record["res"], "state": record["state"]}):
            altered = copy.deepcopy(record)
            set_leaf(altered, path, other(value))
            if not any(differences(altered, got)) and not is_idle_step(path, record):
                unread.append((i, path))
    assert unread == []


def set_leaf(record, path, value):
    for step in path[:-1]:
        record = record[step]
    record[path[-1]] = value


def test_another_cut_of_the_same_runs_is_no_difference(told, sample):
    kv = sample[9]["state"]["kv"]
    assert kv["cells"][0] == [0, 2, 0, 1, 0, "6"]
    kv["cells"][:1] = [[0, 1, 0, 0, 0, "6"], [1, 1, 1, 0, 0, "6"]]
    assert told(sample) == (0, ["unified: 1 traces, 17 operations, 0 differences"])


def test_runs_that_overlap_are_told(told, sample):
    cells = sample[9]["state"]["kv"]["cells"]
    cells.append(cells[0])
    code, [line, _] = told(sample)
    assert code == 1
    assert "record 8 (decode), state.kv.cells: expected [[" in line


def test_the_first_twenty_differences_are_shown(told, sample):
    for record in sample[1:]:
        record["state"]["kv"].update(head=-1, used=-1)
    code, lines = told(sample)
    assert code == 1
    assert len(lines) == 21
    assert lines[-1] == "unified: 1 traces, 17 operations, 34 differences"


def test_a_recorded_abort_is_met_by_a_refusal(told, sample):
    abort = {"i": 1, "op": {"op": "seq_div", "seq": 0, "p0": -1, "p1": -1, "d": 0}, "res": {"abort": True}}
    assert told([*sample[:2], abort]) == (0, ["unified: 1 traces, 2 operations, 0 differences"])


def test_a_refusal_that_is_not_recorded_ends_the_replay(told, sample):
    sample[2]["op"] = {"op": "seq_div", "seq": 0, "p0": -1, "p1": -1, "d": 0}
    code, lines = told(sample)
    assert code == 1
    assert lines[0] == "altered.jsonl.gz, record 1 (seq_div), res.ret: expected True, got nothing"
    assert lines[-1].startswith("unified: 1 traces, 2 operations, ")


def test_an_abort_that_the_model_does_not_have_is_told(told, sample):
    sample[2] = {"i": 1, "op": sample[2]["op"], "res": {"abort": True}}
    code, lines = told(sample[:3])
    assert code == 1
    assert "altered.jsonl.gz, record 1 (seq_rm), res.abort: expected True, got nothing" in lines


def test_cells_that_the_recorder_left_out_are_no_difference(told, sample):
    sample[0]["header"]["cells_max_runs"] = 14
    for record in sample[1:]:
        if len(record["state"]["kv"]["cells"]) > 14:
            del record["state"]["kv"]["cells"]
    assert told(sample) == (0, ["unified: 1 traces, 17 operations, 0 differences"])
