"""Recorded K-shifts against ours: `python -m tests.rope [PATH...]`, by default those of the tests.

Prints a line a case, and ends with a non-zero code if one does not hold.
"""

import sys
from pathlib import Path

from tests.rope import compare, load

DEFAULT = Path(__file__).parents[1] / "data" / "rope.json"


def main(paths: list[Path]) -> int:
    """Compare every case of the files; return 1 if one does not hold."""
    compared = [compare(case) for path in paths for case in load(path)]
    for case in compared:
        told = f"{case.n_apart} of {case.n_bytes} bytes differ, values by {case.worst:.2g} at most"
        print(f"{'ok  ' if case.holds else 'DIFF'} {case.name} ({case.type_k}): {told}")
    wrong = sum(not case.holds for case in compared)
    print(f"{len(compared)} K-shifts, {wrong} beyond what their type promises")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main([Path(argument) for argument in sys.argv[1:]] or [DEFAULT]))
