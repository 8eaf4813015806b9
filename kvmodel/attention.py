"""One small attention layer in NumPy: enough to see whether a cache serves attention rightly.

It computes what `build_attn_mha` in llama-graph.cpp computes for one layer, with random weights: queries, keys and
values by projection, rotary positions, an additive mask, softmax. Several query heads may share a KV head.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvmodel.errors import ParamError, check_int
from kvmodel.rope import RopeParams, rotate

Float32 = NDArray[np.float32]
Int32 = NDArray[np.int32]

MAX_WIDTH = 1 << 12
"""Largest size of any axis of the weights: this layer is for looking at, not for running a model."""


@dataclass(frozen=True, eq=False)
class AttentionLayer:
    """The weights of a layer.

    Attributes:
        rope: how queries and keys are rotated.
        tok_embd: float32 [n_vocab, n_embd], the input vector of every token.
        wq: float32 [n_embd, n_head, n_embd_head].
        wk, wv: float32 [n_embd, n_head_kv, n_embd_head].

    Raises:
        ParamError: the query heads are no multiple of the KV heads, or a head is shorter than `n_rot`.
    """

    rope: RopeParams
    tok_embd: Float32
    wq: Float32
    wk: Float32
    wv: Float32

    def __post_init__(self) -> None:
        n_head, n_head_kv = self.wq.shape[1], self.wk.shape[1]
        if n_head % n_head_kv:
            raise ParamError("n_head", n_head, f"a multiple of n_head_kv = {n_head_kv}")
        if self.n_embd_head < self.rope.n_rot:
            raise ParamError("n_embd_head", self.n_embd_head, f"at least n_rot = {self.rope.n_rot}")

    @classmethod
    def random(
        cls,
        rope: RopeParams,
        *,
        n_embd: int = 64,
        n_head: int = 4,
        n_head_kv: int = 2,
        n_embd_head: int = 32,
        n_vocab: int = 64,
        seed: int = 0,
    ) -> "AttentionLayer":
        """A layer of normally distributed weights, the same for the same seed.

        Raises:
            ParamError: a size is out of range, or the sizes do not fit together.
        """
        sizes = {"n_embd": n_embd, "n_head": n_head, "n_head_kv": n_head_kv, "n_embd_head": n_embd_head}
        for name, size in (sizes | {"n_vocab": n_vocab}).items():
            check_int(name, size, 1, MAX_WIDTH)
        rng = np.random.default_rng(check_int("seed", seed, 0, 2**63 - 1))
        table = rng.standard_normal((n_vocab, n_embd), np.float32)
        wq, wk, wv = (
            rng.standard_normal((n_embd, heads, n_embd_head), np.float32) / np.float32(np.sqrt(n_embd))
            for heads in (n_head, n_head_kv, n_head_kv)
        )
        return cls(rope, table, wq, wk, wv)

    @property
    def n_head_kv(self) -> int:
        """Heads of keys and values."""
        return int(self.wk.shape[1])

    @property
    def n_embd_head(self) -> int:
        """Elements of a head."""
        return int(self.wk.shape[2])

    @property
    def n_embd_out(self) -> int:
        """Elements of a token's output: all query heads one after the other."""
        return int(self.wq.shape[1]) * self.n_embd_head

    def queries(self, token: Int32, pos: Int32) -> Float32:
        """Rotated queries of tokens, float32 [n, n_head, n_embd_head]."""
        return rotate(self.rope, self._projected(token, self.wq), pos)

    def keys(self, token: Int32, pos: Int32) -> Float32:
        """Rotated keys of tokens, float32 [n, n_head_kv, n_embd_head]."""
        return rotate(self.rope, self._projected(token, self.wk), pos)

    def values(self, token: Int32) -> Float32:
        """Values of tokens, float32 [n, n_head_kv, n_embd_head]."""
        return self._projected(token, self.wv)

    def _projected(self, token: Int32, weights: Float32) -> Float32:
        if len(token) and not 0 <= token.min() <= token.max() < len(self.tok_embd):
            raise ParamError("token", f"{token.min()} to {token.max()}", f"0 to {len(self.tok_embd) - 1}")
        return np.tensordot(self.tok_embd[token], weights, axes=1).astype(np.float32, copy=False)

    def full_pass(self, token: Int32, pos: Int32) -> Float32:
        """The outputs of one sequence computed in one go, each token seeing itself and those before; no cache.

        Args:
            token: int32 [n].
            pos: int32 [n], their positions.

        Returns:
            float32 [n, n_embd_out].
        """
        hidden = pos[None, :] > pos[:, None]
        mask = np.where(hidden, np.float32(-np.inf), np.float32(0))
        return attend(self.queries(token, pos), self.keys(token, pos), self.values(token), mask)


def attention_weights(q: Float32, k: Float32, mask: Float32) -> Float32:
    """How much each query takes from each key.

    Args:
        q: float32 [n, n_head, n_embd_head].
        k: float32 [n_kv, n_head_kv, n_embd_head]; neighbouring query heads share a KV head.
        mask: float32 [n, n_kv], added to the scores: 0 or -inf.

    Returns:
        float32 [n_head, n, n_kv]; each row sums to 1, and is NaN if the query sees no key.
    """
    n, n_head, size = q.shape
    grouped = q.reshape(n, k.shape[1], -1, size)
    scores = np.einsum("nhgd,chd->hgnc", grouped, k, optimize=True).reshape(n_head, n, len(k))
    scores = scores / np.float32(np.sqrt(size)) + mask
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Float32 = weights / weights.sum(axis=-1, keepdims=True)
    return shares


def attend(q: Float32, k: Float32, v: Float32, mask: Float32) -> Float32:
    """Softmax attention.

    Args:
        q: as in `attention_weights`.
        k: as in `attention_weights`.
        v: float32 [n_kv, n_head_kv, n_embd_head].
        mask: as in `attention_weights`.

    Returns:
        float32 [n, n_head * n_embd_head].
    """
    n, n_head, size = q.shape
    shares = attention_weights(q, k, mask).reshape(v.shape[1], -1, n, len(k))
    mixed: Float32 = np.einsum("hgnc,chd->nhgd", shares, v, optimize=True).astype(np.float32, copy=False)
    return mixed.reshape(n, n_head * size)
