"""Compare: the same operations under two configurations, side by side, in step, with the differences marked."""

import streamlit as st

from app import comparing, controls, session
from app.opening import follow_address, opener
from app.share import share

SENTENCES_HEIGHT = 230
"""Pixels of the panel that tells the differences."""


def compare(every: float | None) -> None:
    """The stepper bar and both sides; a step runs nothing else.

    Args:
        every: seconds between two steps while playing, None while not.
    """
    session.tick()
    bar = st.container()
    sides = session.pair().sides(session.visit().view.step)
    with st.container(horizontal=True):
        for side in sides:
            with st.container(width=comparing.SIDE, border=True, gap="xsmall"):
                comparing.one_side(side)
    with bar:
        controls.bar(grain=False)
    with st.container(border=True, height=SENTENCES_HEIGHT, gap="xsmall"):
        comparing.told()
    session.set_address()
    if session.seconds() != every:
        st.rerun()


follow_address()
with st.sidebar:
    st.markdown("#### kvmodel")
    st.caption("llama.cpp's KV cache, cell by cell")
with st.container(horizontal=True, horizontal_alignment="distribute"):
    controls.picker()
    with st.container(horizontal=True, width="content"):
        if st.button("Share", icon=":material/share:"):
            share()
        opener()
comparing.second()
st.fragment(compare, run_every=session.seconds())(session.seconds())
