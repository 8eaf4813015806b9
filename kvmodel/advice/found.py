"""The events of a step that advice is given from."""

from collections.abc import Iterable
from typing import TypeVar

from kvmodel.events import Event

E = TypeVar("E", bound=Event)


def every(events: Iterable[Event], kind: type[E]) -> list[E]:
    """All events of one kind, in order."""
    return [event for event in events if isinstance(event, kind)]


def last(events: Iterable[Event], kind: type[E]) -> E:
    """The last event of one kind."""
    return every(events, kind)[-1]
