"""What the edits of sequences did, and `clear`."""

from kvmodel.events import Cleared, NothingToDo, SeqAdded, SeqCopied, SeqDivided, SeqKept, SeqRemoved
from kvmodel.explain.sentence import head_words, sentence
from kvmodel.limits import INT32_MAX
from kvmodel.words import cells, count, positions, upper_first


@sentence.register
def _(event: SeqRemoved) -> str:
    who = "every sequence" if event.seq < 0 else f"sequence {event.seq}"
    where = positions(event.p0, event.p1)
    head = head_words(event.head_before, event.head)
    if not len(event.cells):
        return f"{_no_cell(event.seq, event.p0, event.p1)}, so nothing was removed; {head}."
    kept = len(event.cells) - len(event.freed)
    still = f", {count(kept, 'cell')} still owned by others" if kept else ""
    return f"{upper_first(where)} of {who} removed; free now: {cells(event.freed)}{still}; {head}."


@sentence.register
def _(event: SeqCopied) -> str:
    where = positions(event.p0, event.p1)
    if not len(event.cells):
        return f"{_no_cell(event.src, event.p0, event.p1)}, so sequence {event.dst} gained none."
    had = f", {len(event.had):,} of which it owned already" if len(event.had) else ""
    return (
        f"Sequence {event.dst} shares {where} of sequence {event.src}: it owns {cells(event.cells)} as well{had};"
        " no K or V was copied."
    )


@sentence.register
def _(event: SeqKept) -> str:
    narrowed = f"; {cells(event.narrowed)} lost the other owners" if len(event.narrowed) else ""
    head = head_words(event.head_before, event.head)
    return f"Only sequence {event.seq} is kept; free now: {cells(event.freed)}{narrowed}; {head}."


@sentence.register
def _(event: SeqAdded) -> str:
    where = positions(event.p0, event.p1)
    head = head_words(event.head_before, event.head)
    if not len(event.cells):
        return f"{_no_cell(event.seq, event.p0, event.p1)}, so nothing moved; {head}."
    freed = f"; {cells(event.freed)} fell below position 0 and became free" if len(event.freed) else ""
    return (
        f"{upper_first(where)} of sequence {event.seq} moved by {event.shift:+d} in {cells(event.cells)}{freed};"
        f" K is rotated at the next update; {head}."
    )


@sentence.register
def _(event: SeqDivided) -> str:
    where = positions(event.p0, event.p1)
    if not len(event.cells):
        return f"{_no_cell(event.seq, event.p0, event.p1)}, so nothing was divided."
    return (
        f"{upper_first(where)} of sequence {event.seq} divided by {event.d} in {cells(event.cells)};"
        " K is rotated at the next update."
    )


@sentence.register
def _(event: NothingToDo) -> str:
    return f"Nothing to do for {event.call}: {event.why}."


@sentence.register
def _(event: Cleared) -> str:
    data = "K and V bytes are 0" if event.data else "K and V bytes stay as they are"
    return f"All cells are empty ({event.n_cells:,}), {data}, head is 0."


def _no_cell(seq: int, p0: int, p1: int) -> str:
    if p1 <= p0:
        return f"The range of positions from {p0} to {p1} is empty"
    where = "" if (p0, p1) == (0, INT32_MAX) else f" at {positions(p0, p1)}"
    return f"Sequence {seq} has no cell{where}" if seq >= 0 else f"No sequence has a cell{where}"
