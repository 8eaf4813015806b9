"""Why a step failed: every search in vain in full, what would have fit, and what to do."""

from collections.abc import Iterator
from dataclasses import dataclass

from kvmodel.advice import advice, largest_fit
from kvmodel.events import BatchRefused, BatchSplit, Decoded, Event, SlotSearched
from kvmodel.events_recurrent import SeqRmRefused, SlotFilled, SlotRefused
from kvmodel.explain import explain, explain_search
from kvmodel.timeline import OpResult, Timeline


@dataclass(frozen=True)
class FailedSearch:
    """One search that found nothing.

    Attributes:
        part: the set of cells: `kv`, `base` or `swa`.
        ubatch: number of the ubatch that has no slot.
        attempt: which try of the step, from 1 on: after a failure a decode tries again if a defrag helped, and a pair
            tries another split.
        lines: the search in sentences, one a step of it.
    """

    part: str
    ubatch: int
    attempt: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class FailureStory:
    """What went wrong in a step.

    Attributes:
        step: its number.
        what: what the call came to, in a sentence.
        searches: every search in vain, in order.
        fits: the largest part of the batch that would have fit in its place (see `largest_fit`), None where that is no
            question.
        n_tokens: tokens of the batch, 0 if it was no decode.
        remedies: what to do now, the nearest first.
    """

    step: int
    what: str
    searches: tuple[FailedSearch, ...]
    fits: int | None
    n_tokens: int
    remedies: tuple[str, ...]


def failure_story(timeline: Timeline, step: int) -> FailureStory | None:
    """Tell why a step failed, None if it did not.

    Args:
        timeline: a played scenario.
        step: number of a step; step 0 is the empty cache.

    Raises:
        ParamError: there is no such step.
    """
    events = timeline.events_of(step)
    if not step or not timeline.results[step - 1].failed:
        return None
    return FailureStory(
        step,
        _what(timeline.results[step - 1], events),
        tuple(_searches(events)),
        largest_fit(timeline, step),
        sum(run.n for run in getattr(timeline.scenario.ops[step - 1], "tokens", ())),
        tuple(advice(timeline, step)),
    )


def _what(result: OpResult, events: tuple[Event, ...]) -> str:
    """Why a batch or an edit was refused, else what the decode returned."""
    if result.error:
        return f"{result.error[:1].upper()}{result.error[1:]}."
    return explain(next(event for event in events if isinstance(event, BatchRefused | SeqRmRefused | Decoded)))


def _searches(events: tuple[Event, ...]) -> Iterator[FailedSearch]:
    attempt = 0
    for event in events:
        if isinstance(event, BatchSplit):
            attempt += 1
        elif isinstance(event, SlotSearched) and not event.search.found:
            yield FailedSearch(event.cache, event.ubatch, attempt, tuple(explain_search(event.search)))
        elif isinstance(event, SlotRefused) or (isinstance(event, SlotFilled) and not event.found):
            yield FailedSearch(event.cache, event.ubatch, attempt, (explain(event),))
