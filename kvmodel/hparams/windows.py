"""Which layers of an architecture have a window, and how long it is: the rules of `llama_model::load_hparams`."""

from dataclasses import dataclass

from kvmodel.geometry import swa_pattern
from kvmodel.hparams.keys import Keys
from kvmodel.limits import MAX_LAYERS
from kvmodel.types import SWAType

WINDOW = "attention.sliding_window"
PATTERN = "attention.sliding_window_pattern"


@dataclass(frozen=True)
class Rule:
    """How an architecture's window follows from its keys.

    Attributes:
        pattern: one layer in so many has no window, unless the file says otherwise.
        default: the window if the file gives none; None if the file must give it.
        optional: a file without a window, or with one of 0, has none.
        fixed: the window, whatever length the file gives.
        dense_first: the layer without a window is the first of the group, not the last.
        kind: standard or chunked.
    """

    pattern: int
    default: int | None = None
    optional: bool = False
    fixed: int | None = None
    dense_first: bool = False
    kind: SWAType = SWAType.STANDARD


@dataclass(frozen=True)
class Window:
    """The window of a model: its type, its length and which layers have it."""

    kind: SWAType
    n_swa: int
    layers: tuple[bool, ...]


RULES = {
    "afmoe": Rule(4, optional=True),
    "cohere2": Rule(4),
    "exaone4": Rule(4, default=4096),
    "gemma2": Rule(2, default=4096),
    "gemma3": Rule(6, optional=True),
    "gemma3n": Rule(5),
    "gpt-oss": Rule(2),
    "llama4": Rule(4, default=8192, fixed=8192, kind=SWAType.CHUNKED),
    "olmo2": Rule(4, optional=True),
    "smallthinker": Rule(4, optional=True, fixed=4096, dense_first=True),
}
"""Architectures whose windows come in groups of layers (`set_swa_pattern`)."""

LAYER_BY_LAYER = ("gemma4", "mimo2", "step35")
"""Architectures whose files say of each layer whether it has a window."""

EXAONE4_WINDOW_LAYERS = 64
"""The one size of exaone4 that has windows, told by its layers."""


def window(keys: Keys, n_layer: int) -> Window | None:
    """The window of a model, None if no layer has one.

    Raises:
        ParamError: a key is missing or has a value that is not allowed.
    """
    if keys.arch in LAYER_BY_LAYER:
        return _window(SWAType.STANDARD, keys.number(WINDOW, low=1), keys.flags(PATTERN, n_layer))
    rule = RULES.get(keys.arch)
    if rule is None or (keys.arch == "exaone4" and n_layer != EXAONE4_WINDOW_LAYERS):
        return None
    n_swa = keys.number(WINDOW, 0 if rule.optional else rule.default)
    if not n_swa and (rule.optional or rule.fixed is not None):
        return None
    if not n_swa:
        raise keys.error(WINDOW, "a whole number from 1")
    return _window(rule.kind, rule.fixed or n_swa, window_layers(keys, n_layer, rule))


def ignored_window(keys: Keys) -> str | None:
    """What to say of a window that the file has and llama.cpp does not use, None if there is none."""
    used = keys.arch in RULES or keys.arch in LAYER_BY_LAYER
    if used or not keys.is_number(WINDOW) or not keys.positive(WINDOW):
        return None
    n_swa = keys.number(WINDOW)
    if keys.arch == "phi3":
        return (
            f"The file gives a window of {n_swa:,}. Early 2025 versions use it in the mask alone, later ones not at "
            "all; neither makes the cache smaller."
        )
    return f"The file gives a window of {n_swa:,}, which llama.cpp does not use for this architecture."


def window_layers(keys: Keys, n_layer: int, rule: Rule) -> tuple[bool, ...]:
    """Which layers of an architecture with a rule have a window (`set_swa_pattern`).

    Raises:
        ParamError: the file's own pattern has a value that is not allowed.
    """
    if keys.is_array(PATTERN):
        return keys.flags(PATTERN, n_layer)
    period = keys.number(PATTERN, rule.pattern, high=MAX_LAYERS)
    if rule.dense_first:
        return tuple(period == 0 or il % period != 0 for il in range(n_layer))
    return swa_pattern(n_layer, period)


def _window(kind: SWAType, n_swa: int, layers: tuple[bool, ...]) -> Window | None:
    return Window(kind, n_swa, layers) if any(layers) else None
