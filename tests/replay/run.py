"""The command: find recordings, replay them family by family, sum up.

Exit codes: 0 no difference, 1 differences or a family that was asked for and is not built, 2 nothing to replay or a
damaged recording.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.replay import live
from tests.replay.compare import Difference
from tests.replay.families import DRIVERS, FAMILIES
from tests.replay.player import play
from tests.replay.recording import Recording, RecordingError, find, read

OWN_RECORDINGS = Path(__file__).resolve().parents[1] / "data" / "traces"
FIRST = 20
"""Differences told in full."""


@dataclass
class Summary:
    """What the replay of one family came to.

    Attributes:
        family: its name.
        asked: whether it was asked for by name.
        traces, operations, differences: how many of each.
        first: the first differences.
    """

    family: str
    asked: bool = False
    traces: int = 0
    operations: int = 0
    differences: int = 0
    first: list[Difference] = field(default_factory=list)

    @property
    def built(self) -> bool:
        """Whether there is something to replay the family with."""
        return self.family in DRIVERS

    @property
    def failed(self) -> bool:
        """Whether the command has to fail for it."""
        return self.differences > 0 or (self.asked and not self.built)

    def add(self, recording: Recording) -> None:
        """Replay one more recording of the family, if it is built."""
        self.traces += 1
        if not self.built:
            return
        for record, found in enumerate(play(recording, DRIVERS[self.family])):
            self.operations += record > 0
            self.differences += len(found)
            self.first += found[: FIRST - len(self.first)]

    def __str__(self) -> str:
        if not self.built:
            return f"{self.family}: {self.traces} traces, not built yet"
        return f"{self.family}: {self.traces} traces, {self.operations} operations, {self.differences} differences"


def replay(paths: Sequence[Path], families: Sequence[str] = ()) -> list[Summary]:
    """Replay everything at or below the paths, one summary a family in a fixed order.

    Args:
        paths: recordings, folders of recordings, or folders of such folders.
        families: replay only these; none stands for all.

    Raises:
        RecordingError: there is nothing to replay, or a file is not in the format.
    """
    summaries = {name: Summary(name, asked=name in families) for name in FAMILIES}
    for path, named in find(paths).items():
        recording = read(path)
        if families and recording.family not in families:
            continue
        summary = summaries[recording.family]
        summary.asked |= named
        summary.add(recording)
    missing = [name for name in families if not summaries[name].traces]
    if missing:
        raise RecordingError(f"no recordings of the family {', '.join(missing)} in {', '.join(map(str, paths))}")
    return [summary for summary in summaries.values() if summary.traces]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(argv)
    if options.live:
        return live.main(options.paths)
    try:
        summaries = replay(options.paths or [OWN_RECORDINGS], options.family)
    except RecordingError as error:
        print(error, file=sys.stderr)
        return 2
    for difference in [difference for summary in summaries for difference in summary.first][:FIRST]:
        print(difference)
    for summary in summaries:
        print(summary)
    return int(any(summary.failed for summary in summaries))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.replay", description="Replay recorded caches and compare every field of every record."
    )
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        type=Path,
        help="recording (.jsonl.gz), folder of recordings, or folder of families; default: tests/data/traces;"
        " with --live recorded runs (NAME.json) or folders of them; default: tests/data/live",
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="play recorded runs of the real library instead: calls, debug logs and saved files",
    )
    parser.add_argument(
        "--family",
        action="append",
        default=[],
        choices=FAMILIES,
        help="replay only this family, and fail if it is not built; may be repeated",
    )
    return parser
