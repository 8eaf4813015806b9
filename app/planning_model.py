"""The model of the Memory page: a known one, a GGUF file or a config.json."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from app import session
from app.planning_words import facts, problem_words
from app.wording import plain
from kvmodel.errors import KVModelError
from kvmodel.formats.errors import FormatError
from kvmodel.geometry import Geometry
from kvmodel.limits import MAX_CONFIG_BYTES
from kvmodel.memory import model_name
from kvmodel.memory.names import shown
from kvmodel.models import find, from_config, from_gguf, from_gguf_bytes, known

KEEP: dict[str, Any] = {"persist_state": "session"}
KNOWN, GGUF, CONFIG = "Known model", "GGUF file", "config.json"
FIRST_MODEL = "Llama 3.1 8B"
MAX_PATH = 4096
"""Characters of a path: what Linux allows."""


@dataclass(frozen=True)
class Given:
    """One way in which a visitor gave a model.

    Attributes:
        key: of the input that holds it.
        name: what to call it in a sentence.
        read: what makes a geometry of it.
    """

    key: str
    name: str
    read: Callable[[], Geometry]


def model() -> Geometry | None:
    """The model with what there is to say about it, or what is wrong with it; None as long as there is none."""
    kind = st.segmented_control(
        "Model", [KNOWN, GGUF, CONFIG], default=KNOWN, required=True, key="memory.source", width="stretch", **KEEP
    )
    try:
        geometry = {KNOWN: _known, GGUF: _gguf, CONFIG: _config}[kind]()
    except KVModelError as problem:
        st.error(plain(problem_words(problem)))
        return None
    if geometry is not None:
        for note in geometry.notes:
            st.caption(plain(note))
    return geometry


def _known() -> Geometry:
    names = list(known())
    name = st.selectbox(
        "Known model",
        names,
        names.index(FIRST_MODEL),
        key="memory.model",
        label_visibility="collapsed",
        help="Type a part of the name",
        **KEEP,
    )
    geometry = find(name)
    st.markdown(f":small[{plain(facts(geometry))} [Source]({geometry.source})]")
    return geometry


def _gguf() -> Geometry | None:
    file = st.file_uploader(
        "A GGUF file, or its first megabytes", "gguf", max_upload_size=64, **_noted(GGUF, "memory.gguf")
    )
    path = st.text_input("Or path of a GGUF file", max_chars=MAX_PATH, **_noted(GGUF, "memory.path"), **KEEP).strip()
    if file is None and not path:
        st.caption("Only the header is read, so a path on this machine may lead to a file of any size.")
    given = []
    if file is not None:
        read = partial(from_gguf_bytes, file.getbuffer(), source=file.name)
        given.append(Given("memory.gguf", f"the uploaded file {shown(file.name)}", read))
    if path:
        given.append(Given("memory.path", "the file at the path", partial(_at, path)))
    return _last(GGUF, given)


def _config() -> Geometry | None:
    file = st.file_uploader(
        "A config.json of Hugging Face",
        "json",
        max_upload_size=MAX_CONFIG_BYTES >> 20,
        **_noted(CONFIG, "memory.config"),
    )
    text = st.text_area(
        "Or its text", max_chars=MAX_CONFIG_BYTES, height=100, **_noted(CONFIG, "memory.config.text"), **KEEP
    )
    given = []
    if file is not None:
        read = partial(from_config, file.getvalue(), source=file.name)
        given.append(Given("memory.config", f"the uploaded file {shown(file.name)}", read))
    if text.strip():
        given.append(Given("memory.config.text", "the pasted text", partial(from_config, text)))
    return _last(CONFIG, given)


def _noted(place: str, key: str) -> dict[str, Any]:
    """The key of an input, and that the session notes when it is given something."""
    return {"key": key, "on_change": session.note_given, "args": (place, key)}


def _last(place: str, given: list[Given]) -> Geometry | None:
    """The model that was given last, with its name and shape, and where it comes from if there are several.

    Raises:
        KVModelError: it cannot be read.
    """
    if not given:
        return None
    last = session.given_last(place)
    chosen = next((one for one in given if one.key == last), given[0])
    for other in given:
        if other is not chosen:
            st.caption(plain(f"Shown is {chosen.name}, as it was given last; {other.name} is left aside."))
    geometry = chosen.read()
    st.markdown(f":small[{plain(f'{model_name(geometry)}: {facts(geometry)}')}]")
    return geometry


def _at(path: str) -> Geometry:
    """The model of a file on this machine; what is wrong with its bytes is told without any of them.

    Raises:
        KVModelError: there is no such file, or it is no GGUF file with a model in it.
    """
    try:
        return from_gguf(path)
    except FormatError as problem:
        told = f"has a damaged header at byte {problem.offset:,}" if problem.offset else "does not begin with GGUF"
        raise KVModelError(f"The file at this path {told}.") from problem
