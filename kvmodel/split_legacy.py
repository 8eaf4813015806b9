"""The splits of the older generation, which sorts the batch first.

Counterpart of `llama_sbatch` in llama-batch.cpp (January 2025).
"""

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import Batch, UBatch
from kvmodel.split import Split, split_simple

Rows = NDArray[np.int32]


def split_equal(batch: Batch, n_ubatch: int) -> list[UBatch]:
    """Groups of one id list, equally many tokens each, the shortest first.

    A group with several ids is never joined by a following one; the first group taken fixes the length.
    """
    groups = _groups(batch)
    ubatches = []
    while groups:
        left = sum(map(len, groups))
        taken = _equal_rows(groups, batch.n_seq_id, min(left, n_ubatch))
        ubatches.append(UBatch.of(batch, np.concatenate(taken), len(taken), True))
        while groups and not len(groups[-1]):
            groups.pop()
    return ubatches


def split_seq(batch: Batch, n_ubatch: int) -> list[UBatch]:
    """One group of one id list at a time, the last group first."""
    return [
        UBatch.of(batch, group[at : at + n_ubatch], 1, True)
        for group in reversed(_groups(batch))
        for at in range(0, len(group), n_ubatch)
    ]


def _equal_rows(groups: list[Rows], n_seq_id: Rows, room: int) -> list[Rows]:
    """Take equally many tokens from the last groups on; shortens the groups in place."""
    taken: list[Rows] = []
    length = min(len(groups[-1]), room)
    for i in range(len(groups) - 1, -1, -1):
        rows, groups[i] = groups[i][:length], groups[i][length:]
        taken.append(rows)
        if n_seq_id[rows[0]] > 1 or (len(taken) + 1) * length > room:
            break
    return taken


def _groups(batch: Batch) -> list[Rows]:
    """Tokens by id list: sorted by more ids, ids and position; groups by fewer ids, then longer first."""
    ids = batch.seq_id.T[::-1]
    order = np.lexsort((batch.positions, *ids, -batch.n_seq_id)).astype(np.int32)
    key = np.column_stack([batch.n_seq_id, batch.seq_id])[order]
    cuts = np.flatnonzero((key[1:] != key[:-1]).any(axis=1)) + 1
    groups = [rows for rows in np.split(order, cuts) if len(rows)]
    return sorted(groups, key=lambda rows: (batch.n_seq_id[rows[0]], -len(rows)))


SPLITS: dict[str, Split] = {"simple": split_simple, "equal": split_equal, "seq": split_seq}
"""The splits of this generation by name."""
