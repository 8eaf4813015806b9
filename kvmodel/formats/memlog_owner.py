"""Which of a log's models a context belongs to: not always the last, as drafts are loaded beside their targets."""

from collections.abc import Sequence

from kvmodel.formats.memlog_fields import number
from kvmodel.formats.memlog_parts import LoggedContext

LoggedModel = tuple[dict[str, str], dict[str, str], list[bool]]
"""Fields, keys and windows of one model, as a `LoggedContext` has them."""


def settle(contexts: Sequence[LoggedContext], models: Sequence[LoggedModel]) -> None:
    """Give a context that its model cannot have made the latest earlier model that can.

    Args:
        contexts: as they were read, each with the model that was printed last before it.
        models: every printed model, in order.
    """
    for context in contexts:
        at = next((i for i, (fields, _, __) in enumerate(models) if fields is context.model), 0)
        earlier = [models[at], *reversed(models[:at])] if models else []
        fitting = next((each for each in earlier if _can_have_made(each[0], context)), None)
        if fitting is not None:
            context.model, context.keys, context.windows = fitting


def _can_have_made(fields: dict[str, str], context: LoggedContext) -> bool:
    """Whether a model has the layers that a context's caches are printed with."""
    n_layer = number(fields, "n_layer")
    whole = [part.n_layer for part in context.caches if part.n_layer and _counts_all(part.name, part.n_seqs)]
    held = sum(part.n_layer or 0 for part in context.caches if not _counts_all(part.name, part.n_seqs))
    return n_layer is not None and all(count == n_layer for count in whole) and held <= n_layer


def _counts_all(name: str, n_seqs: int | None) -> bool:
    """Whether a printed number of layers is the model's: of states, and of caches before mid-2025."""
    return name == "recurrent" or n_seqs is None
