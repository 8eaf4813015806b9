"""The answers of the Memory page: whether it fits, what choices save, where memory goes, how it grows."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import session
from app.panels import draw
from app.planning import Asked
from app.planning_model import KEEP
from app.planning_words import longest, refusal_words, verdict
from app.wording import plain
from kvmodel.figures import (
    growth_figure,
    growth_table,
    memory_figure,
    memory_table,
    savings_figure,
    savings_table,
)
from kvmodel.figures.memory_words import describe_growth, describe_memory, describe_savings
from kvmodel.limits import MAX_BATCH, MAX_PLAN_CTX, MAX_PLAN_SEQ
from kvmodel.memory import (
    MemoryPlan,
    beyond_training,
    growth,
    largest_n_ctx,
    log_lines,
    mib_words,
    plan,
    refusals,
    savings,
    shift_refusal,
)

POINTS = 96
"""Points of a curve: one for every few pixels."""

WAYS = {"layer": "By layer", "cache": "By cache", "type": "By type"}
FIELDS = {"n_ctx": "With n_ctx", "n_seq_max": "With slots", "n_ubatch": "With n_ubatch"}
MIB_COLUMN = st.column_config.NumberColumn(format="%.2f")


def results(asked: Asked, said: DeltaGenerator, *, tables: bool) -> None:
    """Everything there is to say about one plan, the answer in a sentence in its own place.

    Raises:
        KVModelError: it cannot be planned.
    """
    planned = plan(asked.geometry, asked.settings)
    found = refusals(asked.geometry, asked.settings)
    said.markdown(f"##### {plain(verdict(planned, asked.budget, found, beside=asked.taken > 0))}")
    for refusal in found:
        st.error(plain(refusal_words(refusal, asked.settings)))
    if planned.parts:
        with st.container(border=True, gap="small"):
            figures(asked, planned)
        for panel in (choices, places, curve):
            with st.container(border=True, gap="xsmall"):
                panel(asked, planned, tables=tables)
    with st.container(border=True, gap="xsmall"):
        st.markdown("**What llama.cpp prints**")
        st.code("\n".join(log_lines(planned)), language=None, wrap_lines=True)


def figures(asked: Asked, planned: MemoryPlan) -> None:
    """Bytes of all, of K and of V, what is left, the longest context, and whether it could be shifted."""
    recurrent = planned.geometry.kind == "recurrent"
    fit = largest_n_ctx(asked.geometry, asked.settings, asked.budget)
    with st.container(horizontal=True, gap="medium"):
        st.metric("all caches", mib_words(planned.buffer_bytes), width="content")
        st.metric("R states" if recurrent else "K", mib_words(planned.k_bytes), width="content")
        st.metric("S states" if recurrent else "V", mib_words(planned.v_bytes), width="content")
        st.metric("left of the budget", mib_words(asked.budget - planned.buffer_bytes), width="content")
        st.metric("longest n_ctx that fits", longest(fit), width="content")
    more = f"One more position of n_ctx takes {planned.bytes_per_position:,} bytes."
    alone = "" if asked.taken else " Weights and compute buffers are not in it: enter theirs as memory for weights."
    st.caption(f"{more}{beyond_training(fit)}{alone}")
    shift = shift_refusal(asked.geometry, asked.settings)
    if shift is not None:
        st.caption(plain(f"No context shift: {shift.reason}"))


def choices(asked: Asked, planned: MemoryPlan, *, tables: bool) -> None:
    """What each other choice would take."""
    found = sorted(savings(asked.geometry, asked.settings), key=lambda saving: saving.total)
    st.markdown(f"**What each other choice saves or costs, against {mib_words(planned.buffer_bytes)} now**")
    if tables:
        table(savings_table(found))
    else:
        shown = savings_figure(found, budget=asked.budget, theme=session.theme())
        draw(shown, alt=describe_savings(found))


def places(_: Asked, planned: MemoryPlan, *, tables: bool) -> None:
    """Where the memory goes."""
    place = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
    place.markdown("**Where the memory goes**", width="content")
    with place.container(horizontal=True, width="content", vertical_alignment="center"):
        by = choice("Stacked", WAYS, "memory.by")
        rows = memory_table(planned, by=by)
        st.download_button(
            "Download CSV", rows.to_csv(index=False), f"memory-by-{by}.csv", "text/csv", on_click="ignore"
        )
    if tables:
        table(rows)
    else:
        draw(memory_figure(planned, by=by, theme=session.theme()), alt=describe_memory(planned))


def curve(asked: Asked, planned: MemoryPlan, *, tables: bool) -> None:
    """How the memory grows with one setting."""
    place = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
    place.markdown("**How it grows**", width="content")
    with place.container(width="content"):
        field = choice("Over", FIELDS, "memory.over")
    now = {
        "n_ctx": planned.context.n_ctx,
        "n_seq_max": asked.settings.n_seq_max,
        "n_ubatch": planned.context.n_ubatch,
    }[field]
    grown = growth(asked.geometry, asked.settings, field, values(field, now))
    if tables:
        table(growth_table(grown))
    else:
        shown = growth_figure(grown, now=now, budget=asked.budget, theme=session.theme())
        draw(shown, alt=describe_growth(grown))


def values(field: str, now: int) -> list[int]:
    """Places of a curve, ascending, the present one among them and about in the middle."""
    least = {"n_ctx": 256, "n_seq_max": 1, "n_ubatch": 32}[field]
    most = max(2 * now, {"n_ctx": 8192, "n_seq_max": 16, "n_ubatch": 2048}[field])
    most = min(most, {"n_ctx": MAX_PLAN_CTX, "n_seq_max": MAX_PLAN_SEQ, "n_ubatch": MAX_BATCH}[field])
    spread = np.linspace(least, most, POINTS).round().astype(int)
    return sorted({*spread.tolist(), now})


def choice(label: str, options: dict[str, str], key: str) -> Any:
    """One of a few ways to look at something."""
    return st.segmented_control(
        label,
        list(options),
        default=next(iter(options)),
        required=True,
        format_func=options.__getitem__,
        key=key,
        label_visibility="collapsed",
        **KEEP,
    )


def table(rows: pd.DataFrame) -> None:
    """A table in the place of a picture; MiB with two decimals."""
    config = {name: MIB_COLUMN for name in rows.columns if name.endswith("MiB")}
    st.dataframe(rows, hide_index=True, height=min(300, 38 + 35 * len(rows)), column_config=config)
