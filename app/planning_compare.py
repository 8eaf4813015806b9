"""Up to four configurations side by side: the inputs are A, the others name what differs from it."""

from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import session
from app.panels import draw
from app.planning import Asked
from app.planning_model import KEEP
from app.planning_results import table
from app.planning_words import refusal_words
from app.wording import plain
from kvmodel.errors import KVModelError
from kvmodel.figures import plans_figure, plans_table
from kvmodel.figures.memory_words import describe_plans
from kvmodel.ggml import KV_TYPES
from kvmodel.limits import MAX_PLAN_CTX, MAX_PLAN_SEQ
from kvmodel.memory import MemoryPlan, Rules, bytes_words, mib_words, model_name, plan, refusals
from kvmodel.models import find, known
from kvmodel.words import count, joined

OTHERS = ("B", "C", "D")
SWITCH: dict[str, Any] = {
    "options": [True, False],
    "index": None,
    "format_func": {True: "on", False: "off"}.__getitem__,
}
AS_A = "as A"
WIDTH = 222
"""Pixels of the inputs of one plan: three stand beside each other on a wide page."""


def compare(asked: Asked, said: DeltaGenerator, *, tables: bool) -> None:
    """All plans below each other, and below them what differs from A; which ones fit in its own place.

    Raises:
        KVModelError: A cannot be planned.
    """
    plans, problems = {"A": plan(asked.geometry, asked.settings)}, {}
    above = st.container(border=True, gap="xsmall")
    with st.container(border=True, gap="small"):
        st.markdown("**What is different from A, which is what the inputs say?**")
        with st.container(horizontal=True, gap="small"):
            found = {name: differences(name) for name in OTHERS}
    for name, (model, changes) in found.items():
        if model is None and not changes:
            continue
        try:
            geometry = asked.geometry if model is None else find(model)
            plans[name] = plan(geometry, replace(asked.settings, **changes))
        except KVModelError as problem:
            problems[name] = [str(problem)]
    for name, each in plans.items():
        problems[name] = [refusal_words(one, each.settings) for one in refusals(each.geometry, each.settings)]
    fitting = [name for name, each in plans.items() if each.buffer_bytes <= asked.budget and not problems[name]]
    words = f"{joined(fitting)} fit{'s' * (len(fitting) == 1)}" if fitting else "None fits"
    said.markdown(f"##### {words} in {bytes_words(asked.budget)}")
    with above:
        side_by_side(asked, plans, problems, tables=tables)


def differences(name: str) -> tuple[str | None, dict[str, Any]]:
    """The model and the settings of one column that are not those of A."""
    key = f"memory.{name}"
    more: dict[str, Any] = {"placeholder": AS_A, **KEEP}
    place = st.container(width=WIDTH)
    model = place.selectbox(f"Model of {name}", list(known()), None, key=f"{key}.model", **more)
    left, right = place.columns(2, gap="small")
    settings = {
        "n_ctx": left.number_input(f"n_ctx ({name})", 0, MAX_PLAN_CTX, None, 1024, key=f"{key}.ctx", **more),
        "n_seq_max": right.number_input(f"Slots ({name})", 1, MAX_PLAN_SEQ, None, key=f"{key}.slots", **more),
        "type_k": left.selectbox(f"K type ({name})", KV_TYPES, None, key=f"{key}.type_k", **more),
        "type_v": right.selectbox(f"V type ({name})", KV_TYPES, None, key=f"{key}.type_v", **more),
        "flash_attn": left.selectbox(f"Flash attn ({name})", key=f"{key}.flash", **SWITCH, **more),
        "swa_full": right.selectbox(f"swa_full ({name})", key=f"{key}.swa_full", **SWITCH, **more),
        "rules": place.selectbox(f"Version ({name})", list(Rules), None, Rules.words.fget, f"{key}.rules", **more),
    }
    return model, {field: value for field, value in settings.items() if value is not None}


def side_by_side(asked: Asked, plans: dict[str, MemoryPlan], problems: dict[str, list[str]], *, tables: bool) -> None:
    """The plans as bars or as a table, and the whole comparison as a file."""
    rows = plans_table(plans, budget=asked.budget)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown("**Side by side**", width="content")
        st.download_button(
            "Download CSV", rows.to_csv(index=False), "memory-compared.csv", "text/csv", on_click="ignore"
        )
    for name, words in problems.items():
        for problem in words:
            st.error(plain(f"{name}: {problem}"))
    if tables:
        table(rows)
        return
    draw(plans_figure(plans, budget=asked.budget, theme=session.theme()), alt=describe_plans(plans))
    saved = plans["A"].buffer_bytes
    for name, each in plans.items():
        against = "" if name == "A" else f", {difference(saved - each.buffer_bytes)}"
        st.caption(plain(f"{name}: {model_name(each.geometry)}, {told(each)}{against}"))


def difference(less: int) -> str:
    """How a plan stands to A, of so many bytes less."""
    return f"{mib_words(abs(less))} {'less' if less > 0 else 'more'} than A" if less else "as much as A"


def told(planned: MemoryPlan) -> str:
    """The settings of a plan in a line."""
    asked, sizes = planned.settings, planned.context
    flash = ", flash attention" if sizes.flash_attn else ""
    full = ", swa_full" if asked.swa_full else ""
    return (
        f"n_ctx {sizes.n_ctx:,}, {count(asked.n_seq_max, 'slot')}, K in {asked.type_k}, "
        f"V in {asked.type_v}{flash}{full}, {asked.rules.words}"
    )
