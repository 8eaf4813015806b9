"""What to do about an operation that failed, from what its step recorded."""

from kvmodel.advice.batch import lost, refused
from kvmodel.advice.found import last
from kvmodel.advice.older import no_place, partly_stored, removed_all, rolled_back, seq_rm_refused
from kvmodel.advice.slots import no_slot
from kvmodel.configs import OLDER
from kvmodel.events import BatchRefused, ComputeFailed, Event
from kvmodel.events_recurrent import SeqRmRefused
from kvmodel.timeline import OpResult, Timeline

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
    if timeline.scenario.cache.kind in OLDER:
        return _older(timeline, events, result)
    return no_slot(timeline, events) if result.ret == 1 else [lost(last(events, ComputeFailed))]


def _older(timeline: Timeline, events: tuple[Event, ...], result: OpResult) -> list[str]:
    """The caches of January 2025 store as they search, and have nothing to fall back on."""
    if result.ret is False:
        return seq_rm_refused(last(events, SeqRmRefused))
    recurrent = timeline.scenario.cache.kind == "recurrent"
    if result.ret == 1:
        return no_place(events) if recurrent else partly_stored(events, timeline.start["kv"].params)
    return [removed_all() if recurrent else rolled_back(events)]


def _stopped(aborted: bool, step: int) -> str:
    why = "llama.cpp would end its process here" if aborted else "The call was refused"
    return f"{why}, so the timeline ends: change or remove step {step}."
