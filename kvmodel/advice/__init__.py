"""What to do about an operation that failed, from what its step recorded."""

from kvmodel.advice.batch import lost, refused
from kvmodel.advice.found import last
from kvmodel.advice.older import no_place, partly_stored, removed_all, rolled_back, seq_rm_refused
from kvmodel.advice.slots import no_slot
from kvmodel.configs import OLDER, RecurrentConfig
from kvmodel.events import BatchRefused, ComputeFailed, Event
from kvmodel.events_recurrent import SeqRmRefused
from kvmodel.timeline import Timeline

__all__ = ["advice"]


def advice(timeline: Timeline, step: int) -> list[str]:
    """Remedies for the failure of one step, the nearest one first; empty if nothing failed.

    Args:
        timeline: a played scenario.
        step: number of a step; step 0 is the empty cache.
    """
    if not step or not timeline.results[step - 1].failed:
        return []
    result, events = timeline.results[step - 1], timeline.events_of(step)
    if result.error:
        return [_stopped(result.aborted, step)]
    if result.ret == -1:
        return [refused(last(events, BatchRefused))]
    if result.ret is False:
        return seq_rm_refused(last(events, SeqRmRefused))
    return _decode(timeline, events, result.ret)


def _decode(timeline: Timeline, events: tuple[Event, ...], ret: int | None) -> list[str]:
    """A decode that found no slot (1), or whose computation failed.

    The caches of January 2025 store as they search, and have nothing to fall back on.
    """
    cache = timeline.scenario.cache
    states, older = isinstance(cache, RecurrentConfig), cache.kind in OLDER
    if ret == 1:
        if states:
            return no_place(events)
        return partly_stored(events, timeline.start["kv"].params) if older else no_slot(timeline, events)
    if older:
        return [removed_all() if states else rolled_back(events)]
    return [lost(last(events, ComputeFailed))]


def _stopped(aborted: bool, step: int) -> str:
    why = "llama.cpp would end its process here" if aborted else "The call was refused"
    return f"{why}, so the timeline ends: change or remove step {step}."
