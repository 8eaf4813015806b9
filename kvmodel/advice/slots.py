"""Advice after a decode of mid-2025 found no slot: a shorter batch, shorter parts, more room.

In a pair the half without a slot decides; the other one had slots for all ubatches or was not asked.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kvmodel.advice.found import last
from kvmodel.events import BatchSplit, Event, PrepareFailed, SlotSearched
from kvmodel.slots import SlotSearch
from kvmodel.timeline import Timeline
from kvmodel.types import CacheParams, SWAType, pad
from kvmodel.words import cell_run, count


@dataclass(frozen=True, eq=False)
class Attempt:
    """The last try to place a batch in token order.

    Attributes:
        split: the ubatches.
        search: the search that found nothing.
        before: tokens of the batch that had a slot before it.
        params: of the cache, or the half of a pair, without a slot.
        half: its name in a pair, else empty.
        full: cells of the full half of a pair, else 0.
        n_ubatch: of the context.
    """

    split: BatchSplit
    search: SlotSearch
    before: int
    params: CacheParams
    half: str
    full: int
    n_ubatch: int


def no_slot(timeline: Timeline, events: Iterable[Event]) -> list[str]:
    """Remedies, the nearest one first."""
    attempt = _last_attempt(timeline, events)
    search, params = attempt.search, attempt.params
    if search.too_many:
        limit = f"a part of a batch cannot be longer than {attempt.half or 'the cache'}"
        return [f"Set n_ubatch to {search.n_cells:,} at most: {limit}.", *_window_half(attempt)]
    smaller = _smaller(attempt)
    if params.swa_type is not SWAType.NONE:
        return [smaller, *_window(attempt)]
    missing = sum(attempt.split.sizes) - attempt.before - search.free
    if missing <= 0:
        return [smaller, *_in_a_row(search)]
    return [smaller, *more_cells(missing, pad(params.kv_size + missing, params.n_pad))]


def _last_attempt(timeline: Timeline, events: Iterable[Event]) -> Attempt:
    tried = _in_token_order(events)
    split, failed = last(tried, BatchSplit), last(tried, PrepareFailed)
    pair = len(timeline.start) > 1
    return Attempt(
        split,
        last(tried, SlotSearched).search,
        sum(split.sizes[: failed.n_placed]),
        timeline.start[failed.cache].params,
        failed.cache if pair else "",
        timeline.start["base"].n_cells if pair else 0,
        timeline.scenario.context.n_ubatch,
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


def _smaller(attempt: Attempt) -> str:
    """The longest batch that would have fit, if any would."""
    search, fits = attempt.search, attempt.before + attempt.search.longest
    longest = f" ({longest_run(search)})" if search.longest else ""
    if not fits:
        return f"No smaller batch helps: no cell{f' of {attempt.half}' if attempt.half else ''} can be used."
    no_more = f": {attempt.half} has room for no more" if attempt.half else ""
    return f"Send at most {count(fits, 'token')} in one decode{no_more}{longest}."


def longest_run(search: SlotSearch) -> str:
    """Where the longest run of usable cells is."""
    where = cell_run(search.longest_start, search.longest_start + search.longest)
    return f"{where} {'are' if search.longest > 1 else 'is'} the longest run left"


def _window(attempt: Attempt) -> list[str]:
    """A window lets go of cells as its sequence goes on, so shorter parts can do what a long one cannot."""
    search, params = attempt.search, attempt.params
    advised = []
    if search.longest:
        shorter = f"Set n_ubatch to {search.longest:,} at most"
        advised.append(f"{shorter}: each part that is stored pushes older positions out of the window.")
    enough = _enough(attempt)
    if enough > params.kv_size and not attempt.half:
        advised.append(f"Make the cache larger: {enough:,} cells hold every window and one ubatch.")
    return [*advised, *_window_half(attempt)]


def _window_half(attempt: Attempt) -> list[str]:
    """What makes the window half of a pair larger, if it is the one and can be."""
    if attempt.params.kv_size >= attempt.full:
        return []
    advised = [f"Set swa_full: swa then has as many cells as base, {attempt.full:,}."]
    if attempt.split.n_ubatch > attempt.n_ubatch:
        grown = f"swa is made for it, then with {min(_enough(attempt), attempt.full):,} cells"
        advised.insert(0, f"Set the n_ubatch of the context to {attempt.split.n_ubatch:,}: {grown}.")
    return advised


def _enough(attempt: Attempt) -> int:
    """Cells for every window and one ubatch."""
    params = attempt.params
    return pad(params.n_swa * params.n_seq_max + attempt.split.n_ubatch, params.n_pad)


def more_cells(missing: int, enough: int) -> list[str]:
    """Where more cells can come from: how many there are too few, and a size that is enough."""
    free = (
        f"Free {count(missing, 'more cell')}: remove a sequence that is done (seq_rm), or drop old positions of one"
        " and shift the rest (seq_rm, then seq_add)."
    )
    return [free, f"Make the cache larger: with kv_size {enough:,} the whole batch fits."]


def _in_a_row(search: SlotSearch) -> list[str]:
    """Enough cells are free; the decode has tried a defrag already, so that one was cut short by its budget."""
    again = "Run an update with optimize once more, or with a larger n_max_nodes"
    return [f"{again}: {search.free:,} cells are free but not in a row, since this defrag used up its moves."]
