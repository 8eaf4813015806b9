"""What to do about an operation that failed, from what its step recorded; what can be tried is tried."""

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from kvmodel.advice.batch import lost, refused
from kvmodel.advice.fit import largest_fit
from kvmodel.advice.found import last
from kvmodel.advice.older import no_place, partly_stored, removed_all, rolled_back, seq_rm_refused
from kvmodel.advice.remedy import Failure, Remedy
from kvmodel.advice.slots import no_slot
from kvmodel.configs import OLDER, RecurrentConfig
from kvmodel.events import BatchRefused, ComputeFailed
from kvmodel.events_recurrent import SeqRmRefused
from kvmodel.ops import Decode
from kvmodel.timeline import Timeline

__all__ = ["Remedy", "advice", "largest_fit", "remedies"]

_given: WeakKeyDictionary[Timeline, dict[int, tuple[Remedy, ...]]] = WeakKeyDictionary()
"""Remedies by timeline and step: trying them plays the scenario several times, and a timeline never changes."""


def advice(timeline: Timeline, step: int) -> list[str]:
    """What to do about the failure of one step in sentences, the nearest remedy first; empty if nothing failed.

    Args:
        timeline: a played scenario.
        step: number of a step; step 0 is the empty cache.

    Raises:
        ParamError: there is no such step.
    """
    return [remedy.sentence for remedy in remedies(timeline, step)]


def remedies(timeline: Timeline, step: int) -> tuple[Remedy, ...]:
    """The same with the scenarios in which the remedies are applied.

    Args:
        timeline: a played scenario.
        step: number of a step; step 0 is the empty cache.

    Raises:
        ParamError: there is no such step.
    """
    timeline.frame_of(step)
    known = _given.setdefault(timeline, {})
    if step not in known:
        known[step] = tuple(_remedies(timeline, step))
    return known[step]


def _remedies(timeline: Timeline, step: int) -> Iterable[Remedy]:
    if not step or not timeline.results[step - 1].failed:
        return ()
    result, op = timeline.results[step - 1], timeline.scenario.ops[step - 1]
    if result.ret == 1 and isinstance(op, Decode) and not isinstance(timeline.scenario.cache, RecurrentConfig):
        return _no_slot(Failure(timeline, step, op))
    return [Remedy(sentence) for sentence in _sentences(timeline, step)]


def _no_slot(failure: Failure) -> Iterable[Remedy]:
    """The caches of January 2025 store as they search, and have nothing to fall back on."""
    timeline, events = failure.timeline, failure.timeline.events_of(failure.step)
    if timeline.scenario.cache.kind in OLDER:
        return partly_stored(failure, events, timeline.start["kv"].params)
    return no_slot(failure, events)


def _sentences(timeline: Timeline, step: int) -> list[str]:
    result, events = timeline.results[step - 1], timeline.events_of(step)
    cache = timeline.scenario.cache
    states = isinstance(cache, RecurrentConfig)
    if result.error:
        return [_stopped(result.aborted, step)]
    if result.ret == -1:
        return [refused(last(events, BatchRefused))]
    if result.ret is False:
        return seq_rm_refused(last(events, SeqRmRefused))
    if result.ret == 1:
        return no_place(events)
    if cache.kind in OLDER:
        return [removed_all() if states else rolled_back(events)]
    return [lost(last(events, ComputeFailed))]


def _stopped(aborted: bool, step: int) -> str:
    why = "llama.cpp would end its process here" if aborted else "The call was refused"
    return f"{why}, so the timeline ends: change or remove step {step}."
