"""A debug log written by hand, and what a search of it says."""

from pathlib import Path

from kvmodel.formats.debuglog import EMPTY, SEVERAL, DebugLog, LoggedSearch

LIVE = Path(__file__).parent / "data" / "live"

PAD = " " * 4

HAND = f"""\
load: something before
find_slot: n =     7, used =     5, head =     3, size =     8, n_swa =     0

01.1M.0.

0    0    .    7    12   .    1    .{PAD}
find_slot: min[0] =     0, max[0] =    12
find_slot: min[1] =     0, max[1] =    12
decode: something after
"""


def codes(search: LoggedSearch) -> list[int]:
    assert search.owners is not None
    return [int(code) for code in search.owners]


def positions(search: LoggedSearch) -> list[int]:
    assert search.pos is not None
    return [int(pos) for pos in search.pos]


def assert_hand(log: DebugLog) -> None:
    [search] = log.searches
    assert (search.n, search.used, search.head, search.size, search.n_swa) == (7, 5, 3, 8, 0)
    assert codes(search) == [0, 1, EMPTY, 1, SEVERAL, EMPTY, 0, EMPTY]
    assert positions(search) == [0, 0, -1, 7, 12, -1, 1, -1]
    assert search.spans == {0: (0, 12), 1: (0, 12)}
    assert log.faults == ()
