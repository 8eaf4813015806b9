"""A session made by hand, and where the recorded ones lie."""

from pathlib import Path

from tests.state_files import PLAIN, TURNED, Session

LIVE = Path(__file__).parent / "data" / "live"


def hand_made() -> Session:
    return Session([5, -1], b"gemma3", [0, 7], [0.5, -1.0], [2.0], [PLAIN, TURNED])
