"""One plain sentence for every event.

Everything said here stands in the event: nothing is worked out a second time.
"""

from kvmodel.events import Event
from kvmodel.explain import decode, edits, recurrent, state, updates
from kvmodel.explain.sentence import sentence
from kvmodel.explain.slots import explain_search

__all__ = ["decode", "edits", "explain", "explain_search", "recurrent", "state", "updates"]


def explain(event: Event) -> str:
    """Say in one sentence what an event tells, with its figures.

    In a pair of caches the sentence names the one that speaks.

    Raises:
        TypeError: a class of events that has no sentence.
    """
    said = sentence(event)
    return said if event.cache == "kv" else f"In {event.cache}: {said}"
