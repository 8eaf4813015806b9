"""What a model's shape asks of a cache: layers, KV heads, head sizes, windows, shared layers and recurrent states."""

from dataclasses import dataclass
from typing import Any

from kvmodel.errors import ParamError, check_int
from kvmodel.limits import INT32_MAX, MAX_HEAD_SIZE, MAX_HEADS, MAX_LAYERS, MAX_STATE_WIDTH
from kvmodel.types import SWAType

PerLayer = int | tuple[int, ...]
Flags = bool | tuple[bool, ...]

WINDOW_PATTERNS = {
    "llama4": (SWAType.CHUNKED, 4),
    "gemma2": (SWAType.STANDARD, 2),
    "gemma3": (SWAType.STANDARD, 6),
    "gemma3n": (SWAType.STANDARD, 5),
    "cohere2": (SWAType.STANDARD, 4),
    "gpt-oss": (SWAType.STANDARD, 2),
    "exaone4": (SWAType.STANDARD, 4),
}
"""Window type by architecture, and which layer in how many has none, where llama.cpp itself decides that."""


@dataclass(frozen=True)
class MLA:
    """Latent attention: what a cell keeps of a layer in place of all heads.

    Attributes:
        n_lora_kv: elements of the latent vector (`attention.kv_lora_rank`).
        n_rot: rotated elements of K that stand beside it (`rope.dimension_count`).
    """

    n_lora_kv: int
    n_rot: int

    def __post_init__(self) -> None:
        check_int("n_lora_kv", self.n_lora_kv, 1, MAX_HEAD_SIZE)
        check_int("n_rot", self.n_rot, 0, MAX_HEAD_SIZE)

    @property
    def n_embd_k(self) -> int:
        """Elements of a compressed K row."""
        return self.n_lora_kv + self.n_rot

    @property
    def n_embd_v(self) -> int:
        """Elements of a compressed V row, where a version keeps one."""
        return self.n_lora_kv


