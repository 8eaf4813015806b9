"""Step through a scenario: the cells, what happened, the mask and the memory after each operation."""

import streamlit as st

from app import controls, forms, panels, session

WIDE = 730
"""Pixels of the pictures' column; on a page too narrow for both columns the other one goes below."""

SENTENCES_HEIGHT = 385
"""Pixels of the panel that scrolls."""


@st.fragment
def stepper() -> None:
    """The stepper bar and all that follows it; a step runs nothing else.

    The map is sent first and the mask last, so that the browser draws the one while the other is worked out.
    """
    bar = st.container()
    moment = session.moment()
    with st.container(horizontal=True):
        pictures, words = st.container(width=WIDE), st.container()
    with pictures.container(border=True, gap="xsmall"):
        panels.cells(moment)
    with bar:
        controls.bar()
    with words.container(border=True, height=SENTENCES_HEIGHT, gap="xsmall"):
        panels.happened(moment)
        panels.sequences(moment)
    with words.container(border=True, gap="xsmall"):
        panels.memory(moment)
    with pictures.container(border=True, gap="xsmall"):
        panels.mask(moment)


with st.sidebar:
    st.markdown("#### kvmodel")
    st.caption("llama.cpp's KV cache, cell by cell")
    forms.editor()
controls.header()
stepper()
