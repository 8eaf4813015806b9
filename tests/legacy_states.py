"""The state of the older cache and of its slow reference, in the same words."""

from collections.abc import Sequence

from kvmodel.caches.legacy import LegacyCache
from tests.reference.legacy import RefLegacy


def cells_of(cache: RefLegacy) -> list[tuple[int, frozenset[int]]]:
    return [(pos, frozenset(seqs)) for pos, seqs in zip(cache.cells.pos, cache.cells.seqs, strict=True)]


def state_of(cache: LegacyCache, seqs: Sequence[int]) -> dict[str, object]:
    cells = cache.cells
    return {
        "pos": cells.pos.tolist(),
        "delta": cells.delta.tolist(),
        "seqs": cells.seqs.tolist(),
        "token": cells.token.tolist(),
        "head": cache.head,
        "used": cache.used,
        "n": cache.n,
        "has_shift": cache.has_shift,
        "do_defrag": cache.do_defrag,
        "cell_max": cache.cell_max,
        "max_pos": cache.max_pos,
        "pos_max": [cache.seq_pos_max(seq) for seq in seqs],
    }


def reference_state(cache: RefLegacy, seqs: Sequence[int]) -> dict[str, object]:
    cells = cache.cells
    return {
        "pos": cells.pos,
        "delta": cells.delta,
        "seqs": [sum(1 << seq for seq in owners) for owners in cells.seqs],
        "token": cells.serial,
        "head": cache.head,
        "used": cache.used,
        "n": cache.n,
        "has_shift": cache.has_shift,
        "do_defrag": cache.do_defrag,
        "cell_max": cache.cell_max(),
        "max_pos": cache.max_pos(),
        "pos_max": [cache.seq_pos_max(seq) for seq in seqs],
    }
