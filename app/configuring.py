"""The configuration of the scenario as a form: made from the fields of its kind, checked by their own rules."""

import re
from types import UnionType
from typing import Any, Literal, get_args, get_origin

import streamlit as st
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from app import editing, session
from app.plays import Progress
from app.wording import configuration, plain
from kvmodel.configs import KINDS, ContextConfig, Kind, carried
from kvmodel.errors import KVModelError
from kvmodel.ggml import KV_TYPES
from kvmodel.ops import Model
from kvmodel.scenario import first_problem

KIND_NAMES: dict[Kind, str] = {
    "unified": "unified (mid-2025)",
    "iswa": "iswa: a full and a window half (mid-2025)",
    "legacy": "legacy (January 2025)",
    "recurrent": "recurrent (January 2025)",
    "memory_recurrent": "memory_recurrent (mid-2025)",
}

COLUMNS = 3
"""Inputs in a row."""


def button() -> None:
    """The configuration in a few words; pressed, it can be changed."""
    if st.button(configuration(session.visit().scenario), icon=":material/tune:", help="Change the configuration"):
        configure("own")


@st.dialog("Configuration", width="large")
def configure(whose: Literal["own", "other"]) -> None:
    """The same operations under another configuration: the visitor's own, or the one it is compared with."""
    scenario = session.visit().scenario if whose == "own" else session.visit().compared
    kinds = list(KINDS)
    kind = st.selectbox("Kind of cache", kinds, kinds.index(scenario.cache.kind), format_func=KIND_NAMES.__getitem__)
    with st.form(f"configuration.{whose}.{kind}", border=False):
        cache = inputs(KINDS[kind], carried(scenario.cache, kind), f"configuration.{whose}.{kind}")
        st.markdown("**Around the cache**")
        context = inputs(ContextConfig, scenario.context.model_dump(), f"configuration.{whose}.context")
        sent = st.form_submit_button("Play with this configuration", type="primary")
    if sent:
        _send(whose, kind, cache, context)


def _send(whose: str, kind: Kind, cache: dict[str, Any], context: dict[str, Any]) -> None:
    try:
        wanted = KINDS[kind].model_validate({**cache, "kind": kind}), ContextConfig.model_validate(context)
        (editing.configure if whose == "own" else editing.compare_with)(*wanted, Progress())
    except ValidationError as problem:
        st.error(plain(first_problem(problem)))
    except KVModelError as problem:
        st.error(plain(str(problem)))
    else:
        st.rerun()


def inputs(model: type[Model], values: dict[str, Any], key: str) -> dict[str, Any]:
    """One input a field, three in a row, what is on or off last; what is left open is left out."""
    names = [name for name in model.model_fields if name != "kind"]
    names.sort(key=lambda name: model.model_fields[name].annotation is bool)
    given = {}
    for start in range(0, len(names), COLUMNS):
        for name, place in zip(names[start : start + COLUMNS], st.columns(COLUMNS), strict=False):
            info = model.model_fields[name]
            value = values.get(name, None if info.is_required() else info.default)
            given[name] = _input(place, name, info, value, f"{key}.{name}")
    return {name: value for name, value in given.items() if value is not None}


def _input(place: Any, name: str, info: FieldInfo, value: Any, key: str) -> Any:
    """The input that fits the type of a field."""
    kinds = get_args(info.annotation) if isinstance(info.annotation, UnionType) else (info.annotation,)
    if name in ("type_k", "type_v"):
        return place.selectbox(name, KV_TYPES, KV_TYPES.index(value), key=key)
    if get_origin(kinds[0]) is Literal:
        options = list(get_args(kinds[0]))
        return place.selectbox(name, options, options.index(value) if value in options else 0, key=key)
    if kinds[0] is bool:
        return place.checkbox(name, bool(value), key=key)
    if any(get_origin(kind) is tuple for kind in kinds):
        return _several(place.text_input(name, _listed(value), key=key, help="One value, or one a layer"), name)
    if kinds[0] is str:
        return place.text_input(name, value, key=key)
    step: Any = 0.01 if kinds[0] is float else 1
    return place.number_input(name, value=value, step=step, key=key, placeholder="as llama.cpp")


def _listed(value: Any) -> str:
    """A number, or several with commas."""
    if isinstance(value, tuple):
        return ", ".join(str(int(each)) for each in value)
    return "" if value is None else str(value)


def _several(text: str, name: str) -> Any:
    """The number or numbers of a text, None if it is empty; what is no number is left for the rules to refuse."""
    parts = [part.strip() for part in text.split(",")]
    if parts == [""]:
        return None
    if not all(re.fullmatch(r"-?[0-9]{1,9}", part) for part in parts):
        return text
    numbers = [int(part) for part in parts]
    return numbers[0] if len(numbers) == 1 and name != "swa_layers" else numbers
