"""Forms that append one operation each: fields as data, checked by the scenario's own rules."""

import re
from typing import Any, NamedTuple

import streamlit as st
from pydantic import TypeAdapter, ValidationError

from app import session
from kvmodel.errors import KVModelError, ParamError
from kvmodel.ops import AnyOp, Op
from kvmodel.scenario import ScenarioError, first_problem

OP: TypeAdapter[AnyOp] = TypeAdapter(Op)


class Field(NamedTuple):
    """One input: an argument of the operation, its label, and its first value; None is left open, as `empty` says."""

    name: str
    label: str
    value: int | float | bool | str | None = None
    empty: str = ""
    kind: type = int


class Form(NamedTuple):
    """One operation: what it does in a sentence, and its inputs, two of one row in a tuple of their own."""

    does: str
    rows: tuple[tuple[Field, ...], ...] = ()


SEQ = (Field("seq", "Sequence (seq)", 0),)
RANGE = (Field("p0", "From (p0)", empty="start"), Field("p1", "Before (p1)", empty="end"))
FORMS = {
    "decode": Form(
        "Stores tokens. Each word of the text is one.",
        (
            (Field("text", "Text", "", "or a number below", str),),
            (Field("n", "Tokens (n)", 1), Field("pos", "From (pos)", empty="newest")),
            (Field("seq", "Sequences", "0", "0, 1", str), Field("n_ubatch", "n_ubatch", empty="as set")),
        ),
    ),
    "seq_rm": Form(
        "Removes a sequence from a range of positions.", ((Field("seq", "Sequence (seq)", empty="every one"),), RANGE)
    ),
    "seq_cp": Form(
        "Lets one sequence share the cells of another.",
        ((Field("src", "From (src)", 0), Field("dst", "To (dst)", 1)), RANGE),
    ),
    "seq_keep": Form("Removes every other sequence.", (SEQ,)),
    "seq_add": Form("Moves the positions of a sequence.", (SEQ, RANGE, (Field("shift", "Move by (shift)", -1),))),
    "seq_div": Form("Divides the positions of a sequence.", (SEQ, RANGE, (Field("d", "Divide by (d)", 2),))),
    "update": Form(
        "Applies pending shifts, and a defrag if one is due.",
        (
            (Field("optimize", "Defragment in any case", value=False, kind=bool),),
            (Field("thold", "Threshold (thold)", empty="as set", kind=float),),
            (Field("n_max_nodes", "Graph nodes (n_max_nodes)", empty="as set"),),
        ),
    ),
    "defrag": Form("Asks for a defrag at the next update or decode."),
    "clear": Form("Empties every cell.", ((Field("data", "Set the bytes of K and V to 0", value=True, kind=bool),),)),
}


def operation(name: str, given: dict[str, Any]) -> AnyOp:
    """The operation that a form describes; arguments that are None are left out.

    Raises:
        KVModelError: an argument is not allowed.
    """
    given = {argument: value for argument, value in given.items() if value is not None}
    try:
        return OP.validate_python({"op": name, **(_decode_arguments(given) if name == "decode" else given)})
    except ValidationError as problem:
        raise ScenarioError(first_problem(problem)) from None


def _decode_arguments(given: dict[str, Any]) -> dict[str, Any]:
    words = given["text"].split()
    run = {"seq": _sequences(given["seq"]), **({"text": words} if words else {"n": given.get("n")})}
    run |= {"pos": given["pos"]} if "pos" in given else {}
    return {"tokens": [run], **({"n_ubatch": given["n_ubatch"]} if "n_ubatch" in given else {})}


def _sequences(text: str) -> list[int]:
    parts = re.split(r"[\s,]+", text.strip())
    if not all(re.fullmatch(r"-?[0-9]{1,9}", part) for part in parts):
        raise ParamError("seq", text, "whole numbers with commas between them, such as 0, 1")
    return [int(part) for part in parts]


def editor() -> None:
    """The choice of an operation, its form, what is wrong with it, and the way back."""
    st.markdown("**Add an operation**")
    name = st.selectbox("Operation", list(FORMS), key="form", label_visibility="collapsed", persist_state="session")
    form = FORMS[name]
    with st.form(f"form.{name}", border=False):
        st.caption(form.does)
        given = {field.name: value for row in form.rows for field, value in _row(name, row)}
        sent = st.form_submit_button(f"Add as step {session.last_step() + 1}", width="stretch")
    if sent:
        _append(name, given)
    st.button(
        "Undo", icon=":material/undo:", disabled=not session.edits(), on_click=session.undo, width="stretch",
    )  # fmt: skip


def _append(name: str, given: dict[str, Any]) -> None:
    try:
        session.append(operation(name, given))
    except KVModelError as problem:
        st.error(str(problem))
    else:
        st.rerun()


def _row(name: str, fields: tuple[Field, ...]) -> list[tuple[Field, Any]]:
    columns = st.columns(len(fields), gap="small")
    return [
        (field, _input(column, f"form.{name}.{field.name}", field))
        for column, field in zip(columns, fields, strict=True)
    ]


def _input(place: Any, key: str, field: Field) -> Any:
    if field.kind is bool:
        return place.checkbox(field.label, bool(field.value), key=key, persist_state="session")
    options = {"key": key, "placeholder": field.empty, "persist_state": "session"}
    if field.kind is str:
        return place.text_input(field.label, field.value, **options)
    return place.number_input(field.label, value=field.value, step=field.kind(1), **options)
