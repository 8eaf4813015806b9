"""What a decode call did around the older caches: ubatch after ubatch, each searched, stored and computed in turn.

Counterpart of `llama_decode_impl`, `llama_prepare_ubatch` and `llama_kv_cache_update_impl` (January 2025). No batch
positions are checked, and a decode that fails at a later ubatch keeps the earlier ones (quirk partial-decode).
"""

import numpy as np

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import Placed
from kvmodel.caches.legacy import MIN_VIEW
from kvmodel.caches.older import OlderCache
from kvmodel.context import FAILED, ContextParams, DecodeResult
from kvmodel.errors import CacheAbort, ParamError, check_int
from kvmodel.events import (
    BatchRefused,
    BatchSplit,
    ComputeFailed,
    Decoded,
    DefragDecided,
    Emit,
    NothingToDo,
    NoUpdate,
    QuirkSeen,
    silent,
)
from kvmodel.limits import INT32_MAX, MAX_BATCH
from kvmodel.split_legacy import SPLITS
from kvmodel.words import count

MAX_NODES = 8_192
"""Smallest graph budget of this generation: max(8192, 5 x model tensors)."""


class LegacyContext:
    """An older cache together with the settings of its context.

    Attributes:
        cache: the cache that decode fills.
        params: the settings; `n_max_nodes` should be 8,192 where nothing else is known.
    """

    def __init__(self, cache: OlderCache, params: ContextParams | None = None, emit: Emit = silent) -> None:
        self.cache = cache
        self.params = params or ContextParams(n_max_nodes=MAX_NODES)
        self.emit = emit

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        """As a program calls it: nothing happens for one and the same sequence (`llama_kv_cache_seq_cp`). Mutates."""
        if src == dst:
            self._nothing("seq_cp", "source and target are one sequence")
        else:
            self.cache.seq_cp(src, dst, p0, p1)

    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        """As a program calls it: nothing happens for a shift of 0 (`llama_kv_cache_seq_add`). Mutates."""
        if shift == 0:
            self._nothing("seq_add", "the shift is 0")
        else:
            self.cache.seq_add(seq, p0, p1, shift)

    def seq_div(self, seq: int, p0: int, p1: int, d: int) -> None:
        """As a program calls it: nothing happens for a divisor of 1 (`llama_kv_cache_seq_div`). Mutates."""
        if d == 1:
            self._nothing("seq_div", "the divisor is 1")
        else:
            self.cache.seq_div(seq, p0, p1, d)

    def _nothing(self, call: str, why: str) -> None:
        self.emit(NothingToDo(call=call, why=why, cache=self.cache.name))

    def defrag(self) -> None:
        """Request a defrag at the next update; recurrent caches ignore it (`llama_kv_cache_defrag`). Mutates."""
        self.cache.defrag()

    def update(self, *, optimize: bool = False, thold: float | None = None, n_max_nodes: int | None = None) -> bool:
        """Apply a pending shift, then a requested defrag (`llama_kv_cache_update`). Mutates.

        Args:
            optimize: request a defrag first.
            thold: request one if the fragmentation is above it, as a decode does at its end.
            n_max_nodes: graph nodes instead of the context's own.

        Returns:
            whether anything was pending.

        Raises:
            CacheAbort: a shift is pending on a cache that cannot shift.
        """
        cache = self.cache
        if optimize:
            self.defrag()
        elif thold is not None:
            self._decide_defrag(thold)
        if not (cache.has_shift or cache.do_defrag):
            self.emit(NoUpdate(cache=cache.name))
            return False
        if cache.has_shift:
            if not cache.can_shift:
                raise CacheAbort("a shift is pending, but this cache does not support it; upstream aborts")
            cache.apply_shift()
        if cache.do_defrag:
            cache.apply_defrag(self.params.n_max_nodes if n_max_nodes is None else n_max_nodes)
        return True

    def decode(
        self,
        batch: Batch,
        *,
        n_ubatch: int | None = None,
        split: str | None = None,
        fail_at: int | None = None,
        fail_with: str = "failed",
        auto_update: bool = True,
    ) -> DecodeResult:
        """Store a batch ubatch by ubatch (`llama_decode_impl`). Mutates.

        Args:
            batch: tokens; missing positions count on from the largest one in the cache, whatever the sequence.
            n_ubatch: instead of the context's own.
            split: simple, equal or seq instead of the cache's own.
            fail_at: ordinal of a ubatch whose computation fails.
            fail_with: how it fails: aborted, alloc_failed or failed.
            auto_update: False leaves a pending shift or defrag pending, which upstream never does.

        Raises:
            CacheAbort: the batch is larger than n_batch, or larger than n_ubatch without causal attention, or a split
                by sequences meets a token without one, where upstream asserts; or a position does not fit.
            ParamError: a sequence id is outside 0..63; upstream takes any.
        """
        n_ubatch = self.params.n_ubatch if n_ubatch is None else check_int("n_ubatch", n_ubatch, 1, MAX_BATCH)
        split = split or self.cache.split
        for field, value, allowed in (("split", split, SPLITS), ("fail_with", fail_with, FAILED)):
            if value not in allowed:
                raise ParamError(field, value, ", ".join(allowed))
        if not len(batch):
            return self._refused()
        self._check(batch, n_ubatch, split)
        ubatches = SPLITS[split](self._completed(batch), n_ubatch)
        self.emit(BatchSplit(how=split, sizes=tuple(map(len, ubatches)), n_ubatch=n_ubatch, cache=self.cache.name))
        return self._done(self._run(ubatches, fail_at, FAILED[fail_with], auto_update), len(batch))

    def _refused(self) -> DecodeResult:
        message = "the batch has no tokens; at least 1 is needed"
        self.emit(BatchRefused(kind="empty", message=message))
        return self._done(DecodeResult(-1, message=message), 0)

    def _check(self, batch: Batch, n_ubatch: int, split: str) -> None:
        n_tokens, most = len(batch), self.params.n_batch
        if n_tokens > most:
            raise CacheAbort(f"the batch has {n_tokens} tokens; allowed: n_batch = {most} at most")
        if not self.params.causal_attn and n_tokens > n_ubatch:
            raise CacheAbort(
                f"the batch has {n_tokens} tokens; allowed without causal attention: n_ubatch = {n_ubatch} at most"
            )
        if split != "simple" and not batch.n_seq_id.all():
            at = int(batch.n_seq_id.argmin())
            raise CacheAbort(f"token {at} has no sequence id; allowed in a split by sequences: at least one")

    def _completed(self, batch: Batch) -> Batch:
        if batch.pos is not None:
            return batch
        first = self.cache.max_pos + 1
        last = first + len(batch) - 1
        if last > INT32_MAX:
            raise CacheAbort(f"the batch would continue to position {last}; allowed: up to {INT32_MAX}")
        pos = np.arange(first, last + 1, dtype=np.int32)
        return Batch(pos, batch.seq_id, batch.n_seq_id, batch.token, batch.embd)

    def _run(self, ubatches: list[UBatch], fail_at: int | None, fail_ret: int, auto_update: bool) -> DecodeResult:
        cache = self.cache
        start = Placed(cache.head, cache.n)
        placed: list[dict[str, Placed]] = []
        slots: list[tuple[int, int]] = []
        for i, ubatch in enumerate(ubatches):
            if auto_update and (cache.has_shift or cache.do_defrag):
                self.update()
            before = Placed(cache.head, cache.n)
            search = cache.find_slot(ubatch, i, in_decode=True)
            if not search.found:
                return self._no_slot(ubatches, placed)
            cache.set_inputs()
            slots.append((search.cell, search.cell + len(ubatch)))
            placed.append({cache.name: Placed(search.cell, cache.n)})
            cache.finish(ubatch, i, before, advance=i != fail_at)
            if i == fail_at:
                self.emit(ComputeFailed(ubatch=i, ret=fail_ret, removed=()))
                cache.restore(start, slots)
                return DecodeResult(fail_ret, tuple(ubatches[: i + 1]), tuple(placed))
        if self.params.causal_attn and self.params.defrag_thold >= 0:
            self._decide_defrag(self.params.defrag_thold)
        return DecodeResult(0, tuple(ubatches), tuple(placed))

    def _no_slot(self, ubatches: list[UBatch], placed: list[dict[str, Placed]]) -> DecodeResult:
        if placed:
            detail = f"the ubatch without a slot leaves {count(len(placed), 'ubatch')} before it in the cache"
            self.emit(QuirkSeen(quirk="partial-decode", detail=detail, cache=self.cache.name))
        return DecodeResult(1, tuple(ubatches[: len(placed)]), tuple(placed))

    def _decide_defrag(self, thold: float) -> None:
        """Request a defrag if the share of unused cells is above the threshold."""
        cache, frag = self.cache, self.cache.fragmentation
        do_defrag = bool(frag > np.float32(thold))
        why = "threshold" if do_defrag else "below" if cache.n >= MIN_VIEW else "few"
        self.emit(DefragDecided(do_defrag=do_defrag, why=why, fragmentation=frag, thold=thold, cache=cache.name))
        if do_defrag:
            cache.defrag()

    def _done(self, result: DecodeResult, n_tokens: int) -> DecodeResult:
        self.emit(Decoded(ret=result.ret, n_tokens=n_tokens))
        return result
