"""Opening a scenario of one's own: an empty one, a file, or a pasted document."""

import streamlit as st

from app import session
from app.plays import Progress
from app.wording import plain
from kvmodel.configs import CacheConfig
from kvmodel.limits import MAX_SCENARIO_BYTES
from kvmodel.scenario import Scenario, ScenarioError

EMPTY = Scenario(title="An empty cache", cache=CacheConfig(kv_size=64, n_seq_max=4))
"""What a scenario of one's own begins with."""


def opener() -> None:
    """The ways to another scenario; a document that is none leaves the present one and says why."""
    session.shut_opener()
    popover = st.popover("Open a scenario", icon=":material/folder_open:", key=session.OPENING, on_change="rerun")
    with popover:
        if st.button("Start with an empty cache", width="stretch"):
            _open(EMPTY)
        with st.form("open", border=False):
            limit = MAX_SCENARIO_BYTES >> 20
            key = session.file_key()
            file = st.file_uploader("A scenario as a JSON file", "json", key=key, max_upload_size=limit)
            text = st.text_area("Or the JSON itself", key=session.OPEN_TEXT, max_chars=MAX_SCENARIO_BYTES, height=120)
            sent = st.form_submit_button("Open this scenario")
        if sent and file and text.strip():
            st.error("A file and a text are given; allowed: one of both.")
        elif sent:
            _read(file.getvalue() if file else text)


def follow_address() -> None:
    """Show what a permalink points to; one that names nothing says so, and nothing is lost."""
    try:
        session.adopt_address(Progress())
    except ScenarioError as problem:
        st.error(f"The address was not followed: {plain(str(problem))}.")


def _read(document: str | bytes) -> None:
    try:
        scenario = Scenario.from_json(document)
    except ScenarioError as problem:
        st.error(plain(str(problem)))
    else:
        _open(scenario)


def _open(scenario: Scenario) -> None:
    session.show(scenario, told=Progress())
    session.close_opener()
    st.rerun()
