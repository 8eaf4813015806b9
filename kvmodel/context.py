"""What a decode call does around the cache: checks, pending updates, the split, one retry, return codes.

Counterpart of `llama_context::decode` and `kv_self_update` in llama-context.cpp (mid-2025).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import Cache, MemoryStatus, Placed, PreparedBatch, Sequences
from kvmodel.checks import check, complete
from kvmodel.errors import BatchError, CacheAbort, ParamError, check_int
from kvmodel.events import (
    BatchChecked,
    BatchRefused,
    ComputeFailed,
    Decoded,
    Emit,
    NoUpdate,
    Retried,
    silent,
)
from kvmodel.limits import MAX_BATCH

MAX_NODES = 65_536
"""Smallest graph budget upstream takes: max(65536, 5 x model tensors)."""

FAILED = {"aborted": 2, "alloc_failed": -2, "failed": -3}
"""Return codes of a failed computation, by ggml status."""


@dataclass(frozen=True)
class ContextParams:
    """The settings of a context that concern its cache (`llama_cparams`).

    Attributes:
        n_batch: most tokens of one decode call.
        n_ubatch: most tokens of one ubatch.
        defrag_thold: fragmentation above which a decode defragments first; 0 or less never.
        n_max_nodes: graph nodes a defrag may use.
        causal_attn: queries see no later positions.
    """

    n_batch: int = 2048
    n_ubatch: int = 512
    defrag_thold: float = -1.0
    n_max_nodes: int = MAX_NODES
    causal_attn: bool = True

    def __post_init__(self) -> None:
        check_int("n_batch", self.n_batch, 1, MAX_BATCH)
        check_int("n_ubatch", self.n_ubatch, 1, MAX_BATCH)
        check_int("n_max_nodes", self.n_max_nodes, 0, 2**31 - 1)
        if not np.isfinite(self.defrag_thold):
            raise ParamError("defrag_thold", self.defrag_thold, "a finite number; 0 or less turns it off")


@dataclass(frozen=True, eq=False)
class DecodeResult:
    """What a decode call gave back.

    Attributes:
        ret: 0 done, 1 no slot, -1 refused, 2, -2 or -3 failed while computing.
        ubatches: those that were stored, in order.
        placed: for each of them where every cache put it.
        message: why it was refused, empty otherwise.
    """

    ret: int
    ubatches: tuple[UBatch, ...] = ()
    placed: tuple[dict[str, Placed], ...] = ()
    message: str = ""


class ContextLike(Protocol):
    """What a context of any generation does around its cache."""

    @property
    def cache(self) -> Sequences:
        """The cache that decode fills."""
        ...

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        """As a program calls it. Mutates."""
        ...

    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        """As a program calls it. Mutates."""
        ...

    def seq_div(self, seq: int, p0: int, p1: int, d: int) -> None:
        """As a program calls it. Mutates."""
        ...

    def decode(
        self, batch: Batch, *, n_ubatch: int | None = None, fail_at: int | None = None, fail_with: str = "failed"
    ) -> DecodeResult:
        """Store a batch as a decode call does. Mutates."""
        ...

    def update(self, *, optimize: bool = False, thold: float | None = None, n_max_nodes: int | None = None) -> bool:
        """Apply what is pending; tell whether anything was done. Mutates."""
        ...

    def defrag(self) -> None:
        """Ask for a defrag at the next update."""
        ...


class Context:
    """A cache together with the settings of its context.

    Attributes:
        cache: the memory that decode fills.
        params: the settings.
    """

    def __init__(self, cache: Cache, params: ContextParams | None = None, emit: Emit = silent) -> None:
        self.cache = cache
        self.params = params or ContextParams()
        self.emit = emit
        self._force_optimize = False

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        """As a program calls it: the cache itself decides (`llama_kv_self_seq_cp`). Mutates."""
        self.cache.seq_cp(src, dst, p0, p1)

    def seq_add(self, seq: int, p0: int, p1: int, shift: int) -> None:
        """As a program calls it: the cache itself decides (`llama_kv_self_seq_add`). Mutates."""
        self.cache.seq_add(seq, p0, p1, shift)

    def seq_div(self, seq: int, p0: int, p1: int, d: int) -> None:
        """As a program calls it: the cache itself decides (`llama_kv_self_seq_div`). Mutates."""
        self.cache.seq_div(seq, p0, p1, d)

    def defrag(self) -> None:
        """Ask for a defrag at the next update (`llama_kv_self_defrag`)."""
        self._force_optimize = True

    def update(self, *, optimize: bool = False, thold: float | None = None, n_max_nodes: int | None = None) -> bool:
        """Apply pending shifts and a defrag if one is due (`llama_kv_self_update`). Mutates.

        Args:
            optimize: defragment whatever the threshold says.
            thold: fragmentation threshold instead of the context's own.
            n_max_nodes: graph nodes instead of the context's own.

        Returns:
            whether anything was done.
        """
        done = self._update(optimize, thold, n_max_nodes)
        if not done:
            self.emit(NoUpdate())
        return done

    def _update(self, optimize: bool = False, thold: float | None = None, n_max_nodes: int | None = None) -> bool:
        optimize, self._force_optimize = optimize or self._force_optimize, False
        prepared = self.cache.init_update(
            optimize=optimize,
            thold=self.params.defrag_thold if thold is None else thold,
            n_max_nodes=self.params.n_max_nodes if n_max_nodes is None else n_max_nodes,
        )
        if prepared.status is MemoryStatus.NO_UPDATE:
            return False
        self.cache.update(prepared)
        return True

    def decode(
        self, batch: Batch, *, n_ubatch: int | None = None, fail_at: int | None = None, fail_with: str = "failed"
    ) -> DecodeResult:
        """Store a batch as a decode call does. Mutates.

        Args:
            batch: tokens; missing positions continue each sequence.
            n_ubatch: instead of the context's own.
            fail_at: ordinal of a ubatch whose computation fails.
            fail_with: how it fails: aborted, alloc_failed or failed.

        Raises:
            CacheAbort: the batch is larger than n_batch, or larger than n_ubatch without causal attention;
                upstream asserts.
        """
        n_ubatch = self.params.n_ubatch if n_ubatch is None else check_int("n_ubatch", n_ubatch, 1, MAX_BATCH)
        if fail_with not in FAILED:
            raise ParamError("fail_with", fail_with, ", ".join(FAILED))
        try:
            ready = self._checked(batch)
        except BatchError as refusal:
            return self._refused(refusal, len(batch))
        self._assert_sizes(len(batch), n_ubatch)
        self._update()
        prepared = self._prepared(ready, n_ubatch)
        if prepared.status is not MemoryStatus.SUCCESS:
            return self._done(DecodeResult(1), len(batch))
        return self._done(self._store(prepared, fail_at, FAILED[fail_with]), len(batch))

    def _checked(self, batch: Batch) -> Batch:
        cache = self.cache
        ready = complete(batch, cache.seq_pos_max)
        check(ready, cache.seq_pos_min, cache.seq_pos_max)
        self.emit(BatchChecked(n_tokens=len(batch), spans=_spans(ready), generated_pos=batch.pos is None))
        return ready

    def _refused(self, refusal: BatchError, n_tokens: int) -> DecodeResult:
        self.emit(
            BatchRefused(
                kind=refusal.kind,
                message=str(refusal),
                seq=refusal.seq,
                stored=refusal.stored,
                start=refusal.start,
            )
        )
        return self._done(DecodeResult(-1, message=str(refusal)), n_tokens)

    def _assert_sizes(self, n_tokens: int, n_ubatch: int) -> None:
        if n_tokens > self.params.n_batch:
            raise CacheAbort(f"the batch has {n_tokens} tokens; allowed: n_batch = {self.params.n_batch} at most")
        if not self.params.causal_attn and n_tokens > n_ubatch:
            raise CacheAbort(
                f"the batch has {n_tokens} tokens; allowed without causal attention: n_ubatch = {n_ubatch} at most"
            )

    def _prepared(self, batch: Batch, n_ubatch: int) -> PreparedBatch:
        """Slots for all ubatches; after a failure once more if a defrag changed the cache."""
        prepared = self.cache.init_batch(batch, n_ubatch)
        if prepared.status is MemoryStatus.SUCCESS:
            return prepared
        again = self._update(optimize=True)
        self.emit(Retried(again=again))
        return self.cache.init_batch(batch, n_ubatch) if again else prepared

    def _store(self, prepared: PreparedBatch, fail_at: int | None, fail_ret: int) -> DecodeResult:
        placed: list[dict[str, Placed]] = []
        for i, ubatch in enumerate(prepared.ubatches):
            placed.append(self.cache.apply(prepared, i))
            if i == fail_at:
                self._roll_back(ubatch, i, fail_ret)
                return DecodeResult(fail_ret, prepared.ubatches[: i + 1], tuple(placed))
        return DecodeResult(0, prepared.ubatches, tuple(placed))

    def _roll_back(self, ubatch: UBatch, number: int, ret: int) -> None:
        """Remove every sequence of a failed ubatch from its smallest position there on."""
        first = ubatch.first_seq
        starts = [(seq, int(ubatch.pos[first == seq].min())) for seq in np.unique(first[first >= 0]).tolist()]
        for seq, start in starts:
            self.cache.seq_rm(seq, start, -1)
        self.emit(ComputeFailed(ubatch=number, ret=ret, removed=tuple(starts)))

    def _done(self, result: DecodeResult, n_tokens: int) -> DecodeResult:
        self.emit(Decoded(ret=result.ret, n_tokens=n_tokens))
        return result


def _spans(batch: Batch) -> tuple[tuple[int, int, int], ...]:
    """First and last new position of every sequence."""
    spans = []
    for seq in np.unique(batch.seq_id[batch.seq_id >= 0]).tolist():
        pos = batch.positions[(batch.seq_id == seq).any(axis=1)]
        spans.append((seq, int(pos.min()), int(pos.max())))
    return tuple(spans)
