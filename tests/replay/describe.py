"""Sizes, state, ubatches and updates of unified caches in the words of a recording."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.caches.base import UpdateInfo
from kvmodel.caches.unified import UnifiedCache
from tests.replay.codec import cell_bytes, cell_runs, index_runs, token_runs, value_runs
from tests.replay.fnv import fnv1a

IDS_MAX = 256
"""Longest defrag plan that a recording spells out."""


def cache_sizes(cache: UnifiedCache) -> dict[str, Any]:
    """Cells, layers and bytes of one cache, for the header record."""
    layers = list(cache.params.layers)
    return {
        "size": cache.size,
        "n_layer": len(layers),
        "layers": layers,
        "size_k_bytes": cache.size_k_bytes,
        "size_v_bytes": cache.size_v_bytes,
        "total_size": cache.total_size,
    }


def cache_state(cache: UnifiedCache, n_seq_max: int) -> dict[str, Any]:
    """Everything a recording keeps of one cache after an operation."""
    cells = cache.cells
    arrays = cells.pos, cells.shift, cells.seqs
    return {
        "head": cache.head,
        "used": cells.used,
        "used_max_p1": cells.used_max_p1,
        "n_kv": cache.n_kv,
        "has_shift": cache.has_shift,
        "hash": fnv1a(cell_bytes(*arrays)),
        "cells": cell_runs(*arrays),
        "pmin": [cache.seq_pos_min(seq) for seq in range(n_seq_max)],
        "pmax": [cache.seq_pos_max(seq) for seq in range(n_seq_max)],
    }


def ubatch_fields(ubatch: UBatch) -> dict[str, Any]:
    """What a ubatch holds, wherever it is stored."""
    return {
        "n_tokens": len(ubatch),
        "equal_seqs": ubatch.equal_seqs,
        "n_seqs": ubatch.n_seqs,
        "n_seq_tokens": ubatch.n_seq_tokens,
        "n_seqs_unq": ubatch.n_seqs_unq,
        "idx": index_runs(ubatch.idx),
        "tokens": token_runs(ubatch.runs),
    }


def update_fields(info: UpdateInfo, k_shift: NDArray[np.int32] | None) -> dict[str, Any]:
    """What an update did to one cache.

    Args:
        info: the update as planned.
        k_shift: int32 [n_cells], the shift handed to the rotation, None if there was none.
    """
    found: dict[str, Any] = {
        "frag": float(info.fragmentation),
        "do_shift": info.do_shift,
        "do_defrag": info.do_defrag,
    }
    if k_shift is not None:
        found["k_shift"] = value_runs(k_shift)
    if info.plan is not None:
        ids = info.plan.ids
        found |= {"n_ids": len(ids), "moves": info.plan.moves.tolist(), "ids_fnv": fnv1a(ids.astype("<u4").tobytes())}
        if len(ids) <= IDS_MAX:
            found["ids"] = ids.tolist()
    return found
