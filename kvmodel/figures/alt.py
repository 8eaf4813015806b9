"""What a figure shows in a sentence or two, for those who do not see it; the tables hold the rest."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kvmodel.batch import UBatch
from kvmodel.cells import EMPTY
from kvmodel.defrag import DefragPlan
from kvmodel.figures.mask_squares import drawn_mask
from kvmodel.figures.shift_runs import Runs, shift_vector
from kvmodel.figures.texts import mib, owners_of, reason_words, shift_of
from kvmodel.figures.window import Window, cut
from kvmodel.kshift import KShiftReport
from kvmodel.mask import MaskReason
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline
from kvmodel.words import cell_run, cells, count, joined

MOST = 6
"""Sequences, runs or tails that a text names before it counts the rest."""


def describe_cells(part: PartSnapshot, *, window: Window | None = None, changed: ArrayLike | None = None) -> str:
    """What a map of cells shows: how many are in use, the sequences with their positions, head and n_kv.

    Args:
        part: the cells at one moment.
        window: the cells (first, n) that the map shows; left out, all.
        changed: indices of cells that changed.

    Raises:
        ParamError: the window is not within the cache.
    """
    shown = cut(part, window)
    used, n = int(np.count_nonzero(shown.pos != EMPTY)), len(shown.pos)
    where = f" from cell {window[0]:,} on" if window else ""
    held = f"{_of(used, n, 'cell')}{where} {_are(used)} in use{_sequences(shown)}."
    told = f"{held} head is {part.head:,}, n_kv is {part.n_kv:,}."
    return told if changed is None else f"{told} Changed: {cells(np.asarray(changed, np.intp))}."


def describe_overview(part: PartSnapshot, *, window: Window | None = None) -> str:
    """What the strip of a large cache shows: how much is in use, up to where, and which cells the map shows."""
    busy = np.flatnonzero(part.pos != EMPTY)
    reach = f", the last of them cell {busy[-1]:,}" if len(busy) else ""
    told = f"{_of(len(busy), part.n_cells, 'cell')} {_are(len(busy))} in use{reach}."
    return f"{told} The map shows {cell_run(window[0], sum(window))}." if window else told


def describe_states(part: PartSnapshot) -> str:
    """What the picture of a recurrent cache shows: the cells with a state, and which sequence has its state where."""
    held = np.flatnonzero(part.seqs != 0)
    seqs = np.flatnonzero(part.tail >= 0)
    tails = [f"that of sequence {seq} in cell {part.tail[seq]}" for seq in seqs[:MOST].tolist()]
    named = f": {_listed(tails, len(seqs), 'more sequence')}" if tails else ""
    verb = "hold" if len(held) != 1 else "holds"
    return f"{_of(len(held), part.n_cells, 'cell')} {verb} a state{named}. head is {part.head:,}."


def describe_mask(part: PartSnapshot, ubatch: UBatch, *, causal: bool = True) -> str:
    """What the map of a mask shows: how many squares are visible, and how many each reason hides."""
    drawn = drawn_mask(part, ubatch, causal=causal, padding=False)
    per_reason = (
        np.bincount(drawn.codes.ravel(), minlength=len(MaskReason))
        if drawn.counts is None
        else drawn.counts.sum(axis=(0, 1), dtype=np.int64)
    )
    words, total = reason_words(part.params.swa_type), len(drawn.rows) * part.n_kv
    visible, hidden = int(per_reason[MaskReason.VISIBLE]), per_reason.copy()
    hidden[MaskReason.VISIBLE] = 0
    rest = [f"{word} {n:,}" for n, word in zip(hidden.tolist(), words, strict=True) if n]
    who = count(len(ubatch), "token") + (
        f", of which {len(drawn.rows)} are drawn" if len(drawn.rows) < len(ubatch) else ""
    )
    told = f"{who}, by {count(part.n_kv, 'cell')}: {_of(visible, total, 'square')} {_are(visible)} visible"
    return f"{told}; the others: {joined(rest)}." if rest else f"{told}."


def describe_usage(timeline: Timeline, name: str, step: int) -> str:
    """What the chart of usage shows: cells in use and bytes at a step, and the most at any step."""
    part, used = timeline.start[name], timeline.series("used", name)
    size = (part.size_k_bytes + part.size_v_bytes) / part.n_cells
    now, most = int(used[step]), int(used.max())
    return (
        f"At step {step:,} of {timeline.n_steps - 1:,}, {_of(now, part.n_cells, 'cell')} {_are(now)} in use,"
        f" {mib(now * size)} of K and V; the most at any step is {most:,}, first at step {int(used.argmax()):,}."
    )


def describe_defrag(plan: DefragPlan, *, n_moved: int | None = None) -> str:
    """What the picture of a defrag shows: how many blocks move, how far it is, and where the next one goes."""
    if plan.empty:
        return "Nothing moves: there is no hole among the used cells."
    budget = f"at most {plan.max_moves:,}" if plan.max_moves else "without a limit"
    told = f"{count(len(plan.src), 'cell')} in {count(len(plan.moves), 'block move')}, {budget}"
    if n_moved is None or n_moved >= len(plan.moves):
        return f"{told}; all are made." if n_moved is not None else f"{told}."
    source, destination, length = plan.moves[n_moved].tolist()
    way = f"{cell_run(source, source + length)} to {cell_run(destination, destination + length)}"
    return f"{told}; {n_moved:,} made, the next takes {way}."


def describe_shift(part: PartSnapshot, k_shift: NDArray[np.int32] | None = None) -> str:
    """What the picture of a K-shift shows: which cells move, and by how much."""
    runs = Runs.of(shift_vector(part, k_shift))
    moving = np.flatnonzero(runs.shift)
    word = shift_of(part)[0]
    if not len(moving):
        return f"No {word} is pending." if k_shift is None else "Nothing was shifted."
    told = [f"{cell_run(int(runs.begin[i]), int(runs.end[i]))} by {runs.shift[i]:+,}" for i in moving[:MOST].tolist()]
    begins = f"Pending {word}" if k_shift is None else "Applied shift"
    return f"{begins}: {_listed(told, len(moving), 'more run')}."


def describe_kshift(report: KShiftReport) -> str:
    """What the pictures of one key show: the positions, and how far off the shifted key is."""
    often = f"{count(report.times, 'K-shift')} of {report.k_shift:+,}"
    off = f"differs by up to {report.error:.3g}" if report.error else "is the same"
    key = f"A key of {count(len(report.pairs), 'pair')} at position {report.pos:,} after {often}"
    fresh = f"compared with the key made fresh at position {report.new_pos:,}"
    return f"{key}: {fresh} it {off}, and its length is {report.growth:.3g} times as large."


def _sequences(part: PartSnapshot) -> str:
    """The sequences in the shown cells with their positions there."""
    seqs = owners_of(int(np.bitwise_or.reduce(part.seqs, initial=np.uint64(0))))
    told = []
    for seq in seqs[:MOST]:
        pos = part.pos[(part.seqs >> np.uint64(seq) & np.uint64(1)) == 1]
        told.append(f"sequence {seq} has {_span(int(pos.min()), int(pos.max()))}")
    return f": {_listed(told, len(seqs), 'more sequence')}" if told else ""


def _span(low: int, high: int) -> str:
    return f"positions {low:,} to {high:,}" if high > low else f"position {low:,}"


def _listed(told: Sequence[str], n: int, noun: str) -> str:
    """Some of `n` things, and how many more there are."""
    return joined([*told, count(n - len(told), noun)] if n > len(told) else told)


def _of(some: int, n: int, noun: str) -> str:
    return f"{some:,} of {count(n, noun)}"


def _are(n: int) -> str:
    return "is" if n == 1 else "are"
