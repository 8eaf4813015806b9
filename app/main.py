"""The frame of the app: page settings and the list of pages."""

from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent

st.set_page_config(page_title="kvmodel", page_icon=HERE / "icon.svg", layout="wide", initial_sidebar_state=230)
st.html(HERE / "style.css")
PAGES = [
    st.Page("views/stepper.py", title="Stepper"),
    st.Page("views/compare.py", title="Compare"),
    st.Page("views/kshift.py", title="K-shift", url_path="k-shift"),
    st.Page("views/memory.py", title="Memory"),
]
st.navigation(PAGES).run()
