"""Recordings: finding the files below the given paths, and reading one."""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.replay.driver import BadRecord, Json
from tests.replay.families import family_of

SUFFIXES = (".jsonl.gz", ".jsonl")


class RecordingError(Exception):
    """A path without recordings, or a file that is not in the format; the message names it."""


@dataclass(frozen=True)
class Recording:
    """One file.

    Attributes:
        path: where it is.
        family: unified, iswa, state, legacy or recurrent.
        header: what the cache is made of.
        first: the header record.
        records: the operations, in order.
    """

    path: Path
    family: str
    header: Json
    first: Json
    records: list[Json]


def find(paths: Iterable[Path]) -> dict[Path, bool]:
    """Recordings at or below the paths -> whether a path names them: itself, or the folder they are in.

    Raises:
        RecordingError: a path does not exist or holds no recording.
    """
    found: dict[Path, bool] = {}
    for path in paths:
        home = path.resolve()
        if not home.exists():
            raise RecordingError(f"{path}: there is no such file or folder")
        files = [home] if home.is_file() else sorted(file for file in home.rglob("*") if file.name.endswith(SUFFIXES))
        if not files:
            raise RecordingError(f"{path}: no recordings in it (files that end in {' or '.join(SUFFIXES)})")
        for file in files:
            found[file] = found.get(file, False) or home in (file, file.parent)
    return found


def read(path: Path) -> Recording:
    """Read one recording.

    Raises:
        RecordingError: the file is damaged or not in the format.
    """
    try:
        lines = list(_json_lines(path))
        first, *records = lines or [{}]
        header = _field(first, "header", 1)
        ops = {str(_field(record, "op", line).get("op")) for line, record in enumerate(records, 2)}
        _check_aborts(records)
        return Recording(path, family_of(header, ops), header, first, records)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, BadRecord) as error:
        raise RecordingError(f"{path}: {error}") from error


def _json_lines(path: Path) -> Iterator[Json]:
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise BadRecord(f"line {number} is no JSON: {error}") from error
            if not isinstance(record, dict):
                raise BadRecord(f"line {number} is no JSON object")
            yield record


def _field(record: Json, name: str, line: int) -> Json:
    value = record.get(name)
    if not isinstance(value, dict):
        raise BadRecord(f"line {line} has no object {name!r}")
    return value


def _check_aborts(records: list[Json]) -> None:
    """An abort ends the recorded process, so nothing can follow."""
    for i, record in enumerate(records[:-1]):
        if record.get("res") == {"abort": True}:
            raise BadRecord(f"records follow the abort of record {i}")
