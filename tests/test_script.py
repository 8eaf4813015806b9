"""Scripts made of scenarios: they run by themselves, end where the timeline ends, and hold no stranger's code."""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib.abc import InspectLoader
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.cellruns import cell_lines
from kvmodel.library import IDS, load
from kvmodel.ops import Decode, Defrag, SeqRm, TokenRun
from kvmodel.player import play
from kvmodel.scenario import Scenario
from kvmodel.script import to_script
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline
from tests.random_scenarios import any_scenario, scenarios
from tests.sources import ROOT

SMALL: dict[str, Any] = {"title": "t", "cache": {"kv_size": 32, "n_seq_max": 2}}


def last_parts(timeline: Timeline) -> Mapping[str, PartSnapshot]:
    return timeline.cursor().seek(len(timeline.frames)).parts


def told(timeline: Timeline) -> str:
    """What a script has to print: the error that ended the timeline, if any, and every set of cells."""
    error = timeline.results[-1].error if timeline.results else ""
    lines = [line for part in last_parts(timeline).values() for line in (str(part), *cell_lines(part))]
    return "\n".join([*filter(None, [error]), *lines]) + "\n"


class Source(InspectLoader):
    """Loads a module from its text."""

    def __init__(self, source: str) -> None:
        self.source = source

    def get_source(self, fullname: str) -> str:
        _ = fullname
        return self.source


def run(source: str) -> tuple[str, dict[str, Any]]:
    """What a script prints, and its names afterwards."""
    module = ModuleType("script")
    with redirect_stdout(StringIO()) as printed:
        Source(source).exec_module(module)
    return printed.getvalue(), vars(module)


def check(scenario: Scenario) -> None:
    timeline = play(scenario)
    printed, names = run(to_script(scenario))
    assert printed == told(timeline)
    for part in names["cache"].parts:
        shown = last_parts(timeline)[part.name]
        assert dict(part.counters) == dict(shown.counters)
        for name in shown.arrays.keys() - {"token"}:
            np.testing.assert_array_equal(part.arrays[name], shown.arrays[name])


@pytest.mark.parametrize("scenario_id", IDS)
def test_a_shipped_scenario_runs_by_itself(scenario_id: str, tmp_path: Path) -> None:
    script = tmp_path / "scenario.py"
    script.write_text(to_script(load(scenario_id)), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", check=True
    )
    assert (done.stdout, done.stderr) == (told(play(load(scenario_id))), "")


@given(any_scenario)
def test_a_script_ends_in_the_state_of_its_timeline(scenario: Scenario) -> None:
    check(scenario)


@given(scenarios(kind="recurrent"))
def test_the_newer_recurrent_cache_too(scenario: Scenario) -> None:
    check(scenario.on("memory_recurrent"))


def test_a_small_script_to_read() -> None:
    scenario = Scenario.model_validate(
        SMALL
        | {
            "description": "Watch the hole.",
            "context": {"n_ubatch": 8},
            "ops": [
                {
                    "op": "decode",
                    "tokens": [{"text": ["a", " b", " c"]}, {"n": 2, "seq": [1, 0]}],
                    "note": "Five tokens.",
                },
                {"op": "decode", "tokens": [{"n": 2, "pos": 5}], "n_ubatch": 1, "fail_at": 1, "embd": True},
                {"op": "seq_cp", "src": 0, "dst": 1},
                {"op": "seq_rm", "seq": 0, "p0": 1, "p1": 2},
                {"op": "seq_add", "seq": 1, "p0": 2, "shift": -1},
                {"op": "seq_div", "seq": 1, "d": 2},
                {"op": "update", "optimize": True, "thold": 0.5, "n_max_nodes": 0},
                {"op": "update"},
                {"op": "defrag"},
                {"op": "seq_keep", "seq": 1},
                {"op": "clear", "data": False},
            ],
        }
    )
    assert (
        to_script(scenario)
        == r'''"""A scenario of kvmodel, call by call.

Run it where kvmodel is installed: it prints the cells after the last call.
"""

# t
# Watch the hole.

from kvmodel import Batch, CacheParams, Context, ContextParams, KVModelError, UnifiedCache
from kvmodel.cellruns import cell_lines
from kvmodel.snapshot import snapshot

cache = UnifiedCache(CacheParams(kv_size=32, n_seq_max=2, n_embd_head_k=64, n_embd_head_v=64))
context = Context(cache, ContextParams(n_ubatch=8))

try:
    # Step 1: Five tokens.
    # Words: a b c
    context.decode(Batch.from_runs([(0, 3, [0]), (0, 2, [1, 0])], auto_pos=True))
    context.decode(Batch.from_runs([(5, 2, [0])], embd=True), n_ubatch=1, fail_at=1)
    context.seq_cp(0, 1, -1, -1)
    cache.seq_rm(0, 1, 2)
    context.seq_add(1, 2, -1, -1)
    context.seq_div(1, -1, -1, 2)
    context.update(optimize=True, thold=0.5, n_max_nodes=0)
    context.update()
    context.defrag()
    cache.seq_keep(1)
    cache.clear(data=False)
except KVModelError as problem:
    print(problem)

for part in cache.parts:
    shown = snapshot(part)
    print(shown)
    print(*cell_lines(shown), sep="\n")
'''
    )


