"""Operations as the Python calls that carry them out, on a `cache` and its `context`.

Only numbers and the names of upstream's calls stand in them, never a text of the scenario.
"""

from collections.abc import Iterator
from typing import Any

from kvmodel.ops import AnyOp, Clear, Decode, Defrag, SeqAdd, SeqCp, SeqDiv, SeqKeep, SeqRm, Update

WIDTH = 100
"""Characters of a line."""


def call_lines(op: AnyOp) -> list[str]:
    """The call of one operation; a batch of many runs takes a line for each."""
    return list(_decode(op)) if isinstance(op, Decode) else [_call(op)]


def _call(op: SeqRm | SeqCp | SeqKeep | SeqAdd | SeqDiv | Update | Defrag | Clear) -> str:
    match op:
        case SeqRm():
            call = f"cache.seq_rm({op.seq}, {op.p0}, {op.p1})"
        case SeqCp():
            call = f"context.seq_cp({op.src}, {op.dst}, {op.p0}, {op.p1})"
        case SeqKeep():
            call = f"cache.seq_keep({op.seq})"
        case SeqAdd():
            call = f"context.seq_add({op.seq}, {op.p0}, {op.p1}, {op.shift})"
        case SeqDiv():
            call = f"context.seq_div({op.seq}, {op.p0}, {op.p1}, {op.d})"
        case Update():
            call = f"context.update({_given(optimize=op.optimize, thold=op.thold, n_max_nodes=op.n_max_nodes)})"
        case Defrag():
            call = "context.defrag()"
        case _:
            call = f"cache.clear(data={op.data})"
    return call


def _decode(op: Decode) -> Iterator[str]:
    runs = [f"({run.pos or 0}, {run.n}, {list(run.seq)})" for run in op.tokens]
    batch = _given(embd=op.embd, auto_pos=op.tokens[0].pos is None)
    options = _given(n_ubatch=op.n_ubatch, fail_at=op.fail_at)
    begin, end = "context.decode(Batch.from_runs([", f"]{batch and f', {batch}'}){options and f', {options}'})"
    if len(begin) + len(end) + sum(len(run) + 2 for run in runs) <= WIDTH:
        yield f"{begin}{', '.join(runs)}{end}"
        return
    yield begin
    yield from (f"    {run}," for run in runs)
    yield end


def _given(**values: Any) -> str:
    """Keyword arguments that say something: neither None nor False."""
    return ", ".join(f"{name}={value}" for name, value in values.items() if value is not None and value is not False)
