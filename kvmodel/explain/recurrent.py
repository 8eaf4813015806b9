"""What a recurrent cache did with whole states: slots, sources, and edits that spare no part of a state."""

import numpy as np

from kvmodel.events_recurrent import (
    CellsSwapped,
    SeqRmRefused,
    SlotFilled,
    SlotRefused,
    SlotTakenBack,
    SourcesTaken,
    StateBegun,
    StateCopied,
    StateDivided,
    StateLeft,
    StateRemoved,
    StateShared,
    StateShifted,
    StatesStored,
)
from kvmodel.explain.sentence import head_words, sentence
from kvmodel.words import cell_run, cells, count, joined, positions, upper_first

MOST_PAIRS = 6
"""Cells or sequences that a sentence names one by one before it only counts the rest."""


@sentence.register
def _(event: StateBegun) -> str:
    return f"Sequence {event.seq} has no state yet and gets cell {event.cell}, which is empty."


@sentence.register
def _(event: StateCopied) -> str:
    source = f"a copy of the state in cell {event.src}" if event.src >= 0 else "zero"
    return (
        f"Sequence {event.seq} shares cell {event.shared} with others, so it gets the empty cell {event.cell} for"
        f" itself; the computation starts it from {source}."
    )


@sentence.register
def _(event: StateLeft) -> str:
    rest = "is free now" if event.freed else "goes on with its other owners"
    return f"Sequence {event.seq} is about to share another state, so it leaves cell {event.cell}, which {rest}."


@sentence.register
def _(event: CellsSwapped) -> str:
    return (
        f"Cells {event.cell} and {event.other} swap their states: that of sequence {event.seq} has its place in cell"
        f" {event.cell}, since the states of a ubatch stand in a row."
    )


@sentence.register
def _(event: SlotFilled) -> str:
    ubatch = event.filled
    slot = cell_run(event.begin, event.begin + ubatch.n_seqs)
    early = f", sought from cell 0, since head was {event.head_before}" if event.start != event.head_before else ""
    wider = f"; the graph works on {cell_run(event.begin, event.begin + event.n)}" if event.n > ubatch.n_seqs else ""
    if not event.found:
        wider = f"; that is no slot, since the sets name one sequence twice ({count(event.n, 'cell')} in all)"
    return (
        f"Ubatch {event.ubatch}: {count(ubatch.n_seqs, 'state')} for {count(len(ubatch), 'token')} in"
        f" {slot}{early}{wider}{_jumps(event.jumps)}."
    )


def _jumps(jumps: tuple[tuple[int, int, int], ...]) -> str:
    """Positions that do not follow; upstream warns and computes on."""
    if not jumps:
        return ""
    told = [f"sequence {seq} goes from position {before} to {now}" for seq, before, now in jumps[:MOST_PAIRS]]
    more = [f"{len(jumps) - MOST_PAIRS:,} more"] if len(jumps) > MOST_PAIRS else []
    return f"; not consecutive: {joined([*told, *more])}, which the state takes in all the same"


@sentence.register
def _(event: SlotRefused) -> str:
    return (
        f"Ubatch {event.ubatch}: no slot, since sequence {event.seq} has no place in a cache of"
        f" {count(event.n_cells, 'cell')}; allowed: 0 to {event.n_cells - 1}."
    )


@sentence.register
def _(event: SourcesTaken) -> str:
    own = np.arange(event.begin, event.begin + len(event.s_copy))
    copied = np.flatnonzero(event.s_mask & (event.s_copy != own))
    pairs = [f"cell {own[i]} from cell {event.s_copy[i]}" for i in copied[:MOST_PAIRS].tolist()]
    more = [f"{len(copied) - MOST_PAIRS:,} more"] if len(copied) > MOST_PAIRS else []
    parts = [
        f"{cells(which)} {words}"
        for which, words in ((own[~event.s_mask], "from zero"), (own[event.s_mask & (event.s_copy == own)], "as it is"))
        if len(which)
    ]
    copies = [f"a copy for {joined([*pairs, *more])}"] if pairs else []
    return f"The computation takes {joined([*parts, *copies])}; from then on each is its own source."


@sentence.register
def _(event: StatesStored) -> str:
    ubatch = event.stored
    each = f", {ubatch.n_seq_tokens} each" if ubatch.n_seqs > 1 else ""
    return (
        f"Ubatch {event.ubatch}: {cell_run(event.begin, event.end)} took in {count(len(ubatch), 'token')}{each};"
        f" {head_words(event.head_before, event.head)}, the slot is {count(event.n_kv, 'cell')} long."
    )


@sentence.register
def _(event: SlotTakenBack) -> str:
    return (
        f"The roll-back: {head_words(event.head_before, event.head)}, the slot is {count(event.n, 'cell')} long as"
        " before; states cannot be taken back, so every sequence is removed."
    )


@sentence.register
def _(event: SeqRmRefused) -> str:
    who = "every sequence" if event.seq < 0 else f"sequence {event.seq}"
    why = {
        "partial": f"its state is at position {event.pos} and cannot forget a part of what it took in",
        "unknown": "this cache has no place for it",
        "all": "only all positions of all sequences can be removed at once",
    }
    where = positions(event.p0, event.p1)
    return f"Removing {where} of {who} was refused: {why[event.why]}; nothing changed."


@sentence.register
def _(event: StateRemoved) -> str:
    who = "every sequence" if event.seq < 0 else f"sequence {event.seq}"
    where = positions(event.p0, event.p1)
    head = head_words(event.head_before, event.head)
    tail = "; its tail is gone" if event.tail_gone else ""
    if not len(event.cells):
        return f"{upper_first(where)} of {who}: no state to remove{tail}; {head}."
    kept = len(event.cells) - len(event.freed)
    still = f", {count(kept, 'state')} still owned by others" if kept else ""
    return f"The state of {who} is removed; free now: {cells(event.freed)}{still}{tail}; {head}."


@sentence.register
def _(event: StateShared) -> str:
    if not len(event.cells):
        return f"Sequence {event.src} has no state, so sequence {event.dst} has none either."
    return (
        f"Sequence {event.dst} shares the state of sequence {event.src} in {cells(event.cells)}; it is copied when one"
        " of them goes on."
    )


@sentence.register
def _(event: StateShifted) -> str:
    return f"{_now_at(event.seq, event.cells, event.pos)} ({event.shift:+d}); the state itself stays as it is."


@sentence.register
def _(event: StateDivided) -> str:
    return f"{_now_at(event.seq, event.cells, event.pos)} (divided by {event.d}); the state itself stays as it is."


def _now_at(seq: int, where: "np.ndarray[tuple[int], np.dtype[np.intp]]", pos: int) -> str:
    return f"The state of sequence {seq} in {cells(where)} counts as position {pos} now"
