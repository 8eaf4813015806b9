"""Where more cells can come from: freed ones, fewer sequences at once, a larger cache."""

from collections.abc import Iterator

import numpy as np

from kvmodel.advice.remedy import Failure, Remedy
from kvmodel.ops import Decode, SeqRm
from kvmodel.spans import members, union
from kvmodel.types import pad
from kvmodel.words import count

MOST_SEQUENCES = 4
"""Sequences that are tried for leaving."""


def free_cells(missing: int) -> str:
    """How to come by that many cells."""
    return (
        f"Free {count(missing, 'more cell')}: remove a sequence that is done (seq_rm), or drop old positions of one"
        " and shift the rest (seq_rm, then seq_add)."
    )


def fewer_sequences(failure: Failure, name: str, missing: int) -> Iterator[Remedy]:
    """Sequences that are not in the batch, and would make room if they were not served at the same time.

    Those that have just enough cells for themselves come first.
    """
    part = failure.timeline.cursor().seek(failure.timeline.frame_of(failure.step - 1)).parts[name]
    asking = {seq for run in failure.batch.tokens for seq in run.seq}
    alone = {seq: int(np.count_nonzero(part.seqs == np.uint64(1 << seq))) for seq in members(union(part.seqs))}
    enough = sorted((n, seq) for seq, n in alone.items() if seq not in asking and n >= max(missing, 1))
    for n, seq in enough[:MOST_SEQUENCES]:
        words = f"Serve fewer sequences at once: without sequence {seq}, which has {count(n, 'cell')} for itself"
        yield Remedy(f"{words}, the batch fits.", failure.instead(failure.batch, SeqRm(seq=seq)))


def larger_caches(failure: Failure, missing: int, padding: int, *, swa_full: bool = False) -> Iterator[Remedy]:
    """Larger caches, each one tried only if those before it do not do.

    The last one has a cell for every token that was sent, those of earlier batches in vain included.

    Args:
        failure: the step.
        missing: by how many cells the cache is too small, as far as its free cells tell.
        padding: the size is a multiple of it.
        swa_full: of a pair, whose window half grows along.
    """
    scenario = failure.timeline.scenario
    sent = [sum(run.n for run in op.tokens) for op in scenario.ops[: failure.step] if isinstance(op, Decode)]
    also, full = (" and set swa_full", {"swa_full": True}) if swa_full else ("", {})
    for more in (max(missing, 1), sent[-1], sum(sent)):
        enough = pad(scenario.cache.kv_size + more, padding)
        words = f"Make the cache larger{also}: with kv_size {enough:,} the whole batch fits."
        yield Remedy(words, failure.configured("cache", kv_size=enough, **full))
