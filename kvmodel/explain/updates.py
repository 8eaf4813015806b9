"""What an update did: the decision, the defrag plan, the shift of K, the moves."""

import numpy as np

from kvmodel.events import DefragApplied, DefragDecided, DefragPlanned, DefragRequested, NoUpdate, ShiftApplied
from kvmodel.explain.sentence import head_words, sentence
from kvmodel.words import cell_run, cells, count, ranges

DECIDED = {
    "asked": "it was asked for",
    "small": "fewer than 2,048 leading cells never ask for it",
    "few": "fewer than 128 cells in view never ask for it",
}
"""Why a defrag is due or not, where the threshold plays no part."""


@sentence.register
def _(event: DefragDecided) -> str:
    versus = "above" if event.do_defrag else "not above"
    by_threshold = f"fragmentation {event.fragmentation:.3f} is {versus} the threshold {event.thold:g}"
    return f"{'A defrag is due' if event.do_defrag else 'No defrag'}: {DECIDED.get(event.why, by_threshold)}."


@sentence.register
def _(_event: DefragRequested) -> str:
    return "A defrag will be part of the next update."


@sentence.register
def _(event: DefragPlanned) -> str:
    plan = event.plan
    if plan.empty:
        return "The defrag plan is empty: there is no hole among the used cells."
    limit = f"at most {count(plan.max_moves, 'move')}" if plan.max_moves else "no limit"
    filled = f"{len(plan.src):,} of {count(plan.n_holes, 'empty cell')}" if plan.truncated else "every hole"
    return (
        f"The defrag plan fills {filled} with cells from the end: {count(len(plan.src), 'cell')} in"
        f" {count(plan.n_moves, 'block move')} ({limit})."
    )


@sentence.register
def _(event: ShiftApplied) -> str:
    moved = np.flatnonzero(event.k_shift)
    if not len(moved):
        return "The pending shifts came to 0, so no K changed."
    low, high = int(event.k_shift[moved].min()), int(event.k_shift[moved].max())
    span = f"by {low:+d}" if low == high else f"by {low:+d} to {high:+d}"
    if not event.rotated:
        return f"The shift of {cells(moved)} {span} was dropped: this model does not rotate its keys."
    return f"K of {cells(moved)} was rotated {span} positions."


@sentence.register
def _(event: DefragApplied) -> str:
    moved = count(len(event.plan.src), "cell")
    where = f"{'cell' if len(event.plan.dst) == 1 else 'cells'} {ranges(np.sort(event.plan.dst))}"
    return f"The defrag moved {moved} to {where}; {head_words(event.head_before, event.head)}."


def move_sentence(event: DefragApplied, k: int) -> str:
    """Block move `k` of a defrag, counted from 0, against the budget; the last one tells what became of head."""
    plan = event.plan
    source, destination, length = plan.moves[k].tolist()
    goes = "goes" if length == 1 else "go"
    budget = f"the budget is {count(plan.max_moves, 'move')}" if plan.max_moves else "there is no limit"
    last = f"; {head_words(event.head_before, event.head)}" if k == len(plan.moves) - 1 else ""
    return (
        f"Move {k + 1:,} of {len(plan.moves):,}: {cell_run(source, source + length)} {goes} to"
        f" {cell_run(destination, destination + length)}; {budget}{last}."
    )


@sentence.register
def _(_event: NoUpdate) -> str:
    return "The update found no shift and no move to make."
