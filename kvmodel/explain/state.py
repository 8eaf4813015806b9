"""What writing and reading state streams did."""

from kvmodel.events import StateRead, StateRefused, StateWritten
from kvmodel.explain.sentence import sentence
from kvmodel.words import cells, count

LEFT = {
    "cleared": "the cache is cleared",
    "removed": "sequence {} is removed",
    "half-read": "what was read before stays, since the clean-up is skipped",
}
"""What a refused stream leaves behind."""


@sentence.register
def _(event: StateWritten) -> str:
    whose = "The whole cache" if event.seq < 0 else f"Sequence {event.seq}"
    data = "" if event.with_data else "; no K or V is attached, so their bytes are 0"
    return f"{whose} was written as {count(event.n_bytes, 'byte')}: {cells(event.cells)}{data}."


@sentence.register
def _(event: StateRead) -> str:
    whose = "The whole cache" if event.seq < 0 else f"Sequence {event.seq}"
    return f"{whose} was restored from {count(event.n_bytes, 'byte')} into {cells(event.cells)}; head is {event.head}."


@sentence.register
def _(event: StateRefused) -> str:
    return f"The state was refused ({event.kind}): {event.message}; {LEFT[event.left].format(event.seq)}."