@dataclass(frozen=True)
class Geometry:
    """The part of `llama_hparams` that decides the size of a cache, in llama-hparams.h of either generation.

    A value for each layer may be given as one number for all; it is kept as a tuple of `n_layer` entries.

    Attributes:
        n_layer: layers of the model.
        n_head_kv: KV heads of each layer; 0 for a layer without K and V.
        n_embd_head_k, n_embd_head_v: elements of one K head and one V head of each layer.
        name: what to call the model.
        arch: llama.cpp's name of the architecture.
        swa_type, n_swa: window type and its length in positions.
        swa_layers: which layers have the window; left out, all of them if there is a window and none otherwise.
        n_layer_kv_from_start: layers from the first on that own K and V, the later ones reuse theirs (gemma3n,
            gemma4); None if every layer owns them.
        mla: latent attention, if the model's tensors allow it; heads and head sizes above are the uncompressed ones.
        recurrent_layers: which layers keep a recurrent state; such a layer may hold K and V as well (falcon-h1).
        n_embd_r, n_embd_s: elements of the rolling and of the recurrent state of each layer, for one sequence.
        n_ctx_train: context length in training, 0 if not known.
        rope: the model rotates its keys (False: rope type none).
        mrope: positions have several dimensions (qwen2vl).
        use_alibi: distances are subtracted in the mask in place of a rotation.
        has_cache: False for encoders, which llama.cpp gives no cache (bert).
        source: where the numbers stand, an address.
        notes: what a reader should know about them.

    Raises:
        ParamError: a value is out of range, or has not one entry for each layer.
    """

    n_layer: int
    n_head_kv: PerLayer = 0
    n_embd_head_k: PerLayer = 0
    n_embd_head_v: PerLayer = 0
    name: str = "model"
    arch: str = "llama"
    swa_type: SWAType = SWAType.NONE
    n_swa: int = 0
    swa_layers: Flags | None = None
    n_layer_kv_from_start: int | None = None
    mla: MLA | None = None
    recurrent_layers: Flags = False
    n_embd_r: PerLayer = 0
    n_embd_s: PerLayer = 0
    n_ctx_train: int = 0
    rope: bool = True
    mrope: bool = False
    use_alibi: bool = False
    has_cache: bool = True
    source: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_int("n_layer", self.n_layer, 1, MAX_LAYERS)
        self._spread("n_head_kv", MAX_HEADS)
        for name in ("n_embd_head_k", "n_embd_head_v"):
            self._spread(name, MAX_HEAD_SIZE)
        for name in ("n_embd_r", "n_embd_s"):
            self._spread(name, MAX_STATE_WIDTH)
        check_int("n_ctx_train", self.n_ctx_train, 0, INT32_MAX)
        if self.n_layer_kv_from_start is not None:
            check_int("n_layer_kv_from_start", self.n_layer_kv_from_start, 1, self.n_layer)
        self._check_window()
        self._spread_flags("recurrent_layers")
        object.__setattr__(self, "notes", tuple(self.notes))

    def _spread(self, name: str, high: int) -> None:
        object.__setattr__(self, name, tuple(check_int(name, entry, 0, high) for entry in self._one_each(name)))

    def _check_window(self) -> None:
        if self.swa_type not in tuple(SWAType):
            raise ParamError("swa_type", self.swa_type, ", ".join(kind.value for kind in SWAType))
        object.__setattr__(self, "swa_type", SWAType(self.swa_type))
        windowed = self.swa_type is not SWAType.NONE
        check_int("n_swa", self.n_swa, 1 if windowed else 0, INT32_MAX)
        if self.swa_layers is None:
            object.__setattr__(self, "swa_layers", windowed)
        self._spread_flags("swa_layers")
        if any(self.windows) != windowed:  # create_memory asserts that the two agree
            allowed = "at least one layer with a window" if windowed else "no layer with a window, as swa_type is none"
            raise ParamError("swa_layers", self.swa_layers, allowed)

    def _spread_flags(self, name: str) -> None:
        object.__setattr__(self, name, tuple(bool(flag) for flag in self._one_each(name)))

    def _one_each(self, name: str) -> tuple[Any, ...]:
        value = getattr(self, name)
        entries = tuple(value) if isinstance(value, (tuple, list)) else (value,) * self.n_layer
        if len(entries) != self.n_layer:
            raise ParamError(name, entries, f"one entry for each of the {self.n_layer} layers")
        return entries

    @property
    def heads(self) -> tuple[int, ...]:
        """KV heads of each layer."""
        return _tuple(self.n_head_kv)

    @property
    def head_sizes_k(self) -> tuple[int, ...]:
        """Elements of one K head of each layer."""
        return _tuple(self.n_embd_head_k)

    @property
    def head_sizes_v(self) -> tuple[int, ...]:
        """Elements of one V head of each layer."""
        return _tuple(self.n_embd_head_v)

    @property
    def n_embd_k_gqa(self) -> tuple[int, ...]:
        """Elements of one uncompressed K row of each layer."""
        return tuple(a * b for a, b in zip(self.heads, self.head_sizes_k, strict=True))

    @property
    def n_embd_v_gqa(self) -> tuple[int, ...]:
        """Elements of one uncompressed V row of each layer."""
        return tuple(a * b for a, b in zip(self.heads, self.head_sizes_v, strict=True))

    @property
    def windows(self) -> tuple[bool, ...]:
        """Which layers have the window (`llama_hparams::is_swa`)."""
        return _tuple(self.swa_layers)

    @property
    def recurrent(self) -> tuple[bool, ...]:
        """Which layers keep a recurrent state (`llama_hparams::is_recurrent`)."""
        return _tuple(self.recurrent_layers)

    @property
    def states(self) -> tuple[tuple[int, int], ...]:
        """Elements of the rolling and the recurrent state of each layer; (0, 0) for layers that keep none."""
        pairs = zip(self.recurrent, _tuple(self.n_embd_r), _tuple(self.n_embd_s), strict=True)
        return tuple((r, s) if keeps else (0, 0) for keeps, r, s in pairs)

    @property
    def owns_kv(self) -> tuple[bool, ...]:
        """Which layers have K and V of their own: neither without heads nor reusing those of an earlier layer."""
        own = self.n_layer if self.n_layer_kv_from_start is None else self.n_layer_kv_from_start
        return tuple(heads > 0 and il < own for il, heads in enumerate(self.heads))

    @property
    def kind(self) -> str:
        """What holds the model's memory: none, attention, recurrent or hybrid."""
        if not self.has_cache:
            return "none"
        if not any(self.recurrent):
            return "attention"
        return "hybrid" if any(self.heads) else "recurrent"


def swa_pattern(n_layer: int, pattern: int) -> tuple[bool, ...]:
    """Window layers if every `pattern`-th layer has none (`llama_hparams::set_swa_pattern`).

    Args:
        n_layer: layers of the model.
        pattern: 6 means five layers with a window, then one without; 0 means that all have it, 1 that none has.
    """
    check_int("n_layer", n_layer, 1, MAX_LAYERS)
    check_int("pattern", pattern, 0, MAX_LAYERS)
    return tuple(pattern == 0 or il % pattern < pattern - 1 for il in range(n_layer))


def _tuple(value: Any) -> tuple[Any, ...]:
    """A field after `__post_init__`, which has made a tuple of it."""
    return tuple(value)
