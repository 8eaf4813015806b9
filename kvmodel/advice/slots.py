"""Advice after a decode of mid-2025 found no slot: a shorter batch, shorter parts, more room.

In a pair the half without a slot decides; the other one had slots for all ubatches or was not asked.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kvmodel.advice.fit import proven, shortened
from kvmodel.advice.found import every, last
from kvmodel.advice.remedy import Failure, Remedy
from kvmodel.advice.room import fewer_sequences, free_cells, larger_caches
from kvmodel.events import BatchSplit, DefragPlanned, Event, PrepareFailed, SlotSearched
from kvmodel.ops import Update
from kvmodel.slots import SlotSearch
from kvmodel.types import CacheParams, SWAType, pad
from kvmodel.words import cell_run, count

ALL_NODES = 2**31 - 1
"""Graph nodes for a defrag without a budget."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """The last try to place a batch in token order.

    Attributes:
        split: the ubatches.
        search: the search that found nothing.
        before: tokens of the batch that had a slot before it.
        params: of the cache, or the half of a pair, without a slot.
        name: of that part.
        half: its name in a pair, else empty.
        full: cells of the full half of a pair, else 0.
        used: cells of the part that are in use.
    """

    split: BatchSplit
    search: SlotSearch
    before: int
    params: CacheParams
    name: str
    half: str
    full: int
    used: int

    @property
    def n_tokens(self) -> int:
        """Tokens of the batch."""
        return sum(self.split.sizes)

    @property
    def missing(self) -> int:
        """By how many cells the batch is longer than all that are free."""
        return self.n_tokens - (self.params.kv_size - self.used)

    @property
    def has_window(self) -> bool:
        """Whether cells can be overwritten once no query sees them."""
        return self.params.swa_type is not SWAType.NONE


def no_slot(failure: Failure, events: tuple[Event, ...]) -> Iterator[Remedy]:
    """Remedies, the nearest one first; all but the words on freeing cells are tried."""
    attempt = _last_attempt(failure, events)
    yield _smaller(failure, attempt)
    if attempt.has_window:
        yield from failure.first(_shorter_parts(failure, attempt))
    if any(event.plan.truncated for event in every(events, DefragPlanned)):
        yield from failure.first(_defrag(failure, attempt))
    if not attempt.has_window and 0 < attempt.missing <= attempt.used:
        yield Remedy(free_cells(attempt.missing))
    yield from failure.first(fewer_sequences(failure, attempt.name, attempt.missing))
    yield from failure.first(_context(failure, attempt))
    yield from failure.first(_larger(failure, attempt))


def _last_attempt(failure: Failure, events: Iterable[Event]) -> Attempt:
    timeline = failure.timeline
    tried = _in_token_order(events)
    split, failed = last(tried, BatchSplit), last(tried, PrepareFailed)
    pair = len(timeline.start) > 1
    return Attempt(
        split,
        last(tried, SlotSearched).search,
        sum(split.sizes[: failed.n_placed]),
        timeline.start[failed.cache].params,
        failed.cache,
        failed.cache if pair else "",
        timeline.start["base"].n_cells if pair else 0,
        int(timeline.frames[timeline.frame_of(failure.step)].parts[failed.cache].counters["used"]),
    )


def _in_token_order(events: Iterable[Event]) -> list[Event]:
    """The last try in token order, which a shorter batch repeats; a pair goes on with an equal split."""
    tried: list[Event] = []
    plain = False
    for event in events:
        if isinstance(event, BatchSplit):
            plain = event.how == "simple"
            tried = [] if plain else tried
        if plain:
            tried.append(event)
    return tried


def _smaller(failure: Failure, attempt: Attempt) -> Remedy:
    """The longest batch that fits now, if any does; the other half of a pair may have less room."""
    search = attempt.search
    fits = attempt.before + (search.n_cells if search.too_many else search.longest)
    unsure = bool(attempt.half) or search.too_many
    if unsure and not failure.too_long:
        fits = proven(fits, lambda n: failure.then(shortened(failure.batch, n)))
    if not fits:
        return Remedy(f"No smaller batch helps: no cell{f' of {attempt.half}' if attempt.half else ''} can be used.")
    longest = f" ({longest_run(search)})" if search.longest > 0 else ""
    no_more = f": {attempt.half} has room for no more" if attempt.half else ""
    words = f"Send at most {count(fits, 'token')} in one decode{no_more}{longest}."
    remedy = Remedy(words, failure.then(shortened(failure.batch, fits)))
    return failure.marked(remedy) if unsure else remedy


def longest_run(search: SlotSearch) -> str:
    """Where the longest run of usable cells is."""
    where = cell_run(search.longest_start, search.longest_start + search.longest)
    return f"{where} {'are' if search.longest > 1 else 'is'} the longest run left"


def _shorter_parts(failure: Failure, attempt: Attempt) -> Iterator[Remedy]:
    """A window lets go of cells as its sequence goes on, so shorter parts can do what a long one cannot."""
    n = min(attempt.search.n_cells if attempt.search.too_many else attempt.search.longest, attempt.split.n_ubatch - 1)
    while n > 0:
        words = f"Set n_ubatch to {n:,} at most: each part that is stored pushes older positions out of the window."
        yield Remedy(words, failure.instead(failure.batch.model_copy(update={"n_ubatch": n})))
        n //= 2


def _defrag(failure: Failure, attempt: Attempt) -> Iterator[Remedy]:
    """The decode has tried a defrag already, but its budget cut it short."""
    free = f"{attempt.params.kv_size - attempt.used:,} cells are free but not in a row"
    words = "Run an update with optimize once more, or with a larger n_max_nodes"
    update = Update(optimize=True, n_max_nodes=ALL_NODES)
    yield Remedy(f"{words}: {free}, since this defrag used up its moves.", failure.then(update, failure.batch))


def _context(failure: Failure, attempt: Attempt) -> Iterator[Remedy]:
    """The window half of a pair is made for the ubatches of the context."""
    n_ubatch = attempt.split.n_ubatch
    if attempt.half and attempt.params.kv_size < attempt.full and n_ubatch > failure.timeline.scenario.context.n_ubatch:
        cells = min(_enough(attempt), attempt.full)
        words = f"Set the n_ubatch of the context to {n_ubatch:,}: swa is made for it, then with {cells:,} cells."
        yield Remedy(words, failure.configured("context", n_ubatch=n_ubatch))


def _larger(failure: Failure, attempt: Attempt) -> Iterator[Remedy]:
    """More cells in the half without a slot: the window half of a pair grows with swa_full only."""
    params, missing = attempt.params, attempt.missing
    if attempt.half and params.kv_size < attempt.full:
        words = f"Set swa_full: swa then has as many cells as base, {attempt.full:,}."
        yield Remedy(words, failure.configured("cache", swa_full=True))
    else:
        enough = _enough(attempt)
        if attempt.has_window and enough > params.kv_size:
            words = f"Make the cache larger: {enough:,} cells hold every window and one ubatch."
            yield Remedy(words, failure.configured("cache", kv_size=enough))
        yield from larger_caches(failure, missing, params.n_pad)
    if attempt.half:
        yield from larger_caches(failure, missing, params.n_pad, swa_full=True)


def _enough(attempt: Attempt) -> int:
    """Cells for every window and one ubatch."""
    params = attempt.params
    return pad(params.n_swa * params.n_seq_max + attempt.split.n_ubatch, params.n_pad)
