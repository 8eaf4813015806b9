"""Reports for the tests: their sections and their form."""

from typing import Any

SMALL: dict[str, Any] = {"title": "t", "cache": {"kv_size": 32, "n_seq_max": 2}}


def section(report: str, heading: str) -> str:
    """What stands under one heading, up to the next."""
    return report.split(f"\n## {heading}\n\n")[1].split("\n\n## ", maxsplit=1)[0]
