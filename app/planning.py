"""The inputs of the Memory page: which model, what context, and how much memory there is."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.planning_words import facts, share
from app.wording import plain
from kvmodel.errors import KVModelError, ParamError
from kvmodel.geometry import Geometry
from kvmodel.ggml import KV_TYPES
from kvmodel.limits import MAX_BATCH, MAX_CONFIG_BYTES, MAX_PLAN_CTX, MAX_PLAN_SEQ
from kvmodel.memory import Rules, Settings
from kvmodel.memory.questions import MAX_BUDGET
from kvmodel.models import find, from_config, from_gguf, from_gguf_bytes, known
from kvmodel.types import SWAType

KEEP: dict[str, Any] = {"persist_state": "session"}
KNOWN, GGUF, CONFIG = "Known model", "GGUF file", "config.json"
FIRST_MODEL = "Llama 3.1 8B"
GIB = 1 << 30
MAX_PATH = 4096
"""Characters of a path: what Linux allows."""


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
    geometry = None
    try:
        geometry = model()
    except KVModelError as problem:
        st.error(plain(str(problem)))
    settings = context(geometry)
    if geometry is not None:
        shared(geometry, settings)
    memory, taken = budget()
    return None if geometry is None else Asked(geometry, settings, memory, taken)


def model() -> Geometry | None:
    """The model: a known one, or read from a file; None as long as there is no file.

    Raises:
        KVModelError: the file cannot be read.
    """
    kind = st.segmented_control(
        "Model", [KNOWN, GGUF, CONFIG], default=KNOWN, required=True, key="memory.source", width="stretch", **KEEP
    )
    geometry = {KNOWN: _known, GGUF: _gguf, CONFIG: _config}[kind]()
    if geometry is not None:
        name = "" if kind == KNOWN else f"{plain(geometry.name)}: "
        st.caption(f"{name}{plain(facts(geometry))}")
        if kind == KNOWN:
            st.markdown(f"[Source]({geometry.source})")
        for note in geometry.notes:
            st.caption(plain(note))
    return geometry


def _known() -> Geometry:
    names = list(known())
    name = st.selectbox(
        "Known model",
        names,
        names.index(FIRST_MODEL),
        key="memory.model",
        label_visibility="collapsed",
        help="Type a part of the name",
        **KEEP,
    )
    return find(name)


def _gguf() -> Geometry | None:
    given = st.file_uploader("A GGUF file, or its first megabytes", "gguf", key="memory.gguf", max_upload_size=64)
    path = st.text_input("Or path of a GGUF file", key="memory.path", max_chars=MAX_PATH, **KEEP).strip()
    if given is not None:
        return from_gguf_bytes(given.getbuffer(), source=given.name)
    if path:
        return from_gguf(path)
    st.caption("Only the header is read, so a path on this machine may lead to a file of any size.")
    return None


def _config() -> Geometry | None:
    given = st.file_uploader(
        "A config.json of Hugging Face", "json", key="memory.config", max_upload_size=MAX_CONFIG_BYTES >> 20
    )
    text = st.text_area("Or its text", key="memory.config.text", max_chars=MAX_CONFIG_BYTES, height=100, **KEEP)
    if given is not None:
        return from_config(given.getvalue(), source=given.name)
    return from_config(text) if text.strip() else None


def context(geometry: Geometry | None) -> Settings:
    """What the context is asked for."""
    left, right = st.columns(2, gap="small")
    n_ctx = left.number_input(
        "Context (n_ctx)", 0, MAX_PLAN_CTX, 8192, 1024, key="memory.ctx", help="0: as long as in training", **KEEP
    )
    slots = right.number_input("Slots (n_seq_max)", 1, MAX_PLAN_SEQ, 1, key="memory.slots", **KEEP)
    type_k = left.selectbox("K type (type_k)", KV_TYPES, KV_TYPES.index("f16"), key="memory.type_k", **KEEP)
    type_v = right.selectbox("V type (type_v)", KV_TYPES, KV_TYPES.index("f16"), key="memory.type_v", **KEEP)
    n_ubatch = left.number_input("n_ubatch", 1, MAX_BATCH, 512, 128, key="memory.ubatch", **KEEP)
    rules = right.selectbox(
        "Version", list(Rules), list(Rules).index(Rules.MID_2025), Rules.words.fget, key="memory.rules", **KEEP
    )
    windows = geometry is not None and geometry.swa_type is not SWAType.NONE
    with st.container(horizontal=True, gap="small"):
        flash = st.checkbox("Flash attention", key="memory.flash", width="content", **KEEP)
        full = st.checkbox("swa_full", key="memory.swa_full", disabled=not windows, width="content", **KEEP)
        unified = rules is Rules.STREAMS and st.checkbox("kv_unified", key="memory.unified", width="content", **KEEP)
    return Settings(
        n_ctx=int(n_ctx),
        n_seq_max=int(slots),
        n_ubatch=int(n_ubatch),
        type_k=type_k,
        type_v=type_v,
        flash_attn=flash,
        swa_full=full and windows,
        rules=rules,
        kv_unified=unified,
    )


def shared(geometry: Geometry, settings: Settings) -> None:
    """What each slot gets of n_ctx; nothing if there is no n_ctx, which the results say."""
    with suppress(ParamError):
        st.caption(share(geometry, settings))


def budget() -> tuple[int, int]:
    """Bytes of memory, and those of them that the caches cannot have."""
    left, right = st.columns(2, gap="small")
    most = float(MAX_BUDGET // GIB)
    memory = left.number_input("Memory (GiB)", 0.0, most, 8.0, 1.0, key="memory.budget", **KEEP)
    taken = right.number_input(
        "Of it for weights (GiB)",
        0.0,
        most,
        0.0,
        0.5,
        key="memory.taken",
        help="The model's weights and the compute buffers share the memory with the caches.",
        **KEEP,
    )
    return int(memory * GIB), int(taken * GIB)
