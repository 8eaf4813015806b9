"""The least a stepping page can be: one fragment, one button, one heatmap of 4,096 squares."""

import numpy as np
import plotly.graph_objects as go
import streamlit as st

SIDE = 64


def forward() -> None:
    st.session_state["step"] += 1


@st.fragment
def stepper() -> None:
    st.button("Next", shortcut="Right", on_click=forward)
    squares = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    codes = (squares < SIDE * st.session_state["step"]).astype(np.uint8)
    figure = go.Figure(go.Heatmap(z=codes, zmin=0, zmax=1, showscale=False), layout={"height": 330})
    st.plotly_chart(figure, theme=None)


st.set_page_config(layout="wide")
st.session_state.setdefault("step", 0)
stepper()
