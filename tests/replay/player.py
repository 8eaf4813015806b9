"""Plays one recording and yields what differs, record by record."""

from collections.abc import Iterator

from kvmodel.errors import CacheAbort, KVModelError
from tests.replay.compare import HEADER, Difference, differences
from tests.replay.driver import BadRecord, Driver, Json
from tests.replay.recording import Recording, RecordingError

FAILURES = (KVModelError, ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What the model may raise where the recording goes on."""


def play(recording: Recording, driver_class: type[Driver]) -> Iterator[list[Difference]]:
    """Replay a recording; yield the differences of the header record, then of every operation.

    Where the model refuses or fails, the replay ends: the state after it is unknown. Unless an abort is recorded,
    that is a difference.

    Raises:
        RecordingError: the recording is not in the format.
    """
    try:
        driver = driver_class(recording.header)
        got = {"header": driver.known_header(recording.header), "res": driver.opened(), "state": driver.state()}
    except BadRecord as error:
        raise RecordingError(f"{recording.path}: header: {error}") from error
    except FAILURES as error:
        yield _compared(recording, HEADER, recording.first, {"header": recording.header, "res": _told(error)})
        return
    _forget_unrecorded_cells(recording.header, HEADER, recording.first, got)
    yield _compared(recording, HEADER, recording.first, got)
    for i, record in enumerate(recording.records):
        got = _replayed(recording, driver, i)
        _forget_unrecorded_cells(recording.header, i, record, got)
        yield _compared(recording, i, record, got)
        if "state" not in got:
            return


def _replayed(recording: Recording, driver: Driver, i: int) -> Json:
    """The record of operation `i` as the model gives it; without a state where it raised."""
    op = recording.records[i]["op"]
    try:
        res = driver.run(op)
        return {"i": i, "op": driver.known_args(op), "res": res, "state": driver.state()}
    except BadRecord as error:
        raise RecordingError(f"{recording.path}: record {i}: {error}") from error
    except CacheAbort:
        return {"i": i, "op": op, "res": {"abort": True}}
    except FAILURES as error:
        return {"i": i, "op": op, "res": _told(error)}


def _forget_unrecorded_cells(header: Json, i: int, record: Json, got: Json) -> None:
    """Drop cell runs that the recorder was told to leave out; the hash still covers those cells. Mutates `got`."""
    every, longest = header.get("cells_every", 1), header.get("cells_max_runs")
    mine, theirs = got.get("state"), record.get("state")
    if not isinstance(mine, dict) or not isinstance(theirs, dict):
        return
    for part, recorded in [(mine, theirs), *((part, theirs.get(name)) for name, part in mine.items())]:
        if not isinstance(part, dict) or not isinstance(recorded, dict) or "cells" not in part.keys() - recorded.keys():
            continue
        if i % every or (longest is not None and len(part["cells"]) > longest):
            del part["cells"]


def _compared(recording: Recording, i: int, record: Json, got: Json) -> list[Difference]:
    op = "header" if i == HEADER else str(record["op"].get("op"))
    name = recording.path.name
    return [Difference(name, i, op, *found) for found in differences(record, got)]


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
