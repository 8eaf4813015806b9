"""The pair of caches on small cases worked by hand: sizes, the two splits, who answers, what each half does alone."""

from collections.abc import Iterable
from typing import Any

import pytest

from kvmodel.batch import Batch
from kvmodel.caches.base import MemoryStatus, Placed
from kvmodel.caches.iswa import IswaCache, IswaParams
from kvmodel.context import Context, ContextParams
from kvmodel.errors import ParamError
from kvmodel.events import BatchSplit, Event, PrepareFailed, QuirkSeen, SlotSearched, UBatchStored
from kvmodel.types import CacheParams, SWAType

Run = tuple[int, int, tuple[int, ...]]


class Bench:
    """A pair, what it tells, and the rows of its halves: `a` for sequence 0, `M` for several, `.` for empty."""

    def __init__(self, kv_size: int, *, n_ubatch: int = 4, swa_full: bool = False, **model: Any) -> None:
        self.events: list[Event] = []
        layers = {"n_layer": 2, "swa_layers": (True, False)}
        window = {"swa_type": "standard", "n_swa": 4, "n_seq_max": 1, "n_pad": 1}
        params = CacheParams(kv_size, **layers | window | model)
        self.cache = IswaCache(IswaParams(params, n_ubatch, swa_full), self.events.append)
        self.n_ubatch = n_ubatch

    def decode(self, *runs: Run) -> list[dict[str, Placed]] | None:
        """Where both halves put each ubatch; None if there are no slots."""
        self.events.clear()
        prepared = self.cache.init_batch(Batch.from_runs(runs), self.n_ubatch)
        if prepared.status is MemoryStatus.FAILED_PREPARE:
            return None
        return [self.cache.apply(prepared, i) for i in range(len(prepared.ubatches))]

    def rows(self) -> tuple[str, ...]:
        return tuple("".join(map(symbol, part.arrays["seqs"].tolist())) for part in self.cache.parts)

    def said(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def edit(self, calls: Iterable[tuple[str, tuple[int, ...]]]) -> None:
        for name, args in calls:
            getattr(self.cache, name)(*args)


def symbol(bits: int) -> str:
    if not bits:
        return "."
    return "M" if bits & (bits - 1) else "abcdefgh"[bits.bit_length() - 1]


@pytest.mark.parametrize(
    ("kv_size", "n_swa", "n_seq_max", "n_ubatch", "n_pad", "swa_full", "cells"),
    [
        (4096, 1024, 1, 512, 32, False, 1536),
        (4096, 1000, 1, 512, 32, False, 1536),
        (4096, 1000, 1, 512, 256, False, 1536),
        (8192, 1024, 4, 512, 256, False, 4608),
        (4096, 1024, 4, 512, 256, False, 4096),
        (512, 1024, 1, 512, 256, False, 512),
        (8192, 1024, 1, 512, 256, True, 8192),
    ],
)
def test_the_window_half_holds_every_window_and_one_ubatch(
    kv_size: int, n_swa: int, n_seq_max: int, n_ubatch: int, n_pad: int, swa_full: bool, cells: int
) -> None:
    bench = Bench(kv_size, n_swa=n_swa, n_seq_max=n_seq_max, n_ubatch=n_ubatch, n_pad=n_pad, swa_full=swa_full)
    base, swa = bench.cache.parts
    assert (base.size, swa.size) == (kv_size, cells)
    assert bench.cache.can_shift == (cells == kv_size)
    assert bench.cache.init_full() == {"base": Placed(0, kv_size), "swa": Placed(0, cells)}


def test_each_half_has_its_layers_and_only_one_a_window() -> None:
    base, swa = Bench(8, n_layer=5, swa_layers=(True, False, True, True, False)).cache.parts
    assert (base.name, base.params.layers, base.params.swa_type) == ("base", (1, 4), SWAType.NONE)
    assert (swa.name, swa.params.layers, swa.params.swa_type) == ("swa", (0, 2, 3), SWAType.STANDARD)
    assert (base.params.n_swa, swa.params.n_swa) == (0, 4)


@pytest.mark.parametrize(
    ("params", "more", "message"),
    [
        ({"n_layer": 1, "swa_layers": (True,)}, {}, "swa_type is 'none'; allowed: standard or chunked"),
        ({"swa_type": "standard", "n_swa": 4, "n_layer": 3}, {}, "one bool for each of the 3 layers"),
        (
            {"swa_type": "standard", "n_swa": 4, "swa_layers": (True,)},
            {"n_ubatch": 0},
            "n_ubatch is 0; allowed: a whole number from 1 to 65536",
        ),
    ],
)
def test_a_pair_needs_a_window_and_its_layers(params: dict[str, Any], more: dict[str, int], message: str) -> None:
    with pytest.raises(ParamError, match=message):
        IswaParams(CacheParams(32, **params), **more)


def test_both_halves_store_every_ubatch_the_full_one_first() -> None:
    bench = Bench(16, n_ubatch=4)
    placed = bench.decode((0, 6, (0,)))
    assert placed == [{"base": Placed(0, 4), "swa": Placed(0, 4)}, {"base": Placed(4, 6), "swa": Placed(4, 6)}]
    assert [(event.cache, event.ubatch) for event in bench.said(UBatchStored)] == [
        ("base", 0),
        ("swa", 0),
        ("base", 1),
        ("swa", 1),
    ]
    assert [event.cache for event in bench.said(SlotSearched)] == ["base", "base", "swa", "swa"]
    assert [part.size for part in bench.cache.parts] == [16, 8]


def test_the_window_half_reuses_what_it_no_longer_sees_and_answers_for_both() -> None:
    """Eight cells, window 4: at position 8 the cells of 0 to 4 have expired, and position 5 is still seen."""
    bench = Bench(16, n_ubatch=4)
    bench.decode((0, 8, (0,)))
    placed = bench.decode((8, 4, (0,)))
    assert placed == [{"base": Placed(8, 12), "swa": Placed(0, 8)}]
    base, swa = bench.cache.parts
    assert (base.seq_pos_min(0), base.seq_pos_max(0)) == (0, 11)
    assert (swa.seq_pos_min(0), swa.seq_pos_max(0)) == (4, 11)
    assert (bench.cache.seq_pos_min(0), bench.cache.seq_pos_max(0)) == (4, 11)
    assert bench.cache.seq_pos_min(1) == bench.cache.seq_pos_max(1) == -1


def holes_of_two() -> Bench:
    """`bb..bb..` in both halves: no run of four, two of two."""
    bench = Bench(8, n_swa=100, swa_full=True, n_seq_max=3)
    bench.decode((0, 8, (1,)))
    bench.edit([("seq_rm", (1, 2, 4)), ("seq_rm", (1, 6, 8))])
    assert bench.rows() == ("bb..bb..", "bb..bb..")
    return bench


def test_an_equal_split_may_fit_where_the_plain_one_does_not() -> None:
    """Three tokens of sequence 0 and one of 2: four in a row do not fit, one of each and then two of 0 do."""
    bench = holes_of_two()
    placed = bench.decode((0, 3, (0,)), (0, 1, (2,)))
    assert [(event.how, event.sizes) for event in bench.said(BatchSplit)] == [("simple", (4,)), ("equal", (2, 2))]
    assert placed == [{"base": Placed(2, 6), "swa": Placed(2, 6)}, {"base": Placed(6, 8), "swa": Placed(6, 8)}]
    assert bench.rows() == ("bbacbbaa", "bbacbbaa")
    assert [event.cache for event in bench.said(PrepareFailed)] == ["base"]


def test_the_window_half_is_not_asked_when_the_full_one_has_no_slot() -> None:
    bench = holes_of_two()
    assert bench.decode((0, 4, (0,))) is None
    assert [event.cache for event in bench.said(PrepareFailed)] == ["base", "base"]
    assert {event.cache for event in bench.said(SlotSearched)} == {"base"}
    assert bench.rows() == ("bb..bb..", "bb..bb..")


def test_the_window_half_may_be_the_one_without_slot() -> None:
    """Two sequences fill its eight cells. One expires and is reused; four in a row there are not."""
    bench = Bench(16, n_swa=4, n_ubatch=4)
    bench.decode((0, 4, (0,)), (0, 4, (1,)))
    assert bench.decode((4, 1, (0,))) == [{"base": Placed(8, 9), "swa": Placed(0, 8)}]
    assert bench.decode((0, 4, (2,))) is None
    assert [event.cache for event in bench.said(PrepareFailed)] == ["swa", "swa"]
    assert bench.rows() == ("aaaabbbba.......", "aaaabbbb")


def test_an_equal_split_that_is_too_long_is_told() -> None:
    """Four sequences of one token make one ubatch, although three are the most that was asked for."""
    bench = Bench(8, n_swa=100, swa_full=True, n_ubatch=3)
    bench.decode((0, 7, (7,)))
    assert bench.decode(*[(0, 1, (seq,)) for seq in range(4)]) is None
    assert [event.sizes for event in bench.said(BatchSplit)] == [(3, 1), (4,)]
    assert "equal-split-overflow" in [event.quirk for event in bench.said(QuirkSeen)]


def test_edits_reach_both_halves() -> None:
    bench = Bench(16, n_ubatch=4, n_seq_max=2)
    bench.decode((0, 6, (0,)))
    bench.edit([("seq_cp", (0, 1, 2, 4)), ("seq_rm", (0, 0, 1))])
    assert bench.rows() == (".aMMaa..........", ".aMMaa......")
    bench.edit([("seq_add", (0, 4, -1, 3)), ("seq_div", (1, 2, 4, 2))])
    for part in bench.cache.parts:
        assert part.arrays["pos"].tolist()[:6] == [-1, 1, 1, 1, 7, 8]
        assert part.has_shift
    bench.cache.seq_keep(1)
    assert bench.rows() == ("..bb............", "..bb........")
    bench.cache.clear(data=False)
    assert bench.rows() == ("." * 16, "." * 12)
    assert {event.cache for event in bench.events} == {"base", "swa"}


def test_removing_says_whether_both_halves_could() -> None:
    assert Bench(8).cache.seq_rm(0, -1, -1) is True


def test_each_half_defragments_by_its_own_holes() -> None:
    """The window half (8 cells) gives up cells 0-4 to positions 8-11, so only the full one keeps a hole at 1."""
    bench = Bench(16, n_ubatch=4)
    bench.decode((0, 8, (0,)))
    bench.decode((8, 4, (0,)))
    bench.cache.seq_rm(0, 1, 2)
    prepared = bench.cache.init_update(optimize=True, thold=0.0, n_max_nodes=65_536)
    plans = {name: part.plan.moves.tolist() for name, part in prepared.parts.items()}
    assert plans == {"base": [[11, 1, 1]], "swa": []}
    assert prepared.status is MemoryStatus.SUCCESS
    assert bench.cache.update(prepared) == {}
    assert bench.rows() == ("aaaaaaaaaaa.....", "aaaaaaaa")


def test_shifts_are_handed_over_half_by_half() -> None:
    bench = Bench(16, n_ubatch=4)
    bench.decode((0, 8, (0,)))
    bench.decode((8, 2, (0,)))
    bench.cache.seq_add(0, 5, -1, 2)
    prepared = bench.cache.init_update(optimize=False, thold=0.0, n_max_nodes=65_536)
    shifts = bench.cache.update(prepared)
    assert shifts["base"].tolist() == [0] * 5 + [2] * 5 + [0] * 6
    assert shifts["swa"].tolist() == [2, 2, 0, 0, 0, 2, 2, 2]


def test_a_decode_names_the_slots_of_both_halves() -> None:
    bench = Bench(16, n_ubatch=4)
    context = Context(bench.cache, ContextParams(n_ubatch=4), bench.events.append)
    result = context.decode(Batch.from_runs([(0, 6, (0,))]))
    assert (result.ret, [tuple(placed) for placed in result.placed]) == (0, [("base", "swa")] * 2)
    refused = context.decode(Batch.from_runs([(9, 1, (0,))]))
    assert (refused.ret, bench.events[-2].kind) == (-1, "not_consecutive")
