"""The arrow keys. A button's shortcut is lost when it is pressed again before its run is over; these are counted."""

from pathlib import Path

import streamlit as st

from app import session

_listener = st.components.v2.component(
    "kvmodel_arrow_keys", js=Path(__file__).with_name("keyboard.js").read_text(encoding="utf-8")
)


def arrow_keys() -> None:
    """Let the left and right arrow keys step wherever they are not needed for something else."""
    _listener(key=session.ARROWS, data=session.counting(), on_pressed_change=session.follow_arrows, width=1, height=1)
