"""Tokens through one attention layer whose K and V live in a cache: `llama_decode` for a model of one layer.

The decoder listens to its cache: whenever a ubatch is stored, it puts keys and values into the cells of the slot and
computes attention over the cells in view, as upstream runs its graph at that moment.
"""

import numpy as np

from kvmodel.attention import AttentionLayer, Float32, attend
from kvmodel.batch import Batch
from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.unified import UnifiedCache
from kvmodel.cells import EMPTY, Index
from kvmodel.context import Context, ContextLike, ContextParams, DecodeResult
from kvmodel.context_legacy import LegacyContext
from kvmodel.errors import ParamError
from kvmodel.events import Emit, Event, UBatchStored
from kvmodel.mask import kq_mask
from kvmodel.rotation import Behaviour, Rotation
from kvmodel.tensors import Tensors


class Decoder:
    """A layer, a cache with tensors, and a context around it.

    The serial number that a batch gives a token (`Batch.token`) is its entry in the layer's vocabulary.

    Attributes:
        layer: the weights.
        cache: the cells with their K and V; its sequence calls are used as they are.
        context: what decodes into the cache and updates it.

    Raises:
        ParamError: the cache is made for other heads than the layer has, or for several layers.
    """

    def __init__(
        self,
        layer: AttentionLayer,
        cache: UnifiedCache | LegacyCache,
        *,
        shift_sign: Behaviour = "upstream",
        magnitude: Behaviour = "upstream",
        params: ContextParams | None = None,
    ) -> None:
        _check_fit(layer, cache)
        cache.attach(Rotation(layer.rope, shift_sign, magnitude))
        self.layer, self.cache = layer, cache
        self._told, cache.emit = cache.emit, self._take
        self.context = _context(cache, params, self._told)
        self._outputs = np.empty((0, layer.n_embd_out), np.float32)

    def decode(self, batch: Batch, *, n_ubatch: int | None = None) -> tuple[DecodeResult, Float32]:
        """Store a batch and compute its outputs. Mutates the cache.

        Args:
            batch: tokens with serial numbers of the vocabulary.
            n_ubatch: instead of the context's own.

        Returns:
            what the context gave back, and float32 [n, n_embd_out] in the order of the batch; a row is NaN where
            nothing was computed.
        """
        self._outputs = np.full((len(batch), self.layer.n_embd_out), np.nan, np.float32)
        return self.context.decode(batch, n_ubatch=n_ubatch), self._outputs

    def _take(self, event: Event) -> None:
        if isinstance(event, UBatchStored):
            self._compute(event)
        self._told(event)

    def _compute(self, stored: UBatchStored) -> None:
        layer, cells, p, ubatch = self.layer, self.cache.cells, self.cache.params, stored.stored
        keys, values = layer.keys(ubatch.token, ubatch.pos), layer.values(ubatch.token)
        self._tensors.store(0, stored.begin, keys.reshape(len(ubatch), -1), values.reshape(len(ubatch), -1))
        seen = slice(0, stored.n_kv)
        view = cells.pos[seen], cells.seqs[seen], ubatch.pos, ubatch.first_seq
        mask = kq_mask(*view, swa_type=p.swa_type, n_swa=p.n_swa)[: len(ubatch)]
        q = layer.queries(ubatch.token, ubatch.pos)
        self._outputs[ubatch.idx] = attend(q, self.keys(seen), self.values(seen), mask)

    @property
    def _tensors(self) -> Tensors:
        if self.cache.tensors is None:
            raise ParamError("tensors", None, "the tensors that the decoder attached to its cache")
        return self.cache.tensors

    def keys(self, cells: Index | slice) -> Float32:
        """The keys that cells hold, float32 [n, n_head_kv, n_embd_head]."""
        return self._heads(self._tensors.k_values(0, cells))

    def values(self, cells: Index | slice) -> Float32:
        """The values that cells hold, float32 [n, n_head_kv, n_embd_head]."""
        return self._heads(self._tensors.v_values(0, cells))

    def _heads(self, rows: Float32) -> Float32:
        return rows.reshape(len(rows), self.layer.n_head_kv, self.layer.n_embd_head)

    @property
    def used(self) -> Index:
        """The cells that hold a token, ascending."""
        return np.flatnonzero(self.cache.cells.pos != EMPTY)

    def fresh_keys(self, cells: Index) -> Float32:
        """The keys that the tokens of `cells` would get at their positions now, float32, shape as `keys`."""
        held = self.cache.cells
        return self.layer.keys(held.token[cells], held.pos[cells])

    def key_errors(self) -> Float32:
        """The largest difference between the stored and the fresh key of every used cell, float32 [n used]."""
        difference = np.abs(self.keys(self.used) - self.fresh_keys(self.used))
        largest: Float32 = difference.max(axis=(1, 2), initial=0)
        return largest


def _context(cache: UnifiedCache | LegacyCache, params: ContextParams | None, emit: Emit) -> ContextLike:
    if isinstance(cache, UnifiedCache):
        return Context(cache, params, emit)
    return LegacyContext(cache, params, emit)


def _check_fit(layer: AttentionLayer, cache: UnifiedCache | LegacyCache) -> None:
    p = cache.params
    wanted = {"n_layer": 1, "n_embd_head_k": layer.n_embd_head, "n_embd_head_v": layer.n_embd_head}
    for name, value in wanted.items():
        if getattr(p, name) != value:
            raise ParamError(name, getattr(p, name), f"{value}, as the layer has")
    if p.heads != (layer.n_head_kv,):
        raise ParamError("n_head_kv", p.heads[0], f"{layer.n_head_kv}, as the layer has")
