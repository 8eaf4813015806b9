"""What a decode call did: the batch, its slots, what was stored, what failed."""

import numpy as np
from numpy.typing import NDArray

from kvmodel.events import (
    BatchChecked,
    BatchRefused,
    BatchSplit,
    CellsOverwritten,
    ComputeFailed,
    Decoded,
    PositionsPurged,
    PrepareFailed,
    QuirkSeen,
    Retried,
    SlotSearched,
    UBatchStored,
)
from kvmodel.explain.sentence import head_words, sentence
from kvmodel.explain.slots import search_sentence
from kvmodel.words import cell_run, cells, count, joined, lower_first, positions, upper_first

RETURNED = {
    0: "done",
    1: "there is no slot",
    2: "the computation was aborted",
    -1: "the batch was refused, nothing was stored",
    -2: "there was no memory for the computation",
    -3: "the computation failed",
}
"""What the return codes of `llama_decode` mean."""

MOST_SEQUENCES = 8
"""Sequences of a batch that a sentence names before it only counts the rest."""

SPLIT = {"simple": "in token order", "equal": "into equally long sequence sets", "seq": "by sequence set"}


@sentence.register
def _(event: BatchChecked) -> str:
    told = [f"sequence {seq} at {positions(first, last + 1)}" for seq, first, last in event.spans[:MOST_SEQUENCES]]
    rest = len(event.spans) - len(told)
    spans = joined([*told, count(rest, "more sequence")] if rest else told)
    how = ", continued from the cache" if event.generated_pos else ""
    return f"The batch of {count(event.n_tokens, 'token')} was accepted: {spans}{how}."


@sentence.register
def _(event: BatchRefused) -> str:
    return f"The batch was refused: {event.message}."


@sentence.register
def _(event: BatchSplit) -> str:
    if len(event.sizes) == 1:
        return f"The batch is one ubatch of {count(event.sizes[0], 'token')} (at most {event.n_ubatch:,})."
    return (
        f"The batch was split {SPLIT[event.how]} into {count(len(event.sizes), 'ubatch')} of"
        f" {_repeated(event.sizes)} tokens (at most {event.n_ubatch:,} each)."
    )


def _repeated(sizes: tuple[int, ...]) -> str:
    """Sizes in order, equal neighbours counted: 3 x 16 and 4."""
    values = np.asarray(sizes)
    begins = np.flatnonzero(np.diff(values, prepend=values[0] - 1))
    lengths = np.diff(begins, append=len(values))
    parts = [f"{n:,} x {size:,}" if n > 1 else f"{size:,}" for n, size in zip(lengths, values[begins], strict=True)]
    return joined(parts if len(parts) <= 4 else [*parts[:3], f"{len(sizes) - int(lengths[:3].sum()):,} more"])


@sentence.register
def _(event: SlotSearched) -> str:
    return f"Ubatch {event.ubatch}: {lower_first(search_sentence(event.search))}"


@sentence.register
def _(event: PrepareFailed) -> str:
    before = f"; what was placed on trial before it ({event.n_placed:,}) was taken back" if event.n_placed else ""
    return f"There is no slot for ubatch {event.ubatch} of {event.n_ubatches:,}{before}, so nothing is stored."


@sentence.register
def _(event: CellsOverwritten) -> str:
    lost = joined(f"{_span(event.pos[event.seqs == seq])} of sequence {seq}" for seq in np.unique(event.seqs).tolist())
    return f"New tokens overwrite {cells(event.cells)} that no later query can see: {lost}."


def _span(values: NDArray[np.int32]) -> str:
    return positions(int(values.min()), int(values.max()) + 1)


@sentence.register
def _(event: PositionsPurged) -> str:
    lost = upper_first(positions(event.p0, event.p1))
    trial = " during the trial" if event.trial else ""
    return (
        f"{lost} of sequence {event.seq} went{trial}: a newer one was overwritten, and a sequence keeps no gaps;"
        f" {cells(event.cells)} lost it."
    )


@sentence.register
def _(event: UBatchStored) -> str:
    return (
        f"Ubatch {event.ubatch} ({count(len(event.stored), 'token')}) is stored in {cell_run(event.begin, event.end)};"
        f" {head_words(event.head_before, event.head)}, {_view(event.n_kv_before, event.n_kv)}."
    )


def _view(before: int, now: int) -> str:
    return f"n_kv stays {now:,}" if now == before else f"n_kv {'grows' if now > before else 'falls'} to {now:,}"


@sentence.register
def _(event: Retried) -> str:
    if event.again:
        return "After the failure the cache was updated with a defrag, which changed it: slots are sought once more."
    return "After the failure an update with a defrag found nothing to change, so the decode gives up."


@sentence.register
def _(event: ComputeFailed) -> str:
    failed = f"Computing ubatch {event.ubatch} failed with return code {event.ret}"
    if not event.removed:
        return f"{failed}; what follows is the roll-back of the whole decode."
    removed = joined([f"sequence {seq} from position {start} on" for seq, start in event.removed])
    return f"{failed}; removed: {removed}."


@sentence.register
def _(event: Decoded) -> str:
    return f"Decoding {count(event.n_tokens, 'token')} returned {event.ret}: {RETURNED.get(event.ret, 'failed')}."


@sentence.register
def _(event: QuirkSeen) -> str:
    return f"Quirk {event.quirk}: {event.detail}."
