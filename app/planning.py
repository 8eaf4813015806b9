"""The inputs of the Memory page: which model, what context, and how much memory there is."""

from contextlib import suppress
from dataclasses import dataclass

import streamlit as st

from app.planning_model import KEEP, model
from app.planning_words import batches, share
from kvmodel.errors import ParamError
from kvmodel.geometry import Geometry
from kvmodel.ggml import KV_TYPES
from kvmodel.limits import MAX_BATCH, MAX_PLAN_CTX, MAX_PLAN_SEQ
from kvmodel.memory import Rules, Settings, context_sizes
from kvmodel.memory.questions import MAX_BUDGET
from kvmodel.types import SWAType

GIB = 1 << 30


@dataclass(frozen=True)
class Asked:
    """What the inputs say.

    Attributes:
        geometry, settings: the model and the context.
        memory: bytes that there are.
        taken: bytes of them that weights and compute buffers take.
    """

    geometry: Geometry
    settings: Settings
    memory: int
    taken: int

    @property
    def budget(self) -> int:
        """Bytes that are left for the caches."""
        return max(self.memory - self.taken, 0)


def asked() -> Asked | None:
    """All inputs, below each other, with what is wrong with them; None as long as there is no model."""
    geometry = model()
    windows = geometry is not None and geometry.swa_type is not SWAType.NONE
    n_ctx, n_seq_max = length()
    shared = st.container()
    type_k, type_v = types()
    flash_attn, swa_full = switches(windows=windows)
    memory, taken = budget()
    n_batch, n_ubatch = batch()
    cut = st.container()
    rules, kv_unified = version()
    settings = Settings(
        n_ctx=n_ctx,
        n_seq_max=n_seq_max,
        n_batch=n_batch,
        n_ubatch=n_ubatch,
        type_k=type_k,
        type_v=type_v,
        flash_attn=flash_attn,
        swa_full=swa_full,
        rules=rules,
        kv_unified=kv_unified,
    )
    if geometry is None:
        return None
    with suppress(ParamError):  # without an n_ctx, which the answers say
        sizes = context_sizes(geometry, settings)
        shared.caption(share(sizes, settings))
        if words := batches(sizes, settings):
            cut.caption(words)
    return Asked(geometry, settings, memory, taken)


def length() -> tuple[int, int]:
    """Positions, and the slots that share them."""
    left, right = st.columns(2, gap="small")
    n_ctx = left.number_input(
        "Context (n_ctx)",
        0,
        MAX_PLAN_CTX,
        8192,
        1024,
        key="memory.ctx",
        help="Positions of all slots together; 0: as many as in training",
        **KEEP,
    )
    slots = right.number_input(
        "Slots (n_seq_max)",
        1,
        MAX_PLAN_SEQ,
        1,
        key="memory.slots",
        help="Sequences that are kept at the same time: --parallel of llama-server",
        **KEEP,
    )
    return int(n_ctx), int(slots)


def types() -> tuple[str, str]:
    """Element types of K and of V."""
    left, right = st.columns(2, gap="small")
    type_k = left.selectbox("K type (type_k)", KV_TYPES, KV_TYPES.index("f16"), key="memory.type_k", **KEEP)
    type_v = right.selectbox("V type (type_v)", KV_TYPES, KV_TYPES.index("f16"), key="memory.type_v", **KEEP)
    return type_k, type_v


def switches(*, windows: bool) -> tuple[bool, bool]:
    """Flash attention, and full caches for window layers, which not every model has."""
    with st.container(horizontal=True, gap="small"):
        flash = st.checkbox("Flash attention", key="memory.flash", width="content", **KEEP)
        full = st.checkbox(
            "swa_full",
            key="memory.swa_full",
            disabled=not windows,
            help="Window layers get as many cells as the others.",
            width="content",
            **KEEP,
        )
    return flash, full and windows


def batch() -> tuple[int, int]:
    """Tokens of a batch and of the parts that it is computed in."""
    left, right = st.columns(2, gap="small")
    n_batch = left.number_input(
        "n_batch",
        1,
        MAX_BATCH,
        2048,
        512,
        key="memory.batch",
        help="Tokens of one batch at most. It has no size of its own in the caches, but bounds n_ubatch.",
        **KEEP,
    )
    n_ubatch = right.number_input(
        "n_ubatch",
        1,
        MAX_BATCH,
        512,
        128,
        key="memory.ubatch",
        help="Tokens that are computed at once: window layers get cells for them beside those of their window.",
        **KEEP,
    )
    return int(n_batch), int(n_ubatch)


def version() -> tuple[Rules, bool]:
    """Whose rules count, and whether all slots share one stream, where the rules know of streams."""
    rules = st.selectbox(
        "Version of llama.cpp",
        list(Rules),
        list(Rules).index(Rules.MID_2025),
        Rules.words.fget,
        key="memory.rules",
        **KEEP,
    )
    unified = rules is Rules.STREAMS and st.checkbox(
        "kv_unified", key="memory.unified", help="All slots share one stream of cells.", **KEEP
    )
    return rules, unified


def budget() -> tuple[int, int]:
    """Bytes of memory, and those of them that the caches cannot have."""
    left, right = st.columns(2, gap="small")
    most = float(MAX_BUDGET // GIB)
    memory = left.number_input("Memory (GiB)", 0.0, most, 8.0, 1.0, key="memory.budget", **KEEP)
    taken = right.number_input(
        "For weights (GiB)",
        0.0,
        most,
        0.0,
        0.5,
        key="memory.taken",
        help="What of the memory the model's weights and the compute buffers take, which the caches cannot have",
        **KEEP,
    )
    return int(memory * GIB), int(taken * GIB)
