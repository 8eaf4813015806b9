"""Debug logs of any cache that Hypothesis can think of: printed cell by cell, read back, and damaged."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kvmodel.formats.debuglog import EMPTY, SEVERAL, UNCLEAR, DebugLog, LoggedSearch, read_log
from tests.printed_log import Printed

Cell = tuple[int, set[int]]
NONE: Cell = (-1, set())


def code(cell: Cell) -> int:
    pos, owners = cell
    return EMPTY if pos < 0 else min(owners) if len(owners) == 1 else SEVERAL


@st.composite
def caches(draw: st.DrawFn, n_seq: int = 10, highest: int = 99_999) -> Printed:
    """Runs of neighbouring cells: empty ones, or counting positions with the same owners."""
    cells: list[Cell] = []
    for _ in range(draw(st.integers(1, 8))):
        n = draw(st.integers(1, 5) | st.integers(1, 90))
        owners = draw(st.sets(st.integers(0, n_seq - 1), max_size=1) | st.sets(st.integers(0, n_seq - 1), max_size=4))
        first = draw(st.integers(0, 60) | st.integers(0, highest - 90))
        cells += [(first + i, owners) for i in range(n)] if owners else [NONE] * n
    ranges: dict[int, tuple[int, int]] = {}
    if draw(st.booleans()) and n_seq <= 10:
        ranges[draw(st.integers(0, n_seq - 1))] = (0, highest)
    return Printed(cells, draw(st.integers(0, len(cells))), draw(st.sampled_from([0, 0, 4096])), ranges)


def summary(found: Printed | LoggedSearch) -> tuple[Any, ...]:
    size = len(found.cells) if isinstance(found, Printed) else found.size
    return found.n, found.used, found.head, size, found.n_swa, dict(found.spans)


@given(printed=st.lists(caches(), min_size=1, max_size=4), level=st.integers(1, 3))
def test_a_printed_log_is_read_back_exactly(printed: list[Printed], level: int) -> None:
    log = read_log("".join(one.text(level) for one in printed))
    assert log.faults == ()
    assert [summary(search) for search in log.searches] == [summary(one) for one in printed]
    for search, one in zip(log.searches, printed, strict=True):
        assert search.has_map == (level == 3 or (level == 2 and one.n_swa > 0))
        if search.owners is not None and search.pos is not None:
            assert search.owners.tolist() == [code(cell) for cell in one.cells]
            assert search.pos.tolist() == [pos for pos, _ in one.cells]


PREFIXES = ["", "[12] ", "Nov 30 21:13:00 host x[7]: ", "0.00.123.456 D ", "\x1b[32mD\x1b[0m "]
OTHERS = ["", "srv  update_slots: all slots are idle", "slot 3 | n_past = 17", "\x1b[0m", "  ... ", "7 8"]


@given(printed=caches(), prefix=st.sampled_from(PREFIXES), others=st.lists(st.sampled_from(OTHERS), max_size=4))
def test_prefixes_and_lines_of_others_change_nothing(printed: Printed, prefix: str, others: list[str]) -> None:
    lines = [text for line in printed.text().split("\n") for text in (prefix + line, *others)]
    [search] = read_log("\r\n".join(lines)).searches
    assert search.owners is not None
    assert search.owners.tolist() == [code(cell) for cell in printed.cells]


@settings(max_examples=200)
@given(printed=caches(n_seq=64, highest=2_000_000))
def test_two_digits_and_large_positions_are_read_as_printed_or_told(printed: Printed) -> None:
    """A reading prints the same again; where it is unclear, nothing is claimed."""
    log = read_log(printed.text())
    [search] = log.searches
    if search.owners is None or search.pos is None:
        assert ["several readings" in fault.message for fault in log.faults] == [True]
        return
    assert log.faults == ()
    owners = [int(one) for one in search.owners]
    if UNCLEAR in owners:
        assert [one == EMPTY for one in owners] == [pos < 0 for pos, _ in printed.cells]
        return
    cells = [
        (int(pos), set() if one == EMPTY else {0, 1} if one == SEVERAL else {one})
        for pos, one in zip(search.pos, owners, strict=True)
    ]
    assert Printed(cells).owners() == printed.owners()
    assert Printed(cells).positions() == printed.positions()


@given(printed=st.lists(caches(n_seq=3), min_size=2, max_size=4), data=st.data())
def test_a_log_that_is_cut_off_loses_its_end_only(printed: list[Printed], data: st.DataObject) -> None:
    text = "".join(one.text() for one in printed)
    whole = read_log(text).maps
    log = read_log(text[: data.draw(st.integers(0, len(text)))])
    assert len(log.maps) <= len(whole)
    for found, expected in zip(log.maps, whole, strict=False):
        assert found.pos is not None
        assert expected.pos is not None
        assert (found.line, found.used, found.pos.tolist()) == (expected.line, expected.used, expected.pos.tolist())


def test_a_number_that_is_cut_off_is_not_read() -> None:
    text = Printed([NONE] * 87 + [(8, {0}), (9, {0}), (10, {0})]).text()
    whole, [found] = text.index("10   \n") + len("10"), read_log(text).maps
    assert read_log(text[: whole - 1]).maps == ()
    assert found.pos is not None
    assert found.pos.tolist()[-3:] == [8, 9, 10]


def assert_sound(log: DebugLog) -> None:
    """Every map agrees with its own summary, and every fault has a place and a reason."""
    for search in log.maps:
        assert search.owners is not None
        assert search.pos is not None
        filled = [i for i, pos in enumerate(search.pos.tolist()) if pos != EMPTY]
        assert (len(filled), max(filled, default=-1) + 1) == (search.used, search.n)
        assert len(search.owners) == len(search.pos) == search.size
        assert str(search)
    assert all(fault.line > 0 and fault.message for fault in log.faults)
    assert str(log)


@settings(max_examples=300)
@given(printed=st.lists(caches(n_seq=14, highest=200_000), min_size=1, max_size=3), data=st.data())
def test_any_damage_gives_faults_or_fewer_maps(printed: list[Printed], data: st.DataObject) -> None:
    text = "".join(one.text() for one in printed)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        piece = data.draw(st.text("0123456789.M *\n\r\x1b[]=-find_slot", max_size=12) | st.text(max_size=4))
        text = text[:at] + piece + text[at + data.draw(st.sampled_from([0, 1, 1, 5, 60, 400])) :]
    log = read_log(text)
    assert len(log.maps) <= len(log.searches) <= text.count("find_slot")
    assert_sound(log)


@given(
    data=st.binary(max_size=400), begin=st.sampled_from([b"", b"\xff\xfe", b"find_slot: n = 1, used", b"\xef\xbb\xbf"])
)
def test_random_bytes_are_a_log_without_searches(data: bytes, begin: bytes) -> None:
    assert_sound(read_log(begin + data))
