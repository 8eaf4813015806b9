"""The words of the field: ids, positions, window types and the frozen description of a cache."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kvmodel.errors import ParamError, check_int
from kvmodel.ggml import GGMLType, ggml_type
from kvmodel.limits import INT32_MAX, MAX_BUCKETS, MAX_CELLS, MAX_LAYERS, MAX_SEQ

SeqId = int
Pos = int

GEMMA3N_OWN_LAYERS = 20


class SWAType(StrEnum):
    """How a window hides old cells: `llama_swa_type` in llama-hparams.h."""

    NONE = "none"
    STANDARD = "standard"
    CHUNKED = "chunked"


def pad(value: int, unit: int) -> int:
    """Round `value` up to a multiple of `unit` (GGML_PAD)."""
    return -(-value // unit) * unit


def get_padding(*, flash_attn: bool) -> int:
    """The `n_pad` that a context gives its caches (`llama_kv_cache_unified::get_padding`)."""
    return 256 if flash_attn else 32


@dataclass(frozen=True)
class CacheParams:
    """What one cache is made of; the arguments of the constructor in llama-kv-cache-unified.cpp.

    Attributes:
        kv_size: cells, a multiple of `n_pad`.
        n_seq_max: sequences the cache is made for, 1 to 64.
        n_pad: unit that `n_kv` is rounded up to; upstream takes 32, with flash attention 256.
        swa_type, n_swa: window type and its length in positions.
        n_layer: layers of the model.
        n_head_kv: KV heads, one number for all layers or one per layer.
        n_embd_head_k, n_embd_head_v: elements of one K head and one V head.
        type_k, type_v: ggml type names.
        v_trans: V is stored transposed, one row per channel (upstream: without flash attention).
        use_alibi: the mask carries the negative distance instead of 0.
        n_rel_attn_bkts: relative position buckets, 0 for none or 2 to 255.
        layer_filter: one bool per layer, True for the layers this cache holds; None holds all.
        swa_layers: one bool per layer, True for window layers; only the shared-layer rule reads it here.
        arch: `gemma3n` turns on the shared-layer rule: 20 layers own cells, the later ones reuse them.
        rope: the model rotates its keys, so a shift has work to do (False: rope type none).

    Raises:
        ParamError: a value is out of range, or `kv_size` is no multiple of `n_pad`.
    """

    kv_size: int
    n_seq_max: int = 1
    n_pad: int = 32
    swa_type: SWAType = SWAType.NONE
    n_swa: int = 0
    n_layer: int = 1
    n_head_kv: int | tuple[int, ...] = 1
    n_embd_head_k: int = 4
    n_embd_head_v: int = 4
    type_k: str = "f16"
    type_v: str = "f16"
    v_trans: bool = True
    use_alibi: bool = False
    n_rel_attn_bkts: int = 0
    layer_filter: tuple[bool, ...] | None = field(default=None)
    swa_layers: tuple[bool, ...] | None = field(default=None)
    arch: str = "llama"
    rope: bool = True

    def __post_init__(self) -> None:
        check_int("kv_size", self.kv_size, 1, MAX_CELLS)
        check_int("n_pad", self.n_pad, 1, MAX_CELLS)
        if self.kv_size % self.n_pad:
            raise ParamError("kv_size", self.kv_size, f"a multiple of n_pad = {self.n_pad}")
        check_int("n_seq_max", self.n_seq_max, 1, MAX_SEQ)
        object.__setattr__(self, "swa_type", _swa_type(self.swa_type))
        check_int("n_swa", self.n_swa, 0, INT32_MAX)
        if self.swa_type is not SWAType.NONE and self.n_swa == 0:
            raise ParamError("n_swa", 0, f"at least 1 with swa_type {self.swa_type.value}")
        check_int("n_layer", self.n_layer, 1, MAX_LAYERS)
        self._check_per_layer("layer_filter", self.layer_filter)
        self._check_per_layer("swa_layers", self.swa_layers)
        if not isinstance(self.n_head_kv, int):
            object.__setattr__(self, "n_head_kv", tuple(self.n_head_kv))
            self._check_per_layer("n_head_kv", self.n_head_kv)
        for heads in self.heads:
            check_int("n_head_kv", heads, 0, 65_536)
        for name in ("n_embd_head_k", "n_embd_head_v"):
            check_int(name, getattr(self, name), 0, 1 << 20)
        for name in ("type_k", "type_v"):
            ggml_type(getattr(self, name), name)
        check_int("n_rel_attn_bkts", self.n_rel_attn_bkts, 0, MAX_BUCKETS)
        if self.n_rel_attn_bkts == 1:
            raise ParamError("n_rel_attn_bkts", 1, f"0 for none, or 2 to {MAX_BUCKETS}")

    def _check_per_layer(self, name: str, values: Sequence[object] | int | None) -> None:
        if values is None or isinstance(values, int):
            return
        if len(values) != self.n_layer:
            raise ParamError(name, values, f"one entry for each of the {self.n_layer} layers")
        object.__setattr__(self, name, tuple(values))

    @property
    def heads(self) -> tuple[int, ...]:
        """KV heads of every model layer."""
        return (self.n_head_kv,) * self.n_layer if isinstance(self.n_head_kv, int) else self.n_head_kv

    @property
    def n_layer_cache(self) -> int:
        """Layers that may own tensors: all, or the first 20 of gemma3n."""
        return min(GEMMA3N_OWN_LAYERS, self.n_layer) if self.arch == "gemma3n" else self.n_layer

    def holds(self, il: int) -> bool:
        """Whether the layer filter lets model layer `il` into this cache."""
        return self.layer_filter is None or self.layer_filter[il]

    @property
    def layers(self) -> tuple[int, ...]:
        """Model indices of the layers that own K and V tensors here, in storage order."""
        return tuple(il for il in range(self.n_layer_cache) if self.holds(il))

    @property
    def layer_map(self) -> dict[int, int]:
        """Model layer -> storage index; reused layers of gemma3n point at the layer they share.

        Raises:
            ParamError: the filter leaves out a layer that a later one reuses (upstream asserts).
        """
        own = {il: i for i, il in enumerate(self.layers)}
        shared = dict(own)
        for il in range(self.n_layer_cache, self.n_layer):
            if not self.holds(il):
                continue
            is_swa = self.swa_layers is not None and self.swa_layers[il]
            reuse = self.n_layer_cache - (2 if is_swa else 1)
            if reuse not in own:
                raise ParamError("layer_filter", self.layer_filter, f"layer {reuse} kept, since layer {il} reuses it")
            shared[il] = own[reuse]
        return shared

    def n_embd_k_gqa(self, il: int) -> int:
        """Elements of one K row of model layer `il`."""
        return self.heads[il] * self.n_embd_head_k

    def n_embd_v_gqa(self, il: int) -> int:
        """Elements of one V row of model layer `il`."""
        return self.heads[il] * self.n_embd_head_v

    @property
    def ggml_k(self) -> GGMLType:
        """Block and byte sizes of the K type."""
        return ggml_type(self.type_k, "type_k")

    @property
    def ggml_v(self) -> GGMLType:
        """Block and byte sizes of the V type."""
        return ggml_type(self.type_v, "type_v")


def _swa_type(value: object) -> SWAType:
    try:
        return SWAType(str(value))
    except ValueError:
        raise ParamError("swa_type", value, ", ".join(t.value for t in SWAType)) from None
