"""Numbers of cells: what a context makes of the sizes it is asked for."""

from dataclasses import dataclass

from kvmodel.errors import ParamError
from kvmodel.geometry import Geometry
from kvmodel.memory.settings import Rules, Settings
from kvmodel.types import SWAType, get_padding, pad

KQ_MASK_PAD = 64
"""The least n_batch before streams came (GGML_KQ_MASK_PAD in ggml.h)."""

STREAM_PAD = 256
"""What the streams rules pad every number of cells to, with flash attention and without."""

UINT32 = (1 << 32) - 1


@dataclass(frozen=True)
class ContextSizes:
    """What `llama_context` and `create_memory` settle on before a cache is made.

    Attributes:
        asked: n_ctx as asked for, or the training's; what the 0.3.11 rules print as n_ctx.
        n_ctx: padded; positions of all sequences together.
        n_ctx_seq: positions of one sequence, as printed (n_ctx_per_seq before streams).
        n_batch, n_ubatch: after their own bounds.
        flash_attn: whether it stays on.
        n_pad: unit of all sizes.
        n_stream: sets of cells of the same size, more than 1 only if sequences do not share one.
        cells: cells of one stream in a layer without a window.
        window_cells: the same in a window layer.
        recurrent_cells: cells for recurrent states, one a sequence.
    """

    asked: int
    n_ctx: int
    n_ctx_seq: int
    n_batch: int
    n_ubatch: int
    flash_attn: bool
    n_pad: int
    n_stream: int
    cells: int
    window_cells: int
    recurrent_cells: int


def context_sizes(geometry: Geometry, settings: Settings) -> ContextSizes:
    """The numbers that a context of these settings works with.

    Upstream: `llama_init_from_model`, the constructor of `llama_context`, `llama_model::create_memory`, and for window
    layers the constructor of `llama_kv_cache_unified_iswa`.

    Raises:
        ParamError: n_ctx is 0 and the model does not say how long it was trained.
    """
    if not settings.n_ctx and not geometry.n_ctx_train:
        raise ParamError("n_ctx", 0, "at least 1, as the model names no n_ctx_train to stand in for it")
    asked = settings.n_ctx or geometry.n_ctx_train
    flash_attn = stays_on(geometry, settings)
    streams = settings.rules is Rules.STREAMS
    n_pad = STREAM_PAD if streams else get_padding(flash_attn=flash_attn)
    n_ctx, n_stream = pad(asked, n_pad), 1
    n_batch, n_ubatch = _batches(settings, n_ctx if settings.rules is Rules.JANUARY_2025 else asked)
    if streams and not settings.kv_unified:
        n_stream = settings.n_seq_max
        cells = pad(n_ctx // n_stream, n_pad)
        n_ctx = cells * n_stream
        n_ctx_seq = cells
    elif streams:
        cells = n_ctx_seq = n_ctx
    else:
        cells = n_ctx = _unpadded_if_recurrent(geometry, settings, asked, n_ctx)
        n_ctx_seq = (n_ctx if settings.rules is Rules.JANUARY_2025 else asked) // settings.n_seq_max
    return ContextSizes(
        asked=asked,
        n_ctx=n_ctx,
        n_ctx_seq=n_ctx_seq,
        n_batch=n_batch,
        n_ubatch=n_ubatch,
        flash_attn=flash_attn,
        n_pad=n_pad,
        n_stream=n_stream,
        cells=cells,
        window_cells=_window_cells(geometry, settings, cells, n_ubatch, n_pad),
        recurrent_cells=settings.n_seq_max,
    )


def stays_on(geometry: Geometry, settings: Settings) -> bool:
    """Whether flash attention is on after `llama_init_from_model` has looked at the model."""
    odd_heads = settings.rules is Rules.JANUARY_2025 and geometry.n_embd_head_k != geometry.n_embd_head_v
    return settings.flash_attn and geometry.arch != "grok" and not odd_heads


def unit(geometry: Geometry, settings: Settings) -> int:
    """The step between two values of n_ctx that padding leaves as they are."""
    if settings.rules is Rules.STREAMS:
        return STREAM_PAD * (1 if settings.kv_unified else settings.n_seq_max)
    return get_padding(flash_attn=stays_on(geometry, settings))


def has_windows(geometry: Geometry, settings: Settings) -> bool:
    """Whether window layers get a cache of their own."""
    if settings.rules is Rules.JANUARY_2025 or geometry.swa_type is SWAType.NONE:
        return False
    return geometry.kind == "attention" or settings.rules is Rules.STREAMS


def _batches(settings: Settings, n_ctx: int) -> tuple[int, int]:
    n_batch = min(n_ctx, settings.n_batch)
    if settings.rules is not Rules.STREAMS:
        n_batch = max(n_batch, KQ_MASK_PAD)
    return n_batch, min(n_batch, settings.n_ubatch or settings.n_batch)


def _unpadded_if_recurrent(geometry: Geometry, settings: Settings, asked: int, n_ctx: int) -> int:
    """Since mid-2025 it is the making of a transformer cache that pads n_ctx."""
    attends = geometry.kind in {"attention", "hybrid"}
    return n_ctx if attends or settings.rules is Rules.JANUARY_2025 else asked


def _window_cells(geometry: Geometry, settings: Settings, cells: int, n_ubatch: int, n_pad: int) -> int:
    if settings.swa_full or not has_windows(geometry, settings):
        return cells
    shared_by = settings.n_seq_max if settings.rules is Rules.MID_2025 or settings.kv_unified else 1
    # Sizes are unsigned 32-bit numbers upstream and wrap around like them.
    wanted = (geometry.n_swa * shared_by + n_ubatch) & UINT32
    return min(cells, pad(wanted, n_pad) & UINT32)
