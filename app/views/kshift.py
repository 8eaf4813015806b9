"""K-shift: one key before, after, and made fresh at its new position, pair by pair."""

import streamlit as st

from app import keys, session
from app.controls import showing
from app.panels import draw, headed
from kvmodel.errors import KVModelError
from kvmodel.figures import kshift_arrows, kshift_heatmap, kshift_table
from kvmodel.figures.alt import describe_kshift
from kvmodel.kshift import KShiftReport

INPUTS_WIDTH, PICTURES_WIDTH = 330, 760
"""Pixels of both columns; on a page too narrow for them the pictures go below the inputs."""


def tell(report: KShiftReport) -> None:
    """The result in figures and one sentence."""
    with st.container(horizontal=True, gap="medium"):
        st.metric("position", f"{report.pos:,} to {report.new_pos:,}", width="content")
        st.metric("rotated by", f"{report.times * report.k_shift:+,} positions", width="content")
        st.metric("largest difference", f"{report.error:.2g}", width="content")
        st.metric("length, after / fresh", f"{report.growth:.3f}", width="content")
    if report.times * report.k_shift == report.new_pos - report.pos:
        st.caption("A rotation by the change of position gives the key that the new position would have had.")
    else:
        st.caption(
            "The rotation goes the wrong way: seq_div records old minus new, so the key points away from where it is"
            " looked for."
        )


@st.fragment
def kshift() -> None:
    """Inputs at the left, the key at the right."""
    moment = session.moment()
    part = session.half(moment.parts)
    if part.is_recurrent:
        st.info("This scenario runs on a recurrent cache, which has no keys to rotate. Choose another on the Stepper.")
        return
    with st.container(horizontal=True):
        with st.container(border=True, width=INPUTS_WIDTH, gap="small"):
            st.markdown("**Which key, and how it is rotated**")
            pending, head = keys.which_key(moment, part)
            try:
                report = keys.report(part, pending, head)
            except KVModelError as problem:
                st.error(str(problem))
                return
        with st.container(width=PICTURES_WIDTH):
            show(report)


def show(report: KShiftReport) -> None:
    """The key as arrows and as a heatmap, or as a table."""
    with st.container(border=True, gap="xsmall"):
        title, beside = headed()
        title.markdown("**What the shift does to this key**")
        with beside:
            showing()
        tell(report)
    with st.container(border=True, gap="xsmall"):
        st.markdown("**Each pair of dimensions turns by its own angle**")
        if session.visit().view.tables:
            st.dataframe(kshift_table(report), hide_index=True, height=500)
        else:
            draw(kshift_arrows(report, theme=session.theme()), alt=describe_kshift(report))
            draw(kshift_heatmap(report, theme=session.theme()), alt=describe_kshift(report))


with st.sidebar:
    st.markdown("#### kvmodel")
    st.caption("llama.cpp's KV cache, cell by cell")
kshift()
