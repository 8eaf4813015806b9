"""Up to four configurations side by side: the inputs at the left are A, the others name what differs from it."""

from dataclasses import replace
from typing import Any

import streamlit as st

from app import session
from app.planning import KEEP, Asked
from app.planning_results import picture, table
from app.planning_words import refusal_words
from app.wording import mib, plain
from kvmodel.errors import KVModelError
from kvmodel.figures import plans_figure, plans_table
from kvmodel.figures.memory_words import describe_plans
from kvmodel.ggml import KV_TYPES
from kvmodel.limits import MAX_PLAN_CTX, MAX_PLAN_SEQ
from kvmodel.memory import MemoryPlan, Rules, plan, refusals
from kvmodel.models import find, known

OTHERS = ("B", "C", "D")
ON_OFF = {True: "on", False: "off"}
AS_A = "as A"


def compare(asked: Asked, *, tables: bool) -> None:
    """What differs from A, and all of them below each other.

    Raises:
        KVModelError: A cannot be planned.
    """
    first = plan(asked.geometry, asked.settings)
    plans = {"A": first}
    with st.container(border=True, gap="small"):
        st.markdown("**What is different from A, the inputs at the left?**")
        for name, column in zip(OTHERS, st.columns(len(OTHERS), gap="medium"), strict=True):
            with column:
                other = one(name, first)
            if other is not None:
                plans[name] = other
    with st.container(border=True, gap="xsmall"):
        side_by_side(asked, plans, tables=tables)


def one(name: str, first: MemoryPlan) -> MemoryPlan | None:
    """The plan of one column, with what is wrong with it; None if nothing differs from A."""
    st.markdown(f"**{name}**")
    model, changes = differences(name)
    if model is None and not changes:
        return None
    try:
        found = plan(first.geometry if model is None else find(model), replace(first.settings, **changes))
    except KVModelError as problem:
        st.error(plain(str(problem)))
        return None
    for refusal in refusals(found.geometry, found.settings):
        st.error(plain(refusal_words(refusal, found.settings)))
    return found


def differences(name: str) -> tuple[str | None, dict[str, Any]]:
    """The model and the settings of one column that are not those of A."""
    key = f"memory.{name}"
    more: dict[str, Any] = {"placeholder": AS_A, **KEEP}
    model = st.selectbox("Model", list(known()), None, key=f"{key}.model", **more)
    settings = {
        "n_ctx": st.number_input("n_ctx", 0, MAX_PLAN_CTX, None, 1024, key=f"{key}.ctx", **more),
        "n_seq_max": st.number_input("Slots", 1, MAX_PLAN_SEQ, None, key=f"{key}.slots", **more),
        "type_k": st.selectbox("K type", KV_TYPES, None, key=f"{key}.type_k", **more),
        "type_v": st.selectbox("V type", KV_TYPES, None, key=f"{key}.type_v", **more),
        "flash_attn": st.selectbox("Flash attention", [True, False], None, ON_OFF.__getitem__, f"{key}.flash", **more),
        "swa_full": st.selectbox("swa_full", [True, False], None, ON_OFF.__getitem__, f"{key}.swa_full", **more),
        "rules": st.selectbox("Version", list(Rules), None, Rules.words.fget, f"{key}.rules", **more),
    }
    return model, {field: value for field, value in settings.items() if value is not None}


def side_by_side(asked: Asked, plans: dict[str, MemoryPlan], *, tables: bool) -> None:
    """The plans as bars or as a table, and the whole comparison as a file."""
    rows = plans_table(plans, budget=asked.budget)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        fitting = [name for name, each in plans.items() if each.buffer_bytes <= asked.budget]
        words = f"{', '.join(fitting)} fit" if len(fitting) > 1 else f"{fitting[0]} fits" if fitting else "None fits"
        st.markdown(f"**{words} in {mib(asked.budget)}**", width="content")
        st.download_button(
            "Download CSV", rows.to_csv(index=False), "memory-compared.csv", "text/csv", on_click="ignore"
        )
    if tables:
        table(rows)
        return
    picture(plans_figure(plans, budget=asked.budget, theme=session.theme()), describe_plans(plans))
    saved = plans["A"].buffer_bytes
    for name, each in plans.items():
        less = saved - each.buffer_bytes
        against = "" if name == "A" else f", {mib(abs(less))} {'less' if less >= 0 else 'more'} than A"
        st.caption(plain(f"{name}: {each.geometry.name}, {told(each)}{against}"))


def told(planned: MemoryPlan) -> str:
    """The settings of a plan in a line."""
    asked, sizes = planned.settings, planned.context
    flash = ", flash attention" if sizes.flash_attn else ""
    full = ", swa_full" if asked.swa_full else ""
    return (
        f"n_ctx {sizes.n_ctx:,}, {asked.n_seq_max} slot{'s' if asked.n_seq_max > 1 else ''}, K in {asked.type_k}, "
        f"V in {asked.type_v}{flash}{full}, {asked.rules.words}"
    )
