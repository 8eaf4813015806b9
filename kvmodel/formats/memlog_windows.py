"""Which layers of a logged model have a window: as its lines say, as its architecture is known for, or as it counts."""

import re

from kvmodel.formats.memlog_fields import number, per_layer
from kvmodel.formats.memlog_parts import LoggedContext
from kvmodel.geometry import swa_pattern
from kvmodel.hparams.keys import Keys
from kvmodel.hparams.windows import PATTERN, RULES, window_layers
from kvmodel.types import SWAType

TRUTHS = re.compile(r"\b(?:true|false)\b")

LONGEST_PERIOD = 16
"""Layers of a group with one layer without a window: those of known models have at most 6."""


def windows_of(
    context: LoggedContext, keys: Keys, n_layer: int, own: int | None
) -> tuple[SWAType, int, tuple[bool, ...] | None]:
    """Window type, its length and which layers have it.

    Args:
        context: the log.
        keys: what it says of the model's keys.
        n_layer: layers of the model.
        own: layers from the first on that have K and V of their own, None for all.

    Raises:
        ParamError: a key has a value that is not allowed.
    """
    n_swa = number(context.model, "n_swa") or 0
    rule = RULES.get(keys.arch)
    logged = tuple(context.windows[:n_layer])
    if len(logged) == n_layer:
        windows = logged
    elif rule is not None:
        windows = window_layers(keys, n_layer, rule)
    else:
        windows = _counted(context, n_layer, own or n_layer)
    if not n_swa or not any(windows):
        return SWAType.NONE, n_swa, None
    return rule.kind if rule else SWAType.STANDARD, n_swa, windows


def _counted(context: LoggedContext, n_layer: int, own: int) -> tuple[bool, ...]:
    """Windows in groups of layers, as long as all fits that a log tells of them.

    That is how many layers of each kind the pair of caches has, the widths of the layers' rows, and how the file's own
    list begins.
    """
    printed = {part.name: part.n_layer for part in context.caches if part.name in {"base", "swa"}}
    widths = per_layer(context.model, "n_embd_k_gqa", n_layer)
    listed = next((value for key, value in context.keys.items() if key.endswith(PATTERN)), "")
    start = tuple(word == "true" for word in TRUTHS.findall(listed))
    for period in range(2, LONGEST_PERIOD + 1):
        windows = swa_pattern(n_layer, period)
        counts = {"base": own - sum(windows[:own]), "swa": sum(windows[:own])}
        kinds = {(window, width) for window, width in zip(windows, widths, strict=True)}
        if printed == counts and len(kinds) <= 2 and windows[: len(start)] == start[:n_layer]:
            return windows
    return (False,) * n_layer
