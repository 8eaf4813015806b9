"""The command's live mode: play recorded runs of the real library and sum up, version by version.

Exit codes as without it: 0 no difference, 1 differences, 2 nothing to play or a damaged run.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.replay.compare import Difference
from tests.replay.live_play import LivePlayer
from tests.replay.live_run import LiveRun, find_runs, read_run
from tests.replay.recording import RecordingError

OWN_RUNS = Path(__file__).resolve().parents[1] / "data" / "live"
FIRST = 20
"""Differences told in full."""


@dataclass
class LiveSummary:
    """What the runs of one version came to."""

    version: str
    runs: int = 0
    calls: int = 0
    maps: int = 0
    files: int = 0
    differences: list[Difference] = field(default_factory=list)

    def add(self, run: LiveRun) -> None:
        """Play one more run."""
        player = LivePlayer(run)
        player.play()
        self.runs += 1
        self.calls += len(run.steps)
        self.maps += player.maps
        self.files += player.files
        self.differences += player.found

    def __str__(self) -> str:
        return (
            f"live {self.version}: {self.runs} runs, {self.calls} calls, {self.maps} maps compared,"
            f" {self.files} files compared, {len(self.differences)} differences"
        )


def replay_live(paths: Sequence[Path]) -> list[LiveSummary]:
    """Play every run at or below the paths, one summary a version.

    Raises:
        RecordingError: there is nothing to play, or a run is not in the format.
    """
    summaries: dict[str, LiveSummary] = {}
    for path in find_runs(paths or [OWN_RUNS]):
        run = read_run(path)
        summaries.setdefault(run.version, LiveSummary(run.version)).add(run)
    return list(summaries.values())


def main(paths: Sequence[Path]) -> int:
    """Run the live mode; return its exit code."""
    try:
        summaries = replay_live(paths)
    except RecordingError as error:
        print(error, file=sys.stderr)
        return 2
    found = [difference for summary in summaries for difference in summary.differences]
    for difference in found[:FIRST]:
        print(difference)
    for summary in summaries:
        print(summary)
    return int(bool(found))
