"""Step through a scenario: the cells, what happened, the mask and the memory after each operation."""

from time import sleep

import streamlit as st

from app import controls, forms, maps, opening, panels, session
from app.beside import beside
from app.configuring import button as configuration
from app.lower import lower
from app.share import share

WIDE, WIDE_FOR_TWO = 730, 784
"""Pixels of the pictures' column, with one map or two; on a page too narrow for both columns the other goes below."""

SENTENCES_HEIGHT = 385
"""Pixels of the panel that scrolls; style sheet and key listener know it by its key, `beside`."""

HEAD_START = 0.1
"""Seconds for the map to be sent and drawn before the browser hears of the other pictures, which would delay it."""


def stepper(every: float | None) -> None:
    """The stepper bar and all that follows it; a step runs nothing else.

    The map is built before anything is sent, and sent first, with a head start; the mask is last.

    Args:
        every: seconds between two steps while playing, None while not.
    """
    session.tick()
    moment = session.moment()
    built = maps.pictures(moment)
    frame = st.container(gap="xsmall")
    bar = frame.container()
    with frame.container(horizontal=True):
        wide = WIDE if len(moment.parts) == 1 else WIDE_FOR_TWO
        pictures, words = st.container(width=wide, gap="xsmall"), st.container(gap="xsmall")
    with pictures.container(border=True, gap="xsmall"):
        left = maps.cells(moment, built)
    sleep(HEAD_START)
    with bar:
        controls.bar()
    for draw in left:
        draw()
    with words.container(border=True, height=SENTENCES_HEIGHT, gap="xsmall", key="beside"):
        beside(moment)
    with words.container(border=True, gap="xsmall"):
        panels.memory(moment)
    with pictures.container(border=True, gap="xsmall"):
        lower(moment)
    session.set_address()
    if session.seconds() != every:
        st.rerun()


def header() -> None:
    """The scenario, its configuration, and the ways in and out."""
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        with st.container(horizontal=True, vertical_alignment="center"):
            controls.picker()
            configuration()
        with st.container(horizontal=True, width="content"):
            if st.button("Share", icon=":material/share:"):
                share()
            opening.opener()


opening.follow_address()
with st.sidebar:
    st.markdown("#### kvmodel")
    st.caption("llama.cpp's KV cache, cell by cell")
    forms.editor()
header()
st.fragment(stepper, run_every=session.seconds())(session.seconds())
