"""Short words for what a page shows: calls, steps, configurations."""

import re

from kvmodel.caches.base import pos_range
from kvmodel.ops import AnyOp, Decode, SeqAdd, SeqCp, SeqDiv, SeqKeep, SeqRm, Update
from kvmodel.scenario import Scenario
from kvmodel.types import SWAType
from kvmodel.words import count, positions, ranges

MIB = 1024 * 1024


def call(op: AnyOp) -> str:
    """An operation as a call with its arguments in words."""
    match op:
        case Decode():
            seqs = sorted({seq for run in op.tokens for seq in run.seq})
            given = f"{count(sum(run.n for run in op.tokens), 'token')}, {_sequences(seqs)}"
        case SeqRm():
            given = f"{_sequence(op.seq)}, {_where(op)}"
        case SeqCp():
            given = f"{_sequence(op.src)} to {op.dst}, {_where(op)}"
        case SeqKeep():
            given = _sequence(op.seq)
        case SeqAdd():
            given = f"{_sequence(op.seq)}, {_where(op)}, {op.shift:+d}"
        case SeqDiv():
            given = f"{_sequence(op.seq)}, {_where(op)}, by {op.d}"
        case Update():
            given = "with a defrag" if op.optimize else ""
        case _:
            given = ""
    return f"{op.op}({given})"


def _sequence(seq: int) -> str:
    return "every sequence" if seq < 0 else f"sequence {seq}"


def _sequences(seqs: list[int]) -> str:
    return _sequence(seqs[0]) if len(seqs) == 1 else f"sequences {ranges(seqs)}"


def _where(op: SeqRm | SeqCp | SeqAdd | SeqDiv) -> str:
    return positions(*pos_range(op.p0, op.p1))


def facts(scenario: Scenario) -> list[str]:
    """The configuration in a few words each."""
    cache = scenario.cache
    params = cache.all_params[-1]
    window = "no window" if params.swa_type is SWAType.NONE else f"{params.swa_type} window of {params.n_swa:,}"
    return [
        cache.kind,
        count(cache.kv_size, "cell"),
        count(cache.n_seq_max, "sequence"),
        window,
        f"{params.type_k} / {params.type_v}",
    ]


def configuration(scenario: Scenario) -> str:
    """The configuration in one line."""
    return ", ".join(facts(scenario))


def plain(text: str) -> str:
    """Text for a place that reads Markdown, with every sign of Markdown taken as itself."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)


def mib(n_bytes: float) -> str:
    """Bytes in MiB with two decimals, as llama.cpp prints them."""
    return f"{n_bytes / MIB:,.2f} MiB"
