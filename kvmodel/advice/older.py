"""Advice for the caches of January 2025, which store as they search and cannot take a decode back."""

from collections.abc import Iterable, Iterator

from kvmodel.advice.fit import proven, shortened
from kvmodel.advice.found import every, last
from kvmodel.advice.remedy import Failure, Remedy
from kvmodel.advice.room import fewer_sequences, free_cells, larger_caches
from kvmodel.advice.slots import longest_run
from kvmodel.events import BatchSplit, Event, QuirkSeen, SlotSearched, UBatchStored
from kvmodel.events_recurrent import SeqRmRefused, SlotRefused
from kvmodel.types import CacheParams, get_padding
from kvmodel.words import count


def partly_stored(failure: Failure, events: Iterable[Event], params: CacheParams) -> Iterator[Remedy]:
    """A transformer cache found no slot: what is stored stays, and no defrag is tried.

    A larger cache is counted without its holes, since a part of the batch may be longer than each of them.
    """
    search = last(events, SlotSearched).search
    frame = failure.timeline.frames[failure.timeline.frame_of(failure.step)]
    free = search.n_cells - int(frame.parts["kv"].counters["used"])
    stored = _stored(events)
    left = sum(last(events, BatchSplit).sizes) - stored
    if stored:
        yield Remedy(_kept(stored, "token"))
    if left <= free:
        yield Remedy(f"Ask for a defrag and an update: {free:,} cells are free, but not in a row.")
    if search.longest > 0:
        yield Remedy(f"Send parts of at most {count(search.longest, 'token')}: {longest_run(search)}.")
    elif search.too_many and not failure.too_long:
        fits = proven(free, lambda n: failure.then(shortened(failure.batch, n)))
        if fits:
            words = f"Send at most {count(fits, 'token')}: a part of a batch cannot be longer than the cache."
            yield Remedy(words, failure.then(shortened(failure.batch, fits)))
    if left <= free:
        return
    if left - free <= search.n_cells - free:
        yield Remedy(free_cells(left - free))
    yield from failure.first(fewer_sequences(failure, "kv", left - free))
    yield from failure.first(larger_caches(failure, left - free, get_padding(flash_attn=not params.v_trans)))


def _stored(events: Iterable[Event]) -> int:
    """Tokens of a failed decode that are in the cache."""
    return sum(len(event.stored) for event in every(events, UBatchStored))


def _kept(n: int, noun: str) -> str:
    first = f"The first {count(n, noun)} {'are' if n > 1 else 'is'} stored and"
    return f"{first} {'stay' if n > 1 else 'stays'}: send the others only, or remove these before (seq_rm)."


def rolled_back(events: Iterable[Event]) -> str:
    """A transformer cache lost what has the positions that its slots have as cell numbers."""
    if not any(event.quirk == "restore-by-index" for event in every(events, QuirkSeen)):
        return "Send the batch again: what this decode had stored is removed."
    return (
        "Remove what is left of this batch (seq_rm), then send again what is missing: the roll-back took cell numbers"
        " for positions, so it removed other cells."
    )


def no_place(events: Iterable[Event]) -> list[str]:
    """A recurrent cache has no cell for a sequence of the batch."""
    stored = _stored(events)
    before = (
        [f"The states have taken in {count(stored, 'token')} of the batch: send the others only."] if stored else []
    )
    if not every(events, SlotRefused):
        return [*before, "Let each sequence stand in one set of the batch only: two sets found one cell between them."]
    refused = last(events, SlotRefused)
    enough = f"make the cache with {refused.seq + 1:,} cells at least"
    return [*before, f"Use sequence ids from 0 to {refused.n_cells - 1}, or {enough}: it needs one for each."]


def removed_all() -> str:
    """A recurrent cache cannot go back to an earlier state."""
    return "Send every sequence again from position 0: states cannot be taken back, so all of them were removed."


def seq_rm_refused(event: SeqRmRefused) -> list[str]:
    """A state cannot lose a part of what it took in."""
    if event.why == "unknown":
        return ["Use the id of a sequence that has a place in this cache."]
    if event.why == "all":
        return ["Leave p0 and p1 open: of all sequences only all positions can be removed."]
    again = f"positions 0 to {event.p0 - 1} again" if event.p0 else "what is to remain again"
    return [
        f"Remove all of sequence {event.seq} (p0 and p1 left open) and send {again}.",
        "Keep a copy to return to (seq_cp) before tokens that may have to be taken back.",
    ]
