"""Memory: whether the caches of a model fit, what each choice saves, and why a log says something else."""

import streamlit as st

from app import planning, planning_compare, planning_log, planning_results
from app.planning_model import KEEP
from app.planning_words import problem_words
from app.wording import plain
from kvmodel.errors import KVModelError

INPUTS_WIDTH, ANSWERS_WIDTH = 330, 760
"""Pixels of both columns; on a page too narrow for them the answers go below the inputs."""

PAGES = {
    "Plan": planning_results.results,
    "Compare": planning_compare.compare,
    "Reconcile a log": planning_log.reconciled,
}


@st.fragment
def memory() -> None:
    """The question and its answer in a sentence; below them the inputs, and what there is to say about them."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown("#### How much memory do the caches take, and does it fit?", width="content")
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            page = st.segmented_control(
                "Show", list(PAGES), default="Plan", required=True, key="memory.page",
                label_visibility="collapsed", **KEEP,
            )  # fmt: skip
            tables = st.toggle("Show tables", key="memory.tables", **KEEP)
    said = st.container()
    with st.container(horizontal=True):
        with st.container(border=True, width=INPUTS_WIDTH, gap="small"):
            asked = planning.asked()
        with st.container(width=ANSWERS_WIDTH):
            if asked is None:
                st.info("Give a model first.")
                return
            try:
                PAGES[page](asked, said, tables=tables)
            except KVModelError as problem:
                st.error(plain(problem_words(problem)))


with st.sidebar:
    st.markdown("#### kvmodel")
    st.caption("llama.cpp's KV cache, cell by cell")
memory()
