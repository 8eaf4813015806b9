"""The operations of the scenario beside its state: where one is, and how to reorder, change and remove them."""

import streamlit as st

from app import editing, forms, session
from app.plays import Progress
from app.wording import call, plain
from kvmodel.errors import KVModelError

AROUND = 4
"""Operations listed before and after the current one."""


def operations() -> None:
    """What can be done with the current operation, and the operations around it."""
    step, n = session.visit().view.step, len(session.visit().scenario.ops)
    actions(step, n)
    first = max(1, min(step - AROUND, n - 2 * AROUND))
    last = min(n, first + 2 * AROUND)
    with st.container(gap=None):
        for number in range(first, last + 1):
            one(number, here=number == step)
    others = [f"{first - 1:,} before"] * (first > 1) + [f"{n - last:,} after"] * (last < n)
    st.caption(", ".join(others))


def one(number: int, *, here: bool) -> None:
    """One operation, which leads to its step."""
    place = session.visit()
    st.button(
        f"{number}. {plain(call(place.scenario.ops[number - 1]))}",
        key=f"op.{number}",
        type="secondary" if here else "tertiary",
        help="This step" if here else None,
        disabled=number > place.last_step,
        on_click=place.go,
        args=(number,),
    )


def actions(step: int, n: int) -> None:
    """Earlier, later, change and delete; an edit that is refused says why."""
    with st.container(horizontal=True, gap="xsmall"):
        earlier = st.button("Earlier", disabled=step < 2)
        later = st.button("Later", disabled=not 0 < step < n)
        change = st.button("Change", disabled=not step, on_click=load, args=(step,))
        delete = st.button("Delete", disabled=not step)
    try:
        if earlier:
            editing.move(step - 1, step - 2, Progress())
        if later:
            editing.move(step - 1, step, Progress())
        if delete:
            editing.remove(step - 1, Progress())
    except KVModelError as problem:
        st.error(plain(str(problem)))
    else:
        if earlier or later or change or delete:
            st.rerun()


def load(step: int) -> None:
    """Put an operation into the form at the left, to be changed there."""
    forms.load(session.visit().scenario.ops[step - 1])
