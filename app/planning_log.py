"""A start-up log against the plan: each printed size, the computed one, and what explains the difference."""

from math import isnan

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.planning import Asked
from app.planning_model import KEEP
from app.planning_results import MIB_COLUMN
from app.wording import plain
from kvmodel.figures import checks_table
from kvmodel.formats.debuglog_text import lines_of
from kvmodel.formats.memlog import Reconciliation, reconcile
from kvmodel.words import count

MAX_LOG_CHARS = 1_000_000
"""Characters of a pasted log: a verbose start-up is a tenth of it, and the page still takes it at once."""

MAX_SHOWN = 160
"""Characters of a line of the log that are shown."""

FROM = {
    "log": "The log itself",
    "model": "The chosen model",
    "both": "The chosen model and context",
}


def reconciled(asked: Asked, said: DeltaGenerator, *, tables: bool) -> None:
    """A place for a log, and what there is to say about it; in a sentence in its own place.

    Raises:
        ParamError: there is no line about memory in it.
    """
    with st.container(border=True, gap="small"):
        st.markdown("**Why does the log say something else?**")
        text = st.text_area(
            "What llama.cpp printed when it started",
            key="memory.log",
            max_chars=MAX_LOG_CHARS,
            height=180,
            placeholder="llama_kv_cache_unified: size = 2048.00 MiB ( 32768 cells,   8 layers,  4 seqs), ...",
            **KEEP,
        )
        source = st.segmented_control(
            "Compute its sizes from", list(FROM), default="log", required=True, format_func=FROM.__getitem__,
            key="memory.log.from", **KEEP,
        )  # fmt: skip
    if not text.strip():
        return
    found = reconcile(
        text,
        None if source == "log" else asked.geometry,
        asked.settings if source == "both" else None,
    )
    said.markdown(f"##### {verdict(found)}")
    with st.container(border=True, gap="small"):
        findings(found, lines_of(text), tables=tables)


def verdict(found: tuple[Reconciliation, ...]) -> str:
    """How many of all sizes are as computed, and how many more are explained."""
    checks = [check for one in found for check in one.checks]
    agreeing = sum(check.agrees and check.buffers_agree is not False for check in checks)
    explained = sum(bool(check.terms) for check in checks)
    rest = f", {explained} more explained" if explained else ""
    return f"{agreeing} of {count(len(checks), 'printed size')} as computed{rest}"


def findings(found: tuple[Reconciliation, ...], lines: list[str], *, tables: bool) -> None:
    """What the log leaves open, then its sizes one by one."""
    if any(one.geometry is None for one in found):
        st.info("The log does not describe its model. Choose one, and compute the sizes from the chosen model.")
    else:
        for words in dict.fromkeys(words for one in found for words in one.missing):
            st.info(plain(words))
    rows = checks_table(found)
    if tables:
        config = {name: MIB_COLUMN for name in rows.columns if name.endswith("MiB")}
        st.dataframe(rows, hide_index=True, column_config=config)
        return
    shown = rows.assign(**{"as printed": [plain(lines[line - 1].strip()[:MAX_SHOWN]) for line in rows["line"]]})
    for column in ("computed MiB", "difference MiB"):
        shown[column] = ["" if isnan(size) else f"{size:,.2f}" for size in shown[column]]
    shown["explanation"] = shown["explanation"].map(plain)
    order = ["line", "as printed", "cache", "computed MiB", "difference MiB", "explanation"]
    st.table(shown[order], border="horizontal", hide_index=True)
