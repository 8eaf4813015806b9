"""Which layers of a logged model have a window: as its lines say, as its architecture is known for, or as it counts."""

from kvmodel.formats.memlog_fields import number
from kvmodel.formats.memlog_parts import LoggedContext
from kvmodel.geometry import swa_pattern
from kvmodel.hparams.keys import Keys
from kvmodel.hparams.windows import RULES, window_layers
from kvmodel.types import SWAType

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
    """Windows in groups of layers, as long as the printed caches of a pair have as many layers of each kind."""
    printed = {part.name: part.n_layer for part in context.caches if part.name in {"base", "swa"}}
    for period in range(2, LONGEST_PERIOD + 1):
        windows = swa_pattern(n_layer, period)
        if printed == {"base": own - sum(windows[:own]), "swa": sum(windows[:own])}:
            return windows
    return (False,) * n_layer
