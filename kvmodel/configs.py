"""The configurations of a scenario: which cache, what it is made of, and the settings around it.

Field names are those of `CacheParams`, `IswaParams`, `RecurrentParams` and `ContextParams`.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from kvmodel import context, context_legacy
from kvmodel.caches.iswa import IswaParams
from kvmodel.caches.recurrent_params import RecurrentParams
from kvmodel.caches.sizes import tensor_bytes
from kvmodel.context import ContextParams
from kvmodel.limits import INT32_MAX, MAX_BATCH, MAX_CELLS, MAX_SEQ
from kvmodel.ops import Model
from kvmodel.types import CacheParams, get_padding

Kind = Literal["unified", "iswa", "legacy", "recurrent", "memory_recurrent"]

OLDER = ("legacy", "recurrent")
"""The kinds of January 2025, which have a decode loop of their own."""


class _Config(Model):
    """What every cache is made of."""

    kv_size: int = Field(ge=1, le=MAX_CELLS)
    n_seq_max: int = Field(default=1, ge=1, le=MAX_SEQ)
    n_layer: int = 1
    arch: str = "llama"

    @model_validator(mode="after")
    def _check(self) -> "_Config":
        for params in self.all_params:
            tensor_bytes(params, "k")
            tensor_bytes(params, "v")
        return self

    @property
    def all_params(self) -> tuple[CacheParams, ...]:
        """Every set of cells the configuration asks for.

        Raises:
            ParamError: values that do not fit together.
        """
        raise NotImplementedError


class _TransformerConfig(_Config):
    n_head_kv: int | tuple[int, ...] = 1
    n_embd_head_k: int = 64
    n_embd_head_v: int = 64
    type_k: str = "f16"
    type_v: str = "f16"
    use_alibi: bool = False
    rope: bool = True

    def _fields(self, *, without: set[str]) -> dict[str, Any]:
        return self.model_dump(exclude={"kind", *without})


class CacheConfig(_TransformerConfig):
    """The unified cache of mid-2025."""

    kind: Literal["unified"] = "unified"
    n_pad: int = 32
    swa_type: Literal["none", "standard", "chunked"] = "none"
    n_swa: int = 0
    v_trans: bool = True

    @property
    def params(self) -> CacheParams:
        """The same as CacheParams.

        Raises:
            ParamError: values that do not fit together.
        """
        return CacheParams(**self._fields(without=set()))

    @property
    def all_params(self) -> tuple[CacheParams, ...]:
        """One set of cells."""
        return (self.params,)


class IswaConfig(_TransformerConfig):
    """The pair of caches of mid-2025 for models whose layers have a window in turns.

    Attributes:
        swa_pattern: layer l has a window when l mod swa_pattern < swa_pattern - 1; 0 for every layer.
        swa_layers: instead of a pattern, one bool a layer.
        swa_full: give the window half as many cells as the full one.
    """

    kind: Literal["iswa"]
    n_pad: int = 32
    swa_type: Literal["standard", "chunked"] = "standard"
    n_swa: int = Field(ge=1, le=INT32_MAX)
    swa_pattern: int = Field(default=2, ge=0, le=1024)
    swa_layers: tuple[bool, ...] | None = None
    swa_full: bool = False
    v_trans: bool = True

    def pair(self, n_ubatch: int) -> IswaParams:
        """The same as IswaParams, for a context with that ubatch size.

        Raises:
            ParamError: values that do not fit together.
        """
        layers = self.swa_layers
        if layers is None:
            n = self.swa_pattern
            layers = tuple(n == 0 or il % n < n - 1 for il in range(self.n_layer))
        fields = self._fields(without={"swa_pattern", "swa_layers", "swa_full"})
        return IswaParams(CacheParams(**fields, swa_layers=layers), n_ubatch, self.swa_full)

    @property
    def all_params(self) -> tuple[CacheParams, ...]:
        """The full half and the smallest window half."""
        pair = self.pair(1)
        return pair.base, pair.swa


class LegacyConfig(_TransformerConfig):
    """The transformer cache of January 2025.

    Attributes:
        flash_attn: n is padded to 256 instead of 32, and V is not transposed.
    """

    kind: Literal["legacy"]
    flash_attn: bool = False

    @property
    def params(self) -> CacheParams:
        """The same as CacheParams; this generation takes any number of cells.

        Raises:
            ParamError: values that do not fit together.
        """
        return CacheParams(**self._fields(without={"flash_attn"}), n_pad=1, v_trans=not self.flash_attn)

    @property
    def all_params(self) -> tuple[CacheParams, ...]:
        """One set of cells."""
        return (self.params,)


class RecurrentConfig(_Config):
    """A recurrent cache: `kv_size` cells, one a sequence.

    Attributes:
        kind: recurrent for the cache of January 2025, memory_recurrent for that of mid-2025.
    """

    kind: Literal["recurrent", "memory_recurrent"]
    ssm_d_conv: int = 4
    ssm_d_inner: int = 4
    ssm_d_state: int = 2
    wkv_head_size: int = 0
    n_embd: int = 4
    token_shift_count: int = 2

    @property
    def params(self) -> RecurrentParams:
        """The same as RecurrentParams.

        Raises:
            ParamError: values that do not fit together.
        """
        return RecurrentParams(**self.model_dump(exclude={"kind"}))

    @property
    def all_params(self) -> tuple[CacheParams, ...]:
        """One set of cells."""
        return (self.params,)


def _kind(config: Any) -> str:
    """The tag of a configuration; without one it is the unified cache."""
    kind = config.get("kind", "unified") if isinstance(config, dict) else getattr(config, "kind", "unified")
    return str(kind)


AnyCacheConfig = CacheConfig | IswaConfig | LegacyConfig | RecurrentConfig

CacheField = Annotated[
    Annotated[CacheConfig, Tag("unified")]
    | Annotated[IswaConfig, Tag("iswa")]
    | Annotated[LegacyConfig, Tag("legacy")]
    | Annotated[RecurrentConfig, Tag("recurrent")]
    | Annotated[RecurrentConfig, Tag("memory_recurrent")],
    Discriminator(_kind),
]


class ContextConfig(Model):
    """The settings around the cache (`ContextParams`).

    Attributes:
        n_max_nodes: graph nodes a defrag may use; left out, the generation's own smallest budget.
    """

    n_batch: int = Field(default=2048, ge=1, le=MAX_BATCH)
    n_ubatch: int = Field(default=512, ge=1, le=MAX_BATCH)
    defrag_thold: float = -1.0
    n_max_nodes: Annotated[int, Field(ge=0, le=INT32_MAX)] | None = None
    causal_attn: bool = True

    def params(self, kind: Kind) -> ContextParams:
        """The same as ContextParams, for one kind of cache."""
        smallest = context_legacy.MAX_NODES if kind in OLDER else context.MAX_NODES
        return ContextParams(**({"n_max_nodes": smallest} | self.model_dump(exclude_none=True)))


def translated(config: AnyCacheConfig, kind: Kind) -> AnyCacheConfig:
    """A configuration for another kind of cache; fields that both kinds have carry over, and flash attention.

    The window of a pair is one of all layers in a unified cache; the older caches have none. A recurrent cache has as
    many cells as there are sequences, so its number of cells goes neither way.

    Raises:
        ValidationError: the other kind needs more than that, or refuses a value.
    """
    if kind == config.kind:
        return config
    target = KINDS[kind]
    fields = {name: value for name, value in carried(config, kind).items() if name in target.model_fields}
    return target.model_validate({**fields, "kind": kind})


def carried(config: AnyCacheConfig, kind: Kind) -> dict[str, Any]:
    """The fields of a configuration by the names of both generations, as far as another kind can take them."""
    fields = config.model_dump()
    if isinstance(config, LegacyConfig):
        fields |= {"n_pad": get_padding(flash_attn=config.flash_attn), "v_trans": not config.flash_attn}
    elif not isinstance(config, RecurrentConfig):
        fields["flash_attn"] = not config.v_trans
    if fields.get("swa_type") == "none":
        fields = {name: value for name, value in fields.items() if name not in ("swa_type", "n_swa")}
    states = KINDS[kind] is RecurrentConfig
    if isinstance(config, RecurrentConfig) and not states:
        del fields["kv_size"]
    elif states and not isinstance(config, RecurrentConfig):
        fields["kv_size"] = config.n_seq_max
    return fields


KINDS: dict[Kind, type[AnyCacheConfig]] = {
    "unified": CacheConfig,
    "iswa": IswaConfig,
    "legacy": LegacyConfig,
    "recurrent": RecurrentConfig,
    "memory_recurrent": RecurrentConfig,
}
"""The configuration of each kind."""
