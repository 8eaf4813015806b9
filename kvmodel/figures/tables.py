"""The figures as tables: the same facts for those who read, sort or listen."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.cells import EMPTY, seq_bit
from kvmodel.compare import Comparison
from kvmodel.events import Event
from kvmodel.explain import explain
from kvmodel.figures.texts import MIB, owner_texts, reason_words, shift_of, token_texts
from kvmodel.mask import mask_reasons
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import OpResult, Timeline, Token


def cells_table(part: PartSnapshot, *, tokens: Sequence[Token] = ()) -> pd.DataFrame:
    """One row a cell: cell, position (missing where empty), sequences, shift (delta in the older cache), token."""
    word, shift = shift_of(part)
    return pd.DataFrame(
        {
            "cell": np.arange(part.n_cells),
            "position": _positions(part.pos),
            "sequences": owner_texts(part.seqs),
            word: shift,
            "token": token_texts(part.token, tokens),
        }
    )


def states_table(part: PartSnapshot, *, tokens: Sequence[Token] = ()) -> pd.DataFrame:
    """One row a cell of a recurrent cache: cell, position of its state (missing where empty), sequences, source, token.

    Beside them stands what the entry of that number says of the sequence of the same number: tail, its cell (missing
    if it has no state).
    """
    empty = part.seqs == 0
    return pd.DataFrame(
        {
            "cell": np.arange(part.n_cells),
            "position": pd.arrays.IntegerArray(part.pos.copy(), empty),
            "sequences": owner_texts(part.seqs),
            "source": np.where(empty, "", np.where(part.src < 0, "zero", part.src.astype(np.str_))),
            "token": token_texts(part.token, tokens),
            "tail of the sequence": pd.arrays.IntegerArray(part.tail.copy(), part.tail < 0),
        }
    )


def _positions(pos: NDArray[np.int32]) -> "pd.api.extensions.ExtensionArray":
    return pd.arrays.IntegerArray(pos.copy(), pos == EMPTY)


def sequences_table(part: PartSnapshot) -> pd.DataFrame:
    """One row a sequence: sequence, positions (first to last), cells, and how many of them it shares.

    The positions are those the cache answers, so a quirk of its counters shows here as well.
    """
    seqs = np.flatnonzero(part.spans[:, 1] >= 0)
    owned = [(part.seqs & seq_bit(int(seq))) != 0 for seq in seqs]
    several = np.bitwise_count(part.seqs) > 1
    return pd.DataFrame(
        {
            "sequence": seqs,
            "positions": [f"{low} to {high}" for low, high in part.spans[seqs].tolist()],
            "cells": np.array([np.count_nonzero(cells) for cells in owned], np.int64),
            "shared": np.array([np.count_nonzero(cells & several) for cells in owned], np.int64),
        }
    )


def mask_table(
    part: PartSnapshot, ubatch: UBatch, *, causal: bool = True, padding: bool = False, tokens: Sequence[Token] = ()
) -> pd.DataFrame:
    """One row a token of the ubatch: token, text, position, sequence, and how many cells each reason hides."""
    codes = mask_reasons(
        part.pos[: part.n_kv],
        part.seqs[: part.n_kv],
        ubatch.pos,
        ubatch.first_seq,
        causal=causal,
        swa_type=part.params.swa_type,
        n_swa=part.params.n_swa,
        padding=padding,
    )
    table = pd.DataFrame(
        {
            "token": np.arange(len(ubatch)),
            "text": token_texts(ubatch.token, tokens),
            "position": ubatch.pos,
            "sequence": ubatch.first_seq,
        }
    ).reindex(range(len(codes)))
    for code, word in enumerate(reason_words(part.params.swa_type)):
        table[word] = np.count_nonzero(codes == code, axis=1)
    return table


def usage_table(timeline: Timeline, name: str) -> pd.DataFrame:
    """One row a step by operation: step, operation, used cells, n_kv, head, fragmentation, MiB in use."""
    part = timeline.start[name]
    per_cell = (part.size_k_bytes + part.size_v_bytes) / part.n_cells / MIB
    used = timeline.series("used", name)
    return pd.DataFrame(
        {
            "step": np.arange(timeline.n_steps),
            "operation": ["start", *(op.op for op in timeline.scenario.ops[: timeline.n_steps - 1])],
            "used": used.astype(np.int64),
            "n_kv": timeline.series("n_kv", name).astype(np.int64),
            "head": timeline.series("head", name).astype(np.int64),
            "fragmentation": timeline.series("fragmentation", name),
            "MiB in use": used * per_cell,
        }
    )


def events_table(events: Iterable[Event]) -> pd.DataFrame:
    """One row an event: number, cache, event, and what happened in a sentence."""
    rows = [(i, event.cache, type(event).__name__, explain(event)) for i, event in enumerate(events, 1)]
    return pd.DataFrame(rows, columns=["number", "cache", "event", "what happened"])


def comparison_table(comparison: Comparison) -> pd.DataFrame:
    """One row a step: step, operation, what each side gave back, how many cells and shifts differ, head, used, n_kv.

    Columns of one side end with its label; of several sets of cells they begin with the name of the set.
    """
    ops = comparison.a.scenario.ops[: comparison.n_steps - 1]
    columns: dict[str, object] = {"step": np.arange(comparison.n_steps), "operation": ["start", *(op.op for op in ops)]}
    for label, side in zip(comparison.labels, (comparison.a, comparison.b), strict=True):
        columns[f"returned ({label})"] = ["", *map(_returned, side.results[: comparison.n_steps - 1])]
    for i, (name, _) in enumerate(comparison.parts):
        of = f"{name} " if len(comparison.parts) > 1 else ""
        columns |= {f"{of}cells": comparison.cells[i], f"{of}shifts": comparison.shifts[i]}
        for counter, values in comparison.counters.items():
            columns |= {f"{of}{counter} ({comparison.labels[side]})": values[i, side] for side in (0, 1)}
    return pd.DataFrame(columns | {"differs": comparison.differs})


def _returned(result: OpResult) -> str:
    return "ended" if result.error else "" if result.ret is None else str(result.ret)