def test_what_a_script_prints() -> None:
    ops = [
        {"op": "decode", "tokens": [{"n": 6}]},
        {"op": "seq_cp", "src": 0, "dst": 1, "p1": 2},
        {"op": "seq_rm", "seq": 0, "p0": 2, "p1": 4},
        {"op": "seq_add", "seq": 0, "p0": 4, "shift": -2},
    ]
    printed, _ = run(to_script(Scenario.model_validate(SMALL | {"ops": ops})))
    assert printed.splitlines()[-5:] == [
        "       1  0-1            2",
        "cells 0-1: sequences 0 and 1, positions 0 to 1",
        "cells 2-3: empty",
        "cells 4-5: sequence 0, positions 2 to 3, shift -2",
        "cells 6-31: empty",
    ]
    assert "32 cells, 4 used, head 0, n_kv 32, a shift is pending" in printed


def test_a_call_that_ends_the_timeline_ends_the_script() -> None:
    ops = [
        {"op": "decode", "tokens": [{"n": 2}]},
        {"op": "decode", "tokens": [{"n": 9}]},
        {"op": "clear"},
    ]
    scenario = Scenario.model_validate(SMALL | {"context": {"n_batch": 8}, "ops": ops})
    printed, _ = run(to_script(scenario))
    assert printed.startswith("the batch has 9 tokens; allowed: n_batch = 8 at most\nCells of kv\n32 cells, 2 used")


def test_no_operation_is_no_trouble() -> None:
    printed, _ = run(to_script(Scenario.model_validate(SMALL)))
    assert printed.endswith("cells 0-31: empty\n")


def with_texts(title: str, words: str, note: str) -> Scenario:
    ops = (Decode(tokens=(TokenRun(n=1, text=(words[:64],)),), note=note), SeqRm(seq=0, note=words))
    return Scenario.model_validate(SMALL | {"title": title, "description": note, "source": words}).model_copy(
        update={"ops": ops}
    )


PLAIN = ast.dump(ast.parse(to_script(with_texts("t", "w", "n"))))


@pytest.mark.parametrize(
    "text",
    [
        '"""',
        "'\nraise SystemExit(3)",
        "\rraise SystemExit(3)",
        "\r\n\traise SystemExit(3)\n#",
        "\u2028raise SystemExit(3)\u2029\u0085\x1c\x0b\x0c",
        "end \\",
        "\x00",
        "coding: utf-7\n-*- coding: rot13 -*-",
        "# x\n'''\n{__import__('os').abort()}",
        "\u202eright to left",
        "x" * 400,
        " " * 300 + "\n",
    ],
)
def test_no_text_becomes_code(text: str) -> None:
    source = to_script(with_texts(text[:120], text, text))
    assert ast.dump(ast.parse(source.encode())) == PLAIN
    assert all(character.isprintable() or character == "\n" for character in source)


@given(st.text(min_size=1, max_size=120), st.text(max_size=60), st.text(max_size=300))
def test_no_text_at_all_becomes_code(title: str, words: str, note: str) -> None:
    source = to_script(with_texts(title, words, note))
    assert ast.dump(ast.parse(source.encode())) == PLAIN


@pytest.mark.parametrize("arch", ["'+__import__('os').name+'", '"\n)', "é\u2028\\", "\x00"])
def test_a_name_stays_a_string(arch: str) -> None:
    scenario = Scenario.model_validate(SMALL | {"cache": {"kv_size": 32, "arch": arch}})
    source = to_script(scenario)
    assert source.isascii()
    _, names = run(source)
    assert names["cache"].params.arch == arch


def test_ten_thousand_operations_make_a_script() -> None:
    ops = (Decode(tokens=(TokenRun(n=1),)), Defrag()) * 5_000
    source = to_script(Scenario.model_validate(SMALL).model_copy(update={"ops": ops}))
    attempt = next(node for node in ast.parse(source).body if isinstance(node, ast.Try))
    assert len(attempt.body) == 10_000
    assert len(source) < 2 << 20


def test_a_batch_of_many_runs_takes_a_line_for_each() -> None:
    runs = tuple(TokenRun(n=1, pos=i, seq=(i % 2,)) for i in range(20))
    scenario = Scenario.model_validate(SMALL).with_op(Decode(tokens=runs))
    lines = to_script(scenario).splitlines()
    at = lines.index("    context.decode(Batch.from_runs([")
    assert lines[at + 1] == "        (0, 1, [0]),"
    assert lines[at + 20 : at + 22] == ["        (19, 1, [1]),", "    ]))"]
    check(scenario)
