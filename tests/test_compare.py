"""Two plays of one scenario side by side: where the generations part, and that equal plays show no difference."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from kvmodel.compare import Comparison, compare, difference
from kvmodel.errors import ParamError
from kvmodel.figures.tables import comparison_table
from kvmodel.library import load
from kvmodel.player import play
from kvmodel.scenario import Scenario
from tests.random_scenarios import any_scenario, scenarios

Json = dict[str, Any]


def scenario(ops: list[Json], context: Json | None = None, **cache: Any) -> Scenario:
    settings = {"kv_size": 32, "n_seq_max": 4} | cache
    return Scenario.model_validate({"title": "t", "cache": settings, "context": context or {}, "ops": ops})


def decode(n: int, seq: int = 0, **more: Any) -> Json:
    run = {"n": n, "seq": [seq]} | ({"pos": more.pop("pos")} if "pos" in more else {})
    return {"op": "decode", "tokens": [run], **more}


def generations(ops: list[Json], **context: Any) -> Comparison:
    """The operations on the unified cache and on the older one."""
    unified = scenario(ops, context)
    return compare(play(unified), play(unified.on("legacy")))


@given(any_scenario)
def test_a_play_does_not_differ_from_itself(drawn: Scenario) -> None:
    found = compare(play(drawn), play(drawn))
    assert found.first is None
    assert not found.differs.any()
    assert (found.cells.sum(), found.shifts.sum(), found.results.sum()) == (0, 0, 0)
    assert [found.told(step) for step in range(found.n_steps)] == [[]] * found.n_steps
    assert found.labels == ("the first", "the second")


@given(scenarios())
def test_counts_are_those_of_the_snapshots(drawn: Scenario) -> None:
    a, b = play(drawn), play(drawn.model_copy(update={"context": drawn.context.model_copy(update={"n_ubatch": 3})}))
    older = play(drawn.on("legacy"))
    for other in (b, older):
        found = compare(a, other)
        assert found.n_steps == min(a.n_steps, other.n_steps)
        for step in range(found.n_steps):
            one, two = (side.cursor().seek(side.frame_of(step)).first for side in (a, other))
            cells = np.flatnonzero((one.pos != two.pos) | (one.seqs != two.seqs)).tolist()
            shifts = np.flatnonzero(one.shift != two.shift).tolist()
            there = found.at(step)["kv", "kv"]
            assert (there.cells.tolist(), there.shifts.tolist()) == (cells, shifts)
            assert (found.cells[0, step], found.shifts[0, step]) == (len(cells), len(shifts))
            figures = {name: (part.head, part.used, part.n_kv) for name, part in (("one", one), ("two", two))}
            told = tuple(found.counters[counter][0, :, step].tolist() for counter in ("head", "used", "n_kv"))
            assert told == tuple([x, y] for x, y in zip(figures["one"], figures["two"], strict=True))
            assert found.differs[step] == (there.any or found.results[step]) == bool(found.told(step))


def test_a_batch_that_only_one_generation_checks() -> None:
    found = generations([decode(4), decode(2, pos=9), decode(2, pos=1)])
    assert (found.first, found.results.tolist()) == (2, [False, False, True, True])
    assert found.cells.tolist() == [[0, 0, 2, 4]]
    assert found.told(2)[:2] == [
        (
            "Unified returned -1 (sequence 0 starts at position Y = 9 in the batch, but the last position in the cache"
            " is X = 3; needed: Y = X + 1), legacy returned 0."
        ),
        "2 cells (4-5): another position or other owners.",
    ]
    assert found.told(2)[2] == "Used 4, head 4 in unified; used 6, head 6 in legacy."


def test_a_decode_without_a_slot_is_stored_in_part_by_the_older_one() -> None:
    found = generations([decode(20), decode(20, 1, pos=0)], n_ubatch=8)
    assert (found.first, found.results.tolist()) == (2, [False, False, False])
    assert found.at(2)["kv", "kv"].cells.tolist() == [*range(20, 28)]
    assert found.at(2)["kv", "kv"].counters == {"head": (20, 1), "used": (20, 28)}


def test_a_copy_sends_head_back_in_the_older_one() -> None:
    found = generations([decode(4), {"op": "seq_cp", "src": 0, "dst": 1}, decode(3, 2, pos=0)])
    assert [found.cells.tolist(), found.results.any()] == [[[0, 0, 0, 0]], False]
    assert found.counters["head"].tolist() == [[[0, 4, 4, 7], [0, 4, 0, 7]]]
    assert (found.first, found.told(2)) == (2, ["Head 4 in unified; head 0 in legacy."])
    assert found.told(3) == []


def test_a_division_is_recorded_with_another_sign() -> None:
    found = generations([decode(4), {"op": "seq_div", "seq": 0, "d": 2}])
    part = found.at(2)["kv", "kv"]
    assert (part.cells.tolist(), part.shifts.tolist()) == ([], [1, 2, 3])
    assert found.shifts.tolist() == [[0, 0, 3]]
    assert "3 cells (1-3): another pending shift." in found.told(2)


def test_positions_left_out_continue_elsewhere_in_the_older_one() -> None:
    found = generations([decode(4), decode(2, 1)])
    assert found.at(2)["kv", "kv"].cells.tolist() == [4, 5]
    assert [side.cursor().seek(2).first.pos[4] for side in (found.a, found.b)] == [0, 4]


def test_the_full_half_of_a_pair_stands_against_a_single_cache() -> None:
    ops = [decode(12)]
    pair = scenario(ops, kind="iswa", n_swa=4, n_layer=2)
    found = compare(play(scenario(ops)), play(pair))
    assert (found.parts, found.labels, found.first) == ((("kv", "base"),), ("unified", "iswa"), None)


def test_halves_of_two_pairs_stand_against_each_other() -> None:
    pair = {"kind": "iswa", "n_swa": 4, "n_layer": 2, "n_pad": 8, "n_seq_max": 1}
    ops = [decode(12), decode(8)]
    small, full = (play(scenario(ops, {"n_ubatch": 4}, **pair, swa_full=swa_full)) for swa_full in (False, True))
    found = compare(small, full, labels=("small windows", "swa_full"))
    assert found.parts == (("base", "base"), ("swa", "swa"))
    assert found.cells.tolist() == [[0, 0, 0], [0, 8, 20]]
    assert found.told(1) == [
        "8 cells (0-3, 8-11) in swa: another position or other owners.",
        "Used 8, head 4, n_kv 8 in small windows; used 12, head 12, n_kv 16 in swa_full in swa.",
    ]


def test_caches_of_different_size_differ_where_one_goes_on() -> None:
    small, large = (play(scenario([decode(40)], kv_size=size)) for size in (32, 64))
    found = compare(small, large)
    assert found.results.tolist() == [False, True]
    assert found.at(1)["kv", "kv"].cells.tolist() == [*range(40)]
    assert found.cells.tolist() == [[0, 40]]


def test_a_play_that_ends_is_compared_to_its_end() -> None:
    ops = [decode(4), decode(20), decode(1)]
    short, long = (play(scenario(ops, {"n_batch": n_batch})) for n_batch in (8, 64))
    found = compare(short, long, labels=("8", "64"))
    assert (found.n_steps, found.first) == (3, 2)
    assert found.told(2)[0] == ("8 ended (the batch has 20 tokens; allowed: n_batch = 8 at most), 64 returned 0.")


def test_other_operations_cannot_be_compared() -> None:
    with pytest.raises(ParamError, match="b is 't'; allowed: a timeline of the operations of a"):
        compare(play(scenario([decode(1)])), play(scenario([decode(2)])))


def test_the_same_cells_do_not_differ() -> None:
    part = play(load("parallel-prefix")).cursor().seek(9).first
    assert not difference(part, part).any
    pos = part.pos.copy()
    pos[3] = 99
    found = difference(part, replace(part, arrays={**part.arrays, "pos": pos}))
    assert (found.cells.tolist(), found.shifts.tolist(), found.counters) == ([3], [], {})


def test_the_table_says_the_same() -> None:
    ops = [decode(4), decode(2, pos=9), {"op": "seq_div", "seq": 0, "d": 2}]
    table = comparison_table(generations(ops))
    assert table["operation"].tolist() == ["start", "decode", "decode", "seq_div"]
    assert table["returned (unified)"].tolist() == ["", "0", "-1", ""]
    assert table["returned (legacy)"].tolist() == ["", "0", "0", ""]
    assert table["cells"].tolist() == [0, 0, 2, 2]
    assert table["shifts"].tolist() == [0, 0, 0, 5]
    assert table["used (unified)"].tolist() == [0, 4, 4, 4]
    assert table["used (legacy)"].tolist() == [0, 4, 6, 6]
    assert table["differs"].tolist() == [False, False, True, True]


def test_the_table_of_a_pair_names_its_halves() -> None:
    pair = {"kind": "iswa", "n_swa": 4, "n_layer": 2, "n_pad": 8}
    small, full = (play(scenario([decode(12)], {"n_ubatch": 4}, **pair, swa_full=full)) for full in (False, True))
    table = comparison_table(compare(small, full, labels=("small", "full")))
    assert table["base cells"].tolist() == [0, 0]
    assert {"swa cells", "swa shifts", "swa head (small)", "swa n_kv (full)", "base used (full)"} <= {*table.columns}
