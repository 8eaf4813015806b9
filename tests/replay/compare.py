"""A recorded record against a replayed one: every field of either, and what differs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from tests.replay.codec import SPELL

HEADER = -1
"""Index of the header record, whose operations count from 0."""

SHOWN = 100


class Absent:
    """Stands for a field that one side does not have."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = Absent()


@dataclass(frozen=True)
class Difference:
    """One field in which a replay and its recording differ.

    Attributes:
        file: name of the recording.
        record: index of the operation, HEADER for the header record.
        op: name of the operation, `header` for the header record.
        field: path of the field inside the record.
        expected: what was recorded, ABSENT if the recording has no such field.
        got: what the model gives, ABSENT if it gives none.
    """

    file: str
    record: int
    op: str
    field: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        where = self.op if self.record == HEADER else f"record {self.record} ({self.op})"
        return f"{self.file}, {where}, {self.field}: expected {_short(self.expected)}, got {_short(self.got)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


Found = Iterator[tuple[str, Any, Any]]


def differences(expected: Any, got: Any, path: str = "") -> Found:
    """Walk two JSON values; yield (path, expected, got) for every field in which they differ."""
    if _same(expected, got):
        return
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in [*expected, *(key for key in got if key not in expected)]:
            below = f"{path}.{key}" if path else str(key)
            yield from differences(expected.get(key, ABSENT), got.get(key, ABSENT), below)
    elif isinstance(expected, list) and isinstance(got, list):
        spell = SPELL.get(path.rpartition(".")[2])
        if spell is not None:
            yield from _run_differences(spell, expected, got, path)
            return
        for i, (left, right) in enumerate(zip_longest(expected, got, fillvalue=ABSENT)):
            yield from differences(left, right, f"{path}[{i}]")
    else:
        yield path, expected, got


def _same(expected: Any, got: Any) -> bool:
    """Equality in which true is not 1."""
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and expected.keys() == got.keys()
            and all(_same(value, got[key]) for key, value in expected.items())
        )
    if isinstance(expected, list) and expected and isinstance(expected[0], bool | dict):
        return isinstance(got, list) and len(expected) == len(got) and all(map(_same, expected, got))
    return bool(expected == got) and isinstance(expected, bool) == isinstance(got, bool)


def _run_differences(spell: Any, expected: list[Any], got: list[Any], path: str) -> Found:
    """Compare what runs stand for, not how they were cut."""
    try:
        left, right = spell(expected), spell(got)
    except (TypeError, ValueError):
        yield path, expected, got
        return
    if isinstance(left, list):
        left, right = dict(enumerate(left)), dict(enumerate(right))
    for key in sorted(left.keys() | right.keys()):
        if left.get(key, ABSENT) != right.get(key, ABSENT):
            yield f"{path}[{key}]", left.get(key, ABSENT), right.get(key, ABSENT)
