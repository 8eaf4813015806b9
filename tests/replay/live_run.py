"""Recorded runs of llama.cpp: settings, calls with their results, the debug log, and the files that were saved.

A run is NAME.json, NAME.log beside it, and NAME-FILE for every file that a call wrote or read.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvmodel.errors import KVModelError
from kvmodel.formats.debuglog import DebugLog, open_log
from tests.replay.driver import Json
from tests.replay.recording import RecordingError


@dataclass(frozen=True)
class Step:
    """One recorded call.

    Attributes:
        call: its name and arguments.
        result: what it gave back.
        ranges: first and last position of every sequence that has any; None before mid-2025.
        view: the cache view; None in mid-2025.
    """

    call: Json
    result: Any
    ranges: dict[int, list[int]] | None
    view: Json | None

    @property
    def name(self) -> str:
        """The call's name."""
        return str(self.call["op"])


@dataclass(frozen=True)
class LiveRun:
    """A run.

    Attributes:
        path: the JSON file.
        version: of llama-cpp-python.
        config: the settings as they were asked for.
        steps: the calls.
        log: what was printed meanwhile.
    """

    path: Path
    version: str
    config: Json
    steps: tuple[Step, ...]
    log: DebugLog

    def file(self, name: str) -> Path:
        """A file that a call names."""
        return self.path.with_name(f"{self.path.stem}-{name}")


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """The runs at or below the paths; a JSON file that is something else counts only if it is named itself.

    Raises:
        RecordingError: a path does not exist or holds no run.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise RecordingError(f"{path}: there is no such file or folder")
        files = [path] if path.is_file() else [file for file in sorted(path.rglob("*.json")) if _is_run(file)]
        if not files:
            raise RecordingError(f"{path}: no recorded runs in it (NAME.json with NAME.log)")
        found |= dict.fromkeys(file.resolve() for file in files)
    return list(found)


def _is_run(path: Path) -> bool:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return path.with_suffix(".log").exists()
    return isinstance(document, dict) and "steps" in document


def read_run(path: Path) -> LiveRun:
    """Read a run without its saved files.

    Raises:
        RecordingError: it is damaged, not in the format, or has no log.
    """
    try:
        document = json.loads(path.read_bytes())
        steps = tuple(_steps(document["steps"]))
        log = open_log(path.with_suffix(".log"))
        return LiveRun(path, str(document["llama_cpp_python"]), dict(document["config"]), steps, log)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, KVModelError) as error:
        raise RecordingError(f"{path}: {type(error).__name__}: {error}") from error


def _steps(recorded: list[Json]) -> Iterator[Step]:
    for step in recorded:
        ranges = step.get("ranges")
        told = None if ranges is None else {int(seq): list(span) for seq, span in ranges.items()}
        yield Step({"op": step["op"]["op"], **step["op"]}, step.get("result"), told, step.get("view"))
