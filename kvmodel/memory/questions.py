"""What a budget allows, what each choice saves, and how the caches grow."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kvmodel.errors import ParamError, check_int
from kvmodel.geometry import Geometry
from kvmodel.limits import MAX_PLAN_CTX
from kvmodel.memory.context import has_windows, unit
from kvmodel.memory.plan import MemoryPlan, plan
from kvmodel.memory.refusals import Refusal, refusals
from kvmodel.memory.settings import Rules, Settings

MAX_BUDGET = 1 << 50
"""Bytes of a budget: a petabyte is more than any machine has."""

MAX_POINTS = 1_000
"""Points of a curve: more than a plot shows."""

SERIES = ("n_ctx", "n_seq_max", "n_ubatch")


@dataclass(frozen=True)
class Fit:
    """The longest context within a budget.

    Attributes:
        budget: bytes.
        n_ctx: the longest one, a size that padding leaves as it is; 0 if none fits.
        plan: what it takes; None if none fits.
        next_n_ctx: the next longer one; 0 if the search ended at the longest context planned for.
        next_bytes: bytes of the buffers of that one.
    """

    budget: int
    n_ctx: int
    plan: MemoryPlan | None
    next_n_ctx: int
    next_bytes: int


@dataclass(frozen=True)
class Saving:
    """One other choice and what it would change.

    Attributes:
        label: the choice, for a table.
        settings: all settings with that choice.
        total: bytes of the buffers then.
        saved: bytes fewer than now; negative if it takes more.
        refusals: what llama.cpp has against it.
    """

    label: str
    settings: Settings
    total: int
    saved: int
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, eq=False)
class Growth:
    """Bytes over one setting, for a plot.

    Attributes:
        field: the setting that varies.
        values: int64 [n], its values.
        k, v: name of a cache -> int64 [n], bytes of its K and of its V.
        buffer: int64 [n], bytes of all buffers.
    """

    field: str
    values: NDArray[np.int64]
    k: Mapping[str, NDArray[np.int64]]
    v: Mapping[str, NDArray[np.int64]]
    buffer: NDArray[np.int64]


def largest_n_ctx(geometry: Geometry, settings: Settings, budget: int) -> Fit:
    """The longest context whose buffers fit into a budget, exactly: the next one does not.

    Buffers only grow with n_ctx, so the sizes that padding leaves alone are searched by halves.

    Args:
        geometry: the model.
        settings: everything but n_ctx, which plays no part.
        budget: bytes for the caches alone.
    """
    check_int("budget", budget, 0, MAX_BUDGET)
    step = unit(geometry, settings)

    def size(steps: int) -> int:
        return plan(geometry, replace(settings, n_ctx=steps * step)).buffer_bytes

    most = MAX_PLAN_CTX // step
    fits = most if size(most) <= budget else _last(lambda steps: size(steps) <= budget, most)
    fitting = plan(geometry, replace(settings, n_ctx=fits * step)) if fits else None
    beyond = fits + 1 if fits < most else 0
    return Fit(budget, fits * step, fitting, beyond * step, size(beyond) if beyond else 0)


def savings(geometry: Geometry, settings: Settings) -> tuple[Saving, ...]:
    """What each single other choice would take: types, window, slots, flash attention, streams.

    Choices that llama.cpp refuses are named with their refusals; those whose rows are no whole number of blocks are
    left out.
    """
    now = plan(geometry, settings).buffer_bytes
    found = []
    for label, other in _alternatives(geometry, settings):
        try:
            total = plan(geometry, other).buffer_bytes
        except ParamError:
            continue
        found.append(Saving(label, other, total, now - total, refusals(geometry, other)))
    return tuple(found)


def growth(geometry: Geometry, settings: Settings, field: str, values: Sequence[int]) -> Growth:
    """Bytes of every cache over n_ctx, n_seq_max or n_ubatch.

    Raises:
        ParamError: another field, no value, too many or one out of range.
    """
    if field not in SERIES:
        raise ParamError("field", field, ", ".join(SERIES))
    check_int("number of values", len(values), 1, MAX_POINTS)
    plans = [plan(geometry, _with(settings, field, value)) for value in values]
    names = [part.name for part in plans[0].parts]
    return Growth(
        field,
        np.array(values, np.int64),
        {name: np.array([planned.parts[i].k_bytes for planned in plans], np.int64) for i, name in enumerate(names)},
        {name: np.array([planned.parts[i].v_bytes for planned in plans], np.int64) for i, name in enumerate(names)},
        np.array([planned.buffer_bytes for planned in plans], np.int64),
    )


def _with(settings: Settings, field: str, value: int) -> Settings:
    match field:
        case "n_ctx":
            return replace(settings, n_ctx=value)
        case "n_seq_max":
            return replace(settings, n_seq_max=value)
    return replace(settings, n_ubatch=value)


def _last(holds: Callable[[int], bool], most: int) -> int:
    """The last number from 1 to `most` for which a falling condition holds; 0 if it holds for none."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _alternatives(geometry: Geometry, settings: Settings) -> Iterator[tuple[str, Settings]]:
    if geometry.kind in {"attention", "hybrid"}:
        yield from _types(settings)
        on = settings.flash_attn
        yield f"flash attention {'off' if on else 'on'}", replace(settings, flash_attn=not on)
    if has_windows(geometry, settings):
        label = "window layers with their own size" if settings.swa_full else "window layers in full size"
        yield label, replace(settings, swa_full=not settings.swa_full)
    for slots in sorted({1, settings.n_seq_max // 2, 2 * settings.n_seq_max} - {0, settings.n_seq_max}):
        if slots <= (settings.rules.max_seq or slots):
            yield f"{slots} slot{'s' if slots > 1 else ''}", replace(settings, n_seq_max=slots)
    if settings.rules is Rules.STREAMS and settings.n_seq_max > 1:
        label = "one stream a sequence" if settings.kv_unified else "one stream for all sequences"
        yield label, replace(settings, kv_unified=not settings.kv_unified)


def _types(settings: Settings) -> Iterator[tuple[str, Settings]]:
    for kind in ("f16", "q8_0", "q4_0"):
        if settings.type_k != kind:
            yield f"K in {kind}", replace(settings, type_k=kind)
        if settings.type_v != kind:
            yield f"V in {kind}", replace(settings, type_v=kind)
        if kind not in {settings.type_k, settings.type_v}:
            both = replace(settings, type_k=kind, type_v=kind, flash_attn=settings.flash_attn or kind != "f16")
            yield f"K and V in {kind}" + (", with flash attention" if both.flash_attn else ""), both
