"""The inputs of the K-shift page: which key, how the model rotates it, and what the rotation is handed."""

from typing import Any, get_args

import streamlit as st

from app.moment import Moment
from kvmodel.kshift import KShiftReport, kshift_report, random_key
from kvmodel.pending import PendingShift, pending_cells, pending_shift
from kvmodel.rope import RopeParams, RopeType
from kvmodel.rotation import SHIFTABLE, Behaviour
from kvmodel.snapshot import PartSnapshot

KEEP: dict[str, Any] = {"persist_state": "session"}
CALLS = {"seq_add": "seq_add", "seq_div": "seq_div (quirk div-shift-sign)"}
DEFAULT_POS, DEFAULT_SHIFT = 40, -24


def which_key(moment: Moment, part: PartSnapshot) -> tuple[PendingShift, int]:
    """The cell and the head, and the shift that waits in the cell, or one that is typed in."""
    waiting = pending_cells(part)
    first = int(waiting[0]) if len(waiting) else 0
    columns = st.columns(2, gap="small")
    cell = columns[0].number_input("Cell", 0, part.n_cells - 1, first, key=f"kshift.cell.{first}", **KEEP)
    head = columns[1].number_input("Head", 0, max(part.params.heads[0] - 1, 0), 0, key="kshift.head", **KEEP)
    found = pending_shift(moment.timeline, moment.timeline.frame_of(moment.step), part, int(cell))
    if found:
        st.caption(f"Cell {found.cell} waits with a shift of {found.k_shift:+d} at this step of the scenario.")
        return found, int(head)
    st.caption(f"Cell {cell} has no pending shift at this step of the scenario. What would one do to its key?")
    return typed_shift(int(cell), int(part.pos[int(cell)])), int(head)


def typed_shift(cell: int, pos: int) -> PendingShift:
    """A shift of one's own."""
    columns = st.columns(2, gap="small")
    start = columns[0].number_input(
        "Position before", 0, None, max(pos, 0) or DEFAULT_POS, key=f"kshift.pos.{cell}", **KEEP
    )
    shift = columns[1].number_input("Shift", value=DEFAULT_SHIFT, step=1, key="kshift.shift", **KEEP)
    call = st.selectbox("Moved by", list(CALLS), format_func=CALLS.__getitem__, key="kshift.call", **KEEP)
    handed = int(shift) if call == "seq_add" else -int(shift)
    return PendingShift(cell, int(start), int(start) + int(shift), handed)


def rotation(part: PartSnapshot) -> tuple[RopeParams, str, dict[str, Any]]:
    """How keys are rotated and stored, and whether the quirks take part.

    Raises:
        ParamError: values that no model can have.
    """
    size = part.params.n_embd_head_k
    columns = st.columns(2, gap="small")
    kind = columns[0].selectbox("Pairs (rope type)", [RopeType.NORM, RopeType.NEOX], key="kshift.type", **KEEP)
    n_rot = columns[1].number_input(
        "Rotated (n_rot)", 2, None, max(size - size % 2, 2), 2, key=f"kshift.n_rot.{size}", **KEEP
    )
    base = columns[0].number_input("Base (freq_base)", value=10_000.0, key="kshift.base", **KEEP)
    scale = columns[1].number_input("Scale (freq_scale)", value=1.0, format="%.4f", key="kshift.scale", **KEEP)
    types = list(SHIFTABLE)
    own = types.index(part.params.type_k) if part.params.type_k in types else types.index("f16")
    type_k = columns[0].selectbox("Stored as (type_k)", types, own, key="kshift.type_k", **KEEP)
    times = columns[1].number_input("Shifts in a row", 1, 100, 1, key="kshift.times", **KEEP)
    yarn = st.checkbox("YaRN (ext_factor 1)", key="kshift.yarn", **KEEP)
    behaviours = get_args(Behaviour)
    magnitude = (
        st.selectbox("Magnitude at a shift", behaviours, key="kshift.magnitude", **KEEP) if yarn else behaviours[0]
    )
    rope = RopeParams(int(n_rot), kind, base, scale, ext_factor=1.0 if yarn else 0.0)
    return rope, type_k, {"times": int(times), "magnitude": magnitude}


def report(part: PartSnapshot, pending: PendingShift, head: int) -> KShiftReport:
    """The key around the shift, as the inputs describe it.

    Raises:
        ParamError: values that do not fit together.
    """
    rope, type_k, options = rotation(part)
    key = random_key(max(part.params.n_embd_head_k, 2), head=head)
    asked = {"pos": pending.pos_before, "shift": pending.shift, "k_shift": pending.k_shift}
    return kshift_report(rope, key, **asked, type_k=type_k, **options)
