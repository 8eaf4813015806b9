"""The replay of the older transformer cache compares every leaf of a record, and reads every form an operation has."""

import copy

import pytest

from tests.replay.compare import differences
from tests.replay.legacy import LegacyDriver, hand_made
from tests.replay.run import OWN_RECORDINGS
from tests.test_replay import leaves, load, other, set_leaf

LEGACY = OWN_RECORDINGS / "legacy"
RICH = ("inputs_01", "inputs_02", "inputs_03", "frag_defrag_01", "odd_args_02", "quirk_stale_delta", "random_14")
MOST_RECORDS = 25


def is_idle_step(path, record):
    """Whether a leaf is the step of a cell run of one cell, which means nothing."""
    return path[:2] == ("state", "cells") and path[-1] == 3 and record["state"]["cells"][path[2]][1] == 1


@pytest.mark.parametrize("name", RICH)
def test_no_leaf_of_a_recording_passes_unread(name):
    first, *records = load(LEGACY / f"{name}.jsonl.gz")
    driver = LegacyDriver(first["header"])
    got = {"header": driver.known_header(first["header"]), "res": driver.opened(), "state": driver.state()}
    unread = [("header", path) for path in unread_leaves(first, got)]
    for i, record in enumerate(records[:MOST_RECORDS]):
        got = {"i": i, "op": driver.known_args(record["op"])}
        got |= {"res": driver.run(record["op"]), "state": driver.state()}
        unread += [(i, path) for path in unread_leaves(record, got)]
    assert unread == []


def unread_leaves(record, got):
    """Paths whose altered value the comparison does not tell."""
    assert list(differences(record, got)) == []
    for path, value in leaves({name: record[name] for name in ("res", "state")}):
        altered = copy.deepcopy(record)
        set_leaf(altered, path, other(value))
        if not any(differences(altered, got)) and not is_idle_step(path, record):
            yield path


def test_the_recordings_hold_every_input():
    fields = set()
    for name in RICH:
        for record in load(LEGACY / f"{name}.jsonl.gz")[1 : MOST_RECORDS + 1]:
            for ubatch in record["res"].get("ubatches", ()):
                fields |= ubatch.keys() | ubatch.get("update", {}).keys() | ubatch.get("mask", {}).keys()
    assert fields >= {"mask", "mask_swa", "bucket", "alibi", "update", "k_shift", "ids", "moves", "n", "slot"}


def test_a_ubatch_of_equal_sequences_is_made_by_hand():
    ubatch = hand_made({"equal": True, "seqs": [[0, 2], [1]], "pos": [4, 5, 7, 8]})
    assert (ubatch.equal_seqs, ubatch.n_seqs, ubatch.n_seq_tokens) == (True, 2, 2)
    assert ubatch.runs == [(4, 2, (0, 2)), (7, 2, (1,))]
    driver = LegacyDriver({"kind": "legacy", "kv_size": 8, "n_seq_max": 3, "n_ubatch": 4})
    found = driver.run({"op": "place", "equal": True, "seqs": [[0, 2], [1]], "pos": [4, 5, 7, 8], "advance": True})
    assert found == {"found": True, "slot": [0, 4], "head": 0}
    state = driver.state()
    assert state["cells"] == [[0, 2, 4, 1, 0, "5"], [2, 2, 7, 1, 0, "2"]]
    assert (state["head"], state["used"], state["n"]) == (4, 4, 0)


def test_a_decode_can_leave_work_pending_and_fail():
    driver = LegacyDriver({"kind": "legacy", "kv_size": 8, "n_seq_max": 1, "n_ubatch": 2})
    driver.run({"op": "decode", "tokens": [[0, 2, [0]]], "masks": ""})
    driver.run({"op": "seq_add", "seq": 0, "p0": 0, "p1": -1, "shift": 1})
    decode = {"op": "decode", "tokens": [[3, 2, [0]]], "masks": "", "auto_update": False, "fail_at": 0}
    found = driver.run(decode)
    assert found["ret"] == -3
    [ubatch] = found["ubatches"]
    assert (ubatch["restored"], ubatch["slot"], "update" in ubatch) == (True, [2, 4], False)
    assert driver.state()["cells"] == [
        [0, 1, 1, 1, 1, "1"],
        [1, 1, -1, 1, 1, "0"],
        [3, 1, 4, 1, 0, "1"],
    ]
