"""What a context is asked for, and which version's rules turn that into cells."""

from dataclasses import dataclass
from enum import StrEnum

from kvmodel.errors import ParamError, check_int
from kvmodel.ggml import GGMLType, ggml_type
from kvmodel.limits import MAX_BATCH, MAX_PLAN_CTX, MAX_PLAN_SEQ


class Rules(StrEnum):
    """Whose rules size the caches; the values are those of `--rules`."""

    JANUARY_2025 = "0.3.7"
    MID_2025 = "0.3.11"
    STREAMS = "streams"

    @property
    def words(self) -> str:
        """For a sentence: version and when it was current."""
        return {"0.3.7": "0.3.7 (January 2025)", "0.3.11": "0.3.11 (mid-2025)"}.get(self.value, "2026 (streams)")

    @property
    def max_seq(self) -> int | None:
        """Sequences a context may have at most (LLAMA_MAX_SEQ); None where nothing checks it."""
        return {"0.3.7": None, "0.3.11": 64}.get(self.value, 256)


class KeptMLA(StrEnum):
    """What a cell keeps of a layer with latent attention."""

    HEADS = "heads"
    LATENT_TWICE = "latent twice"
    LATENT = "latent"


KEPT = {
    Rules.JANUARY_2025: KeptMLA.HEADS,
    Rules.MID_2025: KeptMLA.LATENT_TWICE,
    Rules.STREAMS: KeptMLA.LATENT,
}
"""K and V of all heads; the latent vector as K and again as V; the latent vector as K, of which V is a view."""


@dataclass(frozen=True)
class Settings:
    """What is asked of `llama_init_from_model`; the defaults are those of its context parameters and of the tools.

    Attributes:
        n_ctx: positions asked for; 0 for the context length of the training.
        n_seq_max: sequences, called slots by the server.
        n_batch, n_ubatch: tokens of a batch and of one part of it; an n_ubatch of 0 stands for n_batch.
        type_k, type_v: ggml type names.
        flash_attn: flash attention; then V is not transposed and sizes are padded to 256.
        swa_full: window layers get as many cells as the others.
        rules: see Rules.
        kv_unified: all sequences share one stream of cells; only the streams rules know of anything else.
        mla: what latent attention keeps; None for what the rules keep.

    Raises:
        ParamError: a value is out of range.
    """

    n_ctx: int = 4096
    n_seq_max: int = 1
    n_batch: int = 2048
    n_ubatch: int = 512
    type_k: str = "f16"
    type_v: str = "f16"
    flash_attn: bool = False
    swa_full: bool = False
    rules: Rules = Rules.MID_2025
    kv_unified: bool = False
    mla: KeptMLA | None = None

    def __post_init__(self) -> None:
        check_int("n_ctx", self.n_ctx, 0, MAX_PLAN_CTX)
        check_int("n_seq_max", self.n_seq_max, 1, MAX_PLAN_SEQ)
        check_int("n_batch", self.n_batch, 0, MAX_BATCH)
        check_int("n_ubatch", self.n_ubatch, 0, MAX_BATCH)
        if not self.n_batch and not self.n_ubatch:
            raise ParamError("n_batch", 0, "at least 1, or an n_ubatch of at least 1")
        for name in ("type_k", "type_v"):
            ggml_type(getattr(self, name), name)
        self._choice("rules", Rules)
        if self.mla is not None:
            self._choice("mla", KeptMLA)

    def _choice(self, name: str, kind: type[StrEnum]) -> None:
        value = getattr(self, name)
        if value not in tuple(kind):
            raise ParamError(name, value, ", ".join(kind))
        object.__setattr__(self, name, kind(value))

    @property
    def ggml_k(self) -> GGMLType:
        """Block and byte sizes of the K type."""
        return ggml_type(self.type_k, "type_k")

    @property
    def ggml_v(self) -> GGMLType:
        """Block and byte sizes of the V type."""
        return ggml_type(self.type_v, "type_v")

    @property
    def kept_mla(self) -> KeptMLA:
        """What latent attention keeps, the default of the rules included."""
        return self.mla or KEPT[self.rules]
