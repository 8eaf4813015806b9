"""Taking away what is seen: an address, the scenario, a Python script, a report, tables and pictures."""

from typing import Any

import pandas as pd
import streamlit as st

from app import session
from app.lower import mask_of
from app.moment import Moment
from app.wording import plain
from kvmodel.errors import ParamError
from kvmodel.figures import cells_table, events_table, mask_table, sequences_table, states_table, usage_table
from kvmodel.report import to_markdown
from kvmodel.scenario import ScenarioError
from kvmodel.script import to_script

FORMATS = {"png": "PNG", "svg": "SVG"}


@st.dialog("Share", width="medium", on_dismiss="rerun")
def share() -> None:
    """Everything that can be taken away from this step."""
    link()
    documents()
    tables(session.moment())
    pictures()


def link() -> None:
    """The address that shows the same again."""
    st.markdown("**Address** of this scenario, step, view and selection")
    try:
        st.code(session.permalink(), language=None, wrap_lines=True, height=90)
    except ScenarioError as problem:
        st.caption(f"{problem}")


def documents() -> None:
    """The scenario as a document and as a program, and a report of this step."""
    scenario, view = session.visit().scenario, session.visit().view
    st.markdown("**Files**")
    with st.container(horizontal=True):
        save("Scenario (JSON)", scenario.to_json(), "scenario.json", "application/json")
        save("Python script", to_script(scenario), "scenario.py", "text/x-python")
        report = to_markdown(session.visit().timeline, view.step, view.beat or None)
        save("Report (Markdown)", report, f"step-{view.step}.md", "text/markdown")


def tables(moment: Moment) -> None:
    """The tables behind the pictures of this step."""
    part, tokens = session.half(moment.parts), moment.timeline.tokens
    st.markdown(f"**Tables** of step {moment.step}" + (f", {part.name}" if len(moment.parts) > 1 else "") + ", as CSV")
    found = {
        "cells": states_table(part, tokens=tokens) if part.is_recurrent else cells_table(part, tokens=tokens),
        "events": events_table(moment.timeline.events_of(moment.step)),
        "sequences": sequences_table(part),
        "memory": usage_table(moment.timeline, part.name),
    }
    try:
        found |= mask_shown(moment)
    except ParamError as problem:
        st.caption(f"Without the mask, which is too large: {plain(str(problem))}.")
    with st.container(horizontal=True):
        for name, table in found.items():
            save(name.capitalize(), table.to_csv(index=False), f"step-{moment.step}-{name}.csv", "text/csv")


def mask_shown(moment: Moment) -> dict[str, pd.DataFrame]:
    """The table of the mask that the page shows, if it shows one.

    Raises:
        ParamError: the mask takes too much memory.
    """
    chosen = mask_of(moment)
    if chosen is None:
        return {}
    frame, ubatch = chosen
    part, causal = session.half(session.parts_at(frame)), moment.timeline.scenario.context.causal_attn
    return {"mask": mask_table(part, ubatch, causal=causal, tokens=moment.timeline.tokens)}


def save(label: str, data: str, file_name: str, mime: str) -> None:
    """A button that saves a file."""
    st.download_button(label, data, file_name, mime, icon=":material/download:", on_click="ignore")


def pictures() -> None:
    """What the pictures are saved as."""
    st.markdown("**Pictures**: point at one and press its camera")
    options: dict[str, Any] = {"format_func": FORMATS.__getitem__, "horizontal": True, "persist_state": "session"}
    st.radio("Save pictures as", list(FORMATS), key=session.PICTURES, **options)
