"""Advice after a batch was refused, or its computation failed."""

from kvmodel.events import BatchRefused, ComputeFailed
from kvmodel.limits import MAX_SEQ
from kvmodel.words import joined, positions


def refused(event: BatchRefused) -> str:
    """How to make a batch that the checks let through."""
    match event:
        case BatchRefused(kind="not_consecutive", stored=int(stored), start=int(start)):
            expected = f"Start sequence {event.seq} at position {stored + 1}"
            if start > stored:
                return f"{expected}: {positions(stored + 1, start)} would be left out."
            return f"{expected}, or remove what it has from position {start} on first (seq_rm)."
        case BatchRefused(kind="gap"):
            return f"Send the positions of sequence {event.seq} without leaving any out."
        case BatchRefused(kind="coupled_diverged"):
            return (
                f"Bring the sequences to one span first: remove sequence {event.seq} (seq_rm) and copy the other onto"
                " it (seq_cp). Or send a token of its own to each."
            )
        case BatchRefused(kind="bad_seq_id"):
            return f"Give every token at least one sequence id, each from 0 to {MAX_SEQ - 1}."
    return "Send at least 1 token."


def lost(event: ComputeFailed) -> str:
    """What to send again after a failed computation."""
    starts = joined(f"sequence {seq} from position {start} on" for seq, start in event.removed)
    return f"The ubatches before number {event.ubatch} are stored; send the rest again: {starts}."
