"""Where every class of events registers its sentence."""

from functools import singledispatch

from kvmodel.events import Event


@singledispatch
def sentence(event: Event) -> str:
    """The sentence of an event, without the name of its cache.

    Raises:
        TypeError: a class of events that has no sentence.
    """
    raise TypeError(f"no sentence for the event {type(event).__name__}")


def head_words(before: int, now: int) -> str:
    """What became of head."""
    return f"head stays at {now}" if before == now else f"head goes from {before} to {now}"
