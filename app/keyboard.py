"""The keys that step, counted: a shortcut pressed again before its run is over would be lost."""

from pathlib import Path

import streamlit as st

from app import session

_listener = st.components.v2.component(
    "kvmodel_keys", js=Path(__file__).with_name("keyboard.js").read_text(encoding="utf-8")
)


def stepping_keys() -> None:
    """Let arrows, Home and End step wherever they are not needed for something else."""
    _listener(key=session.KEYS, data=session.counting(), on_pressed_change=session.follow_keys, width=1, height=1)
