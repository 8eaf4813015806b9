"""Forms for one operation each, to add or change it: fields as data, checked by the scenario's own rules."""

import re
from typing import Any, NamedTuple

import streamlit as st
from pydantic import TypeAdapter, ValidationError
from streamlit.delta_generator import DeltaGenerator

from app import editing, session
from app.plays import Progress
from app.wording import plain
from kvmodel.errors import KVModelError, ParamError
from kvmodel.ops import AnyOp, Decode, Op
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
    "JSON": Form(
        "Any operation as it stands in a scenario, with a note, several runs of tokens, or a failure.",
        ((Field("json", "Operation", '{"op": "decode", "tokens": [{"n": 4, "seq": [0]}], "note": ""}', kind=str),),),
    ),
}


def operation(name: str, given: dict[str, Any]) -> AnyOp:
    """The operation that a form describes; arguments that are None are left out.

    Raises:
        KVModelError: an argument is not allowed.
    """
    given = {argument: value for argument, value in given.items() if value is not None}
    try:
        if name == "JSON":
            return OP.validate_json(given["json"])
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
    """The choice of an operation, its form, and where it goes: to the end, after this step, or in its place."""
    st.markdown("**Operation**")
    options: dict[str, Any] = {"label_visibility": "collapsed", "persist_state": "session"}
    name = st.selectbox("Operation", list(FORMS), key=session.FORM, **options)
    form = FORMS[name]
    with st.form(f"form.{name}", border=False):
        st.caption(form.does)
        given = {field.name: value for row in form.rows for field, value in _row(name, row)}
        refused = st.empty()
        end = len(session.visit().scenario.ops) + 1
        sent = {"append": st.form_submit_button(f"Add as step {end}", width="stretch")}
        here, instead = st.columns(2, gap="small")
        sent["insert"] = here.form_submit_button("Insert", width="stretch", help="After the step that is shown")
        sent["replace"] = instead.form_submit_button("Replace", width="stretch", help="The step that is shown")
    for how, pressed in sent.items():
        if pressed:
            _send(how, name, given, refused)
    history()


def history() -> None:
    """The way back, and forth again."""
    place = session.visit()
    back, forth = st.columns(2, gap="small")
    if back.button("Undo", icon=":material/undo:", disabled=not place.past, width="stretch"):
        editing.undo(Progress())
        st.rerun()
    if forth.button("Redo", icon=":material/redo:", disabled=not place.future, width="stretch"):
        editing.redo(Progress())
        st.rerun()


def _send(how: str, name: str, given: dict[str, Any], refused: DeltaGenerator) -> None:
    """Carry out the edit; what is wrong with it stands above the buttons, and nothing is lost."""
    try:
        op, step = operation(name, given), session.visit().view.step
        if how == "replace" and not step:
            raise ScenarioError("step is 0, before the first operation; allowed: a step with an operation to replace")
        at = {"append": len(session.visit().scenario.ops), "insert": step, "replace": step - 1}[how]
        (editing.change if how == "replace" else editing.insert)(op, at, Progress())
    except KVModelError as problem:
        refused.error(plain(str(problem)))
    else:
        st.rerun()


def load(op: AnyOp) -> None:
    """Fill the form with an operation, so that it can be changed; a decode of several runs as JSON."""
    given = op.model_dump(exclude_defaults=True)
    name = op.op
    plain = not op.note
    if isinstance(op, Decode):
        run = op.tokens[0]
        words = list(run.text or ())
        plain &= len(op.tokens) == 1 and not op.embd and op.fail_at is None and " ".join(words).split() == words
        seqs = ", ".join(map(str, run.seq))
        given = {"text": " ".join(words), "n": run.n, "pos": run.pos, "seq": seqs, "n_ubatch": op.n_ubatch}
    if not plain:
        name, given = "JSON", {"json": op.model_dump_json(exclude_defaults=True)}
    fields = [field for row in FORMS[name].rows for field in row]
    session.fill({session.FORM: name} | {_key(name, field): given.get(field.name, field.value) for field in fields})


def _key(name: str, field: Field) -> str:
    return f"form.{name}.{field.name}"


def _row(name: str, fields: tuple[Field, ...]) -> list[tuple[Field, Any]]:
    columns = st.columns(len(fields), gap="small")
    return [(field, _input(column, _key(name, field), field)) for column, field in zip(columns, fields, strict=True)]


def _input(place: Any, key: str, field: Field) -> Any:
    session.begin(key, field.value)
    if field.kind is bool:
        return place.checkbox(field.label, key=key, persist_state="session")
    options = {"key": key, "placeholder": field.empty, "persist_state": "session"}
    if field.name == "json":
        return place.text_area(field.label, height=150, **options)
    if field.kind is str:
        return place.text_input(field.label, **options)
    return place.number_input(field.label, value=None, step=field.kind(1), **options)
