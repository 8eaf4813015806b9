"""What a recurrent cache is made of: cells for whole states, and the widths of such a state.

Counterpart of `llama_kv_cache_init` and of the state widths in llama-hparams.cpp (January 2025).
"""

from dataclasses import dataclass

from kvmodel.errors import check_int
from kvmodel.types import CacheParams

MAX_WIDTH = 1 << 20
"""Largest width taken for one dimension of a state: far above any shipped model's."""


@dataclass(frozen=True)
class RecurrentParams(CacheParams):
    """A cache in which one cell holds the whole state of one sequence.

    Upstream makes as many cells as there are sequences and forces f32 for both tensors.

    Attributes:
        kv_size: cells, one a sequence; a sequence id has to be below it.
        ssm_d_conv, ssm_d_inner, ssm_d_state: Mamba's convolution width, inner width and state width.
        wkv_head_size: RWKV's head size; above 0 the next two count instead of the three before.
        n_embd: RWKV's embedding width.
        token_shift_count: RWKV's tokens kept for its shift.

    Raises:
        ParamError: a value is out of range.
    """

    n_pad: int = 1
    n_head_kv: int | tuple[int, ...] = 0
    type_k: str = "f32"
    type_v: str = "f32"
    v_trans: bool = False
    rope: bool = False
    ssm_d_conv: int = 4
    ssm_d_inner: int = 4
    ssm_d_state: int = 2
    wkv_head_size: int = 0
    n_embd: int = 4
    token_shift_count: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("ssm_d_conv", "ssm_d_inner", "ssm_d_state", "wkv_head_size", "n_embd", "token_shift_count"):
            check_int(name, getattr(self, name), 0, MAX_WIDTH)

    @property
    def n_embd_k_s(self) -> int:
        """Elements of the state's first part: the inputs a convolution or a token shift looks back at."""
        if self.wkv_head_size:
            return self.token_shift_count * self.n_embd
        return max(self.ssm_d_conv - 1, 0) * self.ssm_d_inner

    @property
    def n_embd_v_s(self) -> int:
        """Elements of the state's second part: what the recurrence itself carries on."""
        if self.wkv_head_size:
            return self.n_embd * self.wkv_head_size
        return self.ssm_d_state * self.ssm_d_inner

    def n_embd_k_gqa(self, il: int) -> int:
        """Elements of one K row of model layer `il`: keys, if any, and the state's first part."""
        return super().n_embd_k_gqa(il) + self.n_embd_k_s

    def n_embd_v_gqa(self, il: int) -> int:
        """Elements of one V row of model layer `il`: values, if any, and the state's second part."""
        return super().n_embd_v_gqa(il) + self.n_embd_v_s
