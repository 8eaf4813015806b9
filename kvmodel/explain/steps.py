"""Events that are several things to see, one after the other: the search for a slot, the moves of a defrag."""

from functools import singledispatch

from kvmodel.events import DefragApplied, Event, SlotSearched
from kvmodel.explain import explain
from kvmodel.explain.slots import SearchSteps
from kvmodel.explain.updates import move_sentence
from kvmodel.words import lower_first


@singledispatch
def n_steps(event: Event) -> int:
    """How many things to see an event is; 1 unless it is a search or a defrag."""
    _ = event
    return 1


@n_steps.register
def _(event: SlotSearched) -> int:
    return len(SearchSteps(event.search)) if len(event.search.probe_start) else 2


@n_steps.register
def _(event: DefragApplied) -> int:
    return len(event.plan.moves)


@singledispatch
def explain_step(event: Event, k: int) -> str:
    """Say in one sentence what step `k` of an event is, counted from 0.

    In a pair of caches the sentence names the one that speaks.
    """
    _ = k
    return explain(event)


@explain_step.register
def _(event: SlotSearched, k: int) -> str:
    said = SearchSteps(event.search).sentence(k)
    return _named(event, said if k else f"Ubatch {event.ubatch}: {lower_first(said)}")


@explain_step.register
def _(event: DefragApplied, k: int) -> str:
    return _named(event, move_sentence(event, k))


def _named(event: Event, said: str) -> str:
    return said if event.cache == "kv" else f"In {event.cache}: {said}"
