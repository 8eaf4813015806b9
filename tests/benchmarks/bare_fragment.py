"""The least a stepping page can be: one fragment, one button, one heatmap of as many squares as its address says."""

import numpy as np
import plotly.graph_objects as go
import streamlit as st

CELLS = 4096
STEPS = 64
"""Steps until the heatmap is full."""


def forward() -> None:
    st.session_state["step"] += 1


@st.fragment
def stepper(cells: int) -> None:
    st.button("Next", shortcut="Right", on_click=forward)
    squares = np.arange(cells).reshape(1 << (cells.bit_length() - 1) // 2, -1)
    codes = (squares * STEPS < cells * st.session_state["step"]).astype(np.uint8)
    figure = go.Figure(go.Heatmap(z=codes, zmin=0, zmax=1, showscale=False), layout={"height": 330})
    st.plotly_chart(figure, theme=None)


st.set_page_config(layout="wide")
st.session_state.setdefault("step", 0)
stepper(int(st.query_params.get("cells", CELLS)))
