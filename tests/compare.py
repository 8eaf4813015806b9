"""Holding the arrays against the literal reference."""

from collections.abc import Iterable

import numpy as np

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.unified import UnifiedCache
from kvmodel.checks import check, complete
from kvmodel.errors import BatchError
from kvmodel.limits import MAX_SEQ
from kvmodel.mask import MaskReason, kq_mask, mask_reasons, pos_buckets
from kvmodel.slots import Blocked, SlotSearch
from tests.reference import RefCache, Refusal, Search, Token, bucket, mask_value, why_hidden
from tests.reference.slots import failure_figures

N_BUCKETS = 32


def batch_of(tokens: list[Token], *, embd: bool = False, auto_pos: bool = False) -> Batch:
    """The same tokens as arrays."""
    runs = [(0 if token.pos is None else token.pos, 1, token.seqs) for token in tokens]
    return Batch.from_runs(runs, token=[token.serial for token in tokens], embd=embd, auto_pos=auto_pos)


def tokens_of(ubatch: UBatch) -> list[Token]:
    """The tokens of a ubatch one by one."""
    rows = zip(
        ubatch.pos.tolist(), ubatch.seq_id.tolist(), ubatch.n_seq_id.tolist(), ubatch.token.tolist(), strict=True
    )
    return [Token(pos, tuple(seqs[:n]), serial) for pos, seqs, n, serial in rows]


def state_of(cache: UnifiedCache) -> dict[str, object]:
    cells = cache.cells
    return {
        "pos": cells.pos.tolist(),
        "shift": cells.shift.tolist(),
        "seqs": cells.seqs.tolist(),
        "token": cells.token.tolist(),
        "head": cache.head,
        "used": cells.used,
        "used_max_p1": cells.used_max_p1,
        "n_kv": cache.n_kv,
        "has_shift": cache.has_shift,
        "k_shift": cache.k_shift.tolist(),
        "pos_min": [cache.seq_pos_min(seq) for seq in range(MAX_SEQ)],
        "pos_max": [cache.seq_pos_max(seq) for seq in range(MAX_SEQ)],
    }


def reference_state(cache: RefCache) -> dict[str, object]:
    cells = cache.cells
    return {
        "pos": cells.pos,
        "shift": cells.shift,
        "seqs": [sum(1 << seq for seq in owners) for owners in cells.seqs],
        "token": cells.serial,
        "head": cache.head,
        "used": len(cells.used),
        "used_max_p1": cells.used_max_p1(),
        "n_kv": cache.n_kv,
        "has_shift": cells.has_shift,
        "k_shift": cache.k_shift(),
        "pos_min": [cells.pos_min(seq) for seq in range(MAX_SEQ)],
        "pos_max": [cells.pos_max(seq) for seq in range(MAX_SEQ)],
    }


def checked(cache: UnifiedCache, batch: Batch) -> Batch | Refusal:
    """The completed batch, or why it is refused."""
    try:
        batch = complete(batch, cache.seq_pos_max)
        check(batch, cache.seq_pos_min, cache.seq_pos_max)
    except BatchError as error:
        return Refusal(error.kind, error.seq, error.stored, error.start)
    return batch


def probes_of(search: SlotSearch) -> list[tuple[int, int, str]]:
    """Every refused run as first cell, the cell that stopped it, and why."""
    reasons = [Blocked(code).name.lower() for code in search.probe_reason.tolist()]
    return list(zip(search.probe_start.tolist(), search.probe_end.tolist(), reasons, strict=True))


def search_of(search: SlotSearch) -> Search:
    """Start, result, every refused run and the cells tested, as the reference gives them."""
    return Search(search.start, search.cell, probes_of(search), search.n_tested)


def check_failure(search: SlotSearch, reference: RefCache) -> None:
    """The figures of a search that found nothing agree with a count over all cells."""
    figures = (search.free, search.reusable, search.longest, search.longest_start)
    if search.found or search.too_many:
        assert figures == (-1, -1, -1, -1)
    else:
        assert figures == failure_figures(reference.cells, reference.params.window)


def check_masks(cache: UnifiedCache, reference: RefCache, queries: Iterable[tuple[int, int]]) -> None:
    """Masks, reasons and buckets of queries (position, sequence) agree at every cell of the view."""
    pos, seq = (np.array(column, np.int32) for column in zip(*queries, strict=True))
    window = {"swa_type": cache.params.swa_type, "n_swa": cache.params.n_swa}
    n_kv, cells = cache.n_kv, reference.cells
    view = cache.cells.pos[:n_kv], cache.cells.seqs[:n_kv]
    for causal in (True, False):
        why = [
            [why_hidden(cells, i, p, s, reference.params.window, causal) for i in range(n_kv)]
            for p, s in zip(pos.tolist(), seq.tolist(), strict=True)
        ]
        codes = mask_reasons(*view, pos, seq, causal=causal, padding=True, **window)
        assert codes[: len(pos)].tolist() == [[MaskReason[name.upper()] for name in row] for row in why]
        assert (codes[len(pos) :] == MaskReason.PADDING).all()
        for alibi in (False, True):
            mask = kq_mask(*view, pos, seq, causal=causal, use_alibi=alibi, **window)
            expected = [
                [mask_value(cells, i, p, row[i], alibi) for i in range(n_kv)]
                for p, row in zip(pos.tolist(), why, strict=True)
            ]
            assert mask[: len(pos)].tolist() == expected
            assert (mask[len(pos) :] == -np.inf).all()
            assert len(mask) % 64 == 0
    buckets = [[bucket(cells.pos[i], p, N_BUCKETS) for i in range(n_kv)] for p in pos.tolist()]
    assert pos_buckets(view[0], pos, N_BUCKETS).tolist() == buckets
