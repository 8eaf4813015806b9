"""Start-up logs that were cut, mixed up or altered anywhere: read and told about, or refused with one clear message."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.errors import KVModelError
from kvmodel.formats.memlog import Reconciliation, reconcile
from kvmodel.models import find
from tests.sources import ROOT

DATA = ROOT / "tests/data"
PATHS = sorted([*(DATA / "live").glob("**/*.log"), *(DATA / "startup").glob("*.log")])
SPEAKS = re.compile(r"llama_|llm_|print_info|create_memory|load_tensors")
MOST_LINES = 120
NUMBER = re.compile(r"\d+")
NUMBERS = st.sampled_from(["0", "1", "7", "32", "4294967295", "9" * 10, "9" * 30, "-1", "0.5", "", "x", "[1, 2]"])


def lines_of(path) -> list[str]:
    """The lines of a log's start, without those of the search for cells."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if SPEAKS.search(line)]
    return [line for line in lines if "tokenizer" not in line and "find_slot" not in line][-MOST_LINES:]


LOGS = {f"{path.parent.name}/{path.stem}": lines_of(path) for path in PATHS}


@st.composite
def altered(draw) -> str:
    """A log's lines with some of them dropped, doubled, moved, cut short or with other numbers in them."""
    lines = list(draw(st.sampled_from(list(LOGS.values()))))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(lines) - 1)) if lines else 0
        match draw(st.sampled_from(["drop", "double", "move", "cut", "number", "many"])) if lines else "end":
            case "drop":
                del lines[at : at + draw(st.integers(1, 8))]
            case "double":
                lines[at:at] = lines[at : at + draw(st.integers(1, 8))]
            case "move":
                lines.insert(draw(st.integers(0, len(lines) - 1)), lines.pop(at))
            case "cut":
                lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
            case "number":
                lines[at] = with_number(lines[at], draw(st.integers(0, 9)), draw(NUMBERS))
            case "many":
                lines[at] = NUMBER.sub(draw(NUMBERS), lines[at])
    return "\n".join(lines)


def with_number(line: str, which: int, value: str) -> str:
    """A line with another value in the place of one of its numbers."""
    found = list(NUMBER.finditer(line))
    if not found:
        return line + value
    at = found[which % len(found)]
    return line[: at.start()] + value + line[at.end() :]


def looked_at(text: str, *args) -> tuple[Reconciliation, ...]:
    """What becomes of a log; anything but the project's own errors is let through and fails the test."""
    try:
        return reconcile(text, *args)
    except KVModelError:
        return ()


@given(altered())
def test_an_altered_log_is_told_about_or_refused(text):
    for found in looked_at(text):
        assert found.checks
        assert all(check.told and check.agrees in {True, False} for check in found.checks)
        assert all(check.computed is not None for check in found.checks if check.agrees)
        assert all(len(words) < 1000 for words in found.missing)


@given(
    altered(), st.sampled_from(["Gemma 3 12B", "Mamba 130M", "Jamba v0.1", "DeepSeek-V3", "Falcon-H1 0.5B", "LLaMA 7B"])
)
def test_an_altered_log_beside_a_named_model(text, name):
    assert all(check.told for found in looked_at(text, find(name)) for check in found.checks)


@given(st.lists(st.sampled_from(list(LOGS)), min_size=2, max_size=4))
def test_logs_in_a_row_are_contexts_of_their_own(names):
    found = reconcile("\n".join("\n".join(LOGS[name]) for name in names))
    parts = [reconcile("\n".join(LOGS[name])) for name in names]
    assert [check.told for each in found for check in each.checks] == [
        check.told for part in parts for each in part for check in each.checks
    ]


@pytest.mark.parametrize("name", LOGS)
def test_the_logs_that_are_altered_are_read_in_full(name):
    assert all(check.computed for found in reconcile("\n".join(LOGS[name])) for check in found.checks)
