"""Speed of the model beside the C++ and beside a plain copy: `python -m tests.benchmarks.model`.

The cache has 131,072 cells of which two sequences fill the first half, once one after the other and once in blocks of
512 tokens in turn. Each figure is the median of several runs from the same state.
"""

from collections.abc import Callable
from copy import deepcopy
from statistics import median
from time import perf_counter

import numpy as np

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.unified import UnifiedCache
from kvmodel.mask import kq_mask
from kvmodel.types import CacheParams

N_CELLS = 131_072
N_SEQ_TOKENS = 32_768
N_UBATCH = 512
RUNS = 15

EDITS: tuple[tuple[str, Callable[[UnifiedCache], object], int], ...] = (
    ("seq_rm, first half of one sequence", lambda cache: cache.seq_rm(0, 0, N_SEQ_TOKENS // 2), 3_263),
    ("seq_rm, second half of one sequence", lambda cache: cache.seq_rm(0, N_SEQ_TOKENS // 2, -1), 3_263),
    ("seq_cp, one whole sequence", lambda cache: cache.seq_cp(0, 2, -1, -1), 6_838),
    ("seq_add, one whole sequence", lambda cache: cache.seq_add(0, -1, -1, 7), 13_759),
    ("seq_div, one whole sequence", lambda cache: cache.seq_div(0, -1, -1, 2), 13_759),
    ("seq_keep, one of two", lambda cache: cache.seq_keep(0), 11_453),
)
"""Edits with the microseconds that the C++ takes (seq_div: those of seq_add, which walks the same cells)."""


def half_full(block: int) -> UnifiedCache:
    """Two sequences in the first half of the cells, `block` tokens at a time in turn."""
    cache = UnifiedCache(CacheParams(N_CELLS, n_seq_max=3))
    runs = [(pos, block, (seq,)) for pos in range(0, N_SEQ_TOKENS, block) for seq in (0, 1)]
    serials = np.arange(2 * N_SEQ_TOKENS, dtype=np.int32)
    cache.apply_ubatch(0, UBatch.plain(Batch.from_runs(runs, token=serials)))
    return cache


def microseconds(action: Callable[[UnifiedCache], object], cache: UnifiedCache) -> float:
    """Median time of an action that keeps all its events; the cache is put back after each run."""
    saved, head = cache.cells.save(0, N_CELLS), cache.head
    times = []
    for _ in range(RUNS):
        cache.emit = [].append
        begin = perf_counter()
        action(cache)
        times.append(perf_counter() - begin)
        cache.cells.restore(saved)
        cache.cells.reset_shift()
        cache.head = head
    return median(times) * 1e6


def store(cache: UnifiedCache) -> UBatch:
    """Find a slot for 512 tokens of sequence 0 on trial, and store them."""
    [ubatch] = [UBatch.plain(Batch.from_runs([(N_SEQ_TOKENS, N_UBATCH, (0,))]))]
    heads = cache.prepare([ubatch])
    assert heads is not None
    cache.apply_ubatch(heads[0], ubatch)
    return ubatch


def mask_of(cache: UnifiedCache, ubatch: UBatch) -> np.ndarray:
    """The float32 mask of a stored ubatch over all cells attention looks at."""
    cells, n_kv = cache.cells, cache.n_kv
    return kq_mask(cells.pos[:n_kv], cells.seqs[:n_kv], ubatch.pos, ubatch.first_seq)


def mask_times(start: UnifiedCache) -> tuple[float, float, float]:
    """Median seconds of the mask alone, of store, events and mask, and of a plain copy of the mask, in turn."""
    times: tuple[list[float], list[float], list[float]] = ([], [], [])
    for _ in range(RUNS):
        cache = deepcopy(start)
        cache.emit = [].append
        begin = perf_counter()
        ubatch = store(cache)
        stored = perf_counter()
        mask = mask_of(cache, ubatch)
        masked = perf_counter()
        copy = mask.copy()
        copied = perf_counter()
        assert copy.shape == (N_UBATCH, N_CELLS // 2 + N_UBATCH)
        del mask, copy
        for kept, seconds in zip(times, (masked - stored, masked - begin, copied - masked), strict=True):
            kept.append(seconds)
    alone, together, copied = (median(kept) for kept in times)
    return alone, together, copied


def main() -> None:
    """Print a row for every edit and layout, then the mask beside a copy."""
    print(f"{'operation':38} {'layout':8} {'here, us':>9} {'C++, us':>9} {'here / C++':>11}")
    layouts = {"halves": half_full(N_SEQ_TOKENS), "blocks": half_full(N_UBATCH)}
    for name, action, reference in EDITS:
        for layout, cache in layouts.items():
            here = microseconds(action, cache)
            print(f"{name:38} {layout:8} {here:9,.0f} {reference:9,} {here / reference:11.3f}")
    for layout, cache in layouts.items():
        print(f"{'prepare and store 512 tokens':38} {layout:8} {microseconds(store, cache):9,.0f}")
    for layout, cache in layouts.items():
        alone, together, copied = mask_times(cache)
        print(f"mask of {N_UBATCH} x {N_CELLS // 2 + N_UBATCH}, {layout}: {alone * 1e3:.1f} ms,", end=" ")
        print(f"{alone / copied:.2f} x a copy ({copied * 1e3:.1f} ms); with store and events {together / copied:.2f} x")


if __name__ == "__main__":
    main()
