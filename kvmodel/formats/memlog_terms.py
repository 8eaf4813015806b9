"""The terms by which a printed size can differ from a computed one: which of them a log leaves possible."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from kvmodel.errors import KVModelError
from kvmodel.formats.memlog_change import Assumed, Change, Term
from kvmodel.formats.memlog_model import Told, told_by
from kvmodel.formats.memlog_parts import LoggedContext, PrintedPart
from kvmodel.geometry import Geometry
from kvmodel.ggml import KV_TYPES
from kvmodel.limits import MAX_PLAN_CTX, MAX_PLAN_SEQ
from kvmodel.memory import KeptMLA, Rules, context_sizes, plan
from kvmodel.types import SWAType
from kvmodel.words import count

MIB = 1 << 20

OLDEST_TYPES = ("f32", "f16")
"""What the versions that print no types can keep (`memory_f16`)."""

PAD = 256
"""The most that padding adds to n_ctx is less than this."""


def changes(assumed: Assumed, context: LoggedContext, part: PrintedPart) -> tuple[Change, ...]:
    """Every change that may bring the computed size to the printed one, the likeliest first.

    Those that a log states itself come before those that are only supposed.
    """
    told = told_by(context)
    found = (change for make in MAKERS for change in make(assumed, told, part))
    return tuple(change for change in found if _differs(change, assumed))


def _types(assumed: Assumed, _: Told, part: PrintedPart) -> Iterator[Change]:
    have = {"type_k": part.type_k, "type_v": part.type_v}
    given = {name: kind for name, kind in have.items() if kind in KV_TYPES}
    if part.name != "recurrent" and given:
        words = " and ".join(f"{name[-1].upper()} {kind}" for name, kind in given.items())
        were = f"{assumed.settings.type_k} and {assumed.settings.type_v}"
        yield Change(Term("types", f"The log has {words}; {were} were assumed."), given)
    if part.name == "kv" and not given and part.printed.k is None:
        for kind in OLDEST_TYPES:
            words = f"The log names no types; K and V of {kind} are this large."
            yield Change(Term("types", words), {"type_k": kind, "type_v": kind})


def _n_ctx(assumed: Assumed, told: Told, part: PrintedPart) -> Iterator[Change]:
    asked = assumed.settings.n_ctx
    wanted = [told.settings.n_ctx] if told.settings else []
    if part.cells is not None and part.name in {"kv", "base"}:
        wanted.append(part.cells * (part.n_stream or 1))
    said = bool(wanted)
    if not said:
        wanted += _implied(assumed, part)
    for n_ctx in wanted:
        if asked and 0 < n_ctx - asked < PAD:
            words = f"The cache has {n_ctx:,} cells: n_ctx is padded from {asked:,}."
            yield Change(Term("padding", words), {"n_ctx": n_ctx})
        else:
            words = f"The log has {'' if said else 'the size of '}n_ctx {n_ctx:,}; {asked:,} was assumed."
            yield Change(Term("n_ctx", words), {"n_ctx": n_ctx})


def _unpadded(assumed: Assumed, _: Told, part: PrintedPart) -> Iterator[Change]:
    """Versions of 2023 give the cache n_ctx cells as they are; those that pad print n_ctx afterwards."""
    n_ctx, rules = assumed.settings.n_ctx, assumed.settings.rules
    if n_ctx and part.name == "kv" and part.cells is None and rules is Rules.JANUARY_2025:
        padded = context_sizes(assumed.geometry, assumed.settings).cells
        if padded != n_ctx and assumed.geometry.kind == "attention":
            words = f"The cache has {n_ctx:,} cells, not {padded:,}: that version does not pad n_ctx."
            yield Change(Term("padding", words), cells=n_ctx)


def _implied(assumed: Assumed, part: PrintedPart) -> list[int]:
    """The n_ctx that a printed size comes to, if nothing else says it: a whole number of cells of the printed types."""
    kinds = {"type_k": part.type_k, "type_v": part.type_v}
    given: Mapping[str, Any] = {name: kind for name, kind in kinds.items() if kind in KV_TYPES}
    try:
        row = plan(assumed.geometry, replace(assumed.settings, **given)).bytes_per_token
    except KVModelError:
        return []
    cells = round(float(part.printed.total) * MIB / row) if row else 0
    return [cells] if 0 < cells <= MAX_PLAN_CTX else []


def _slots(assumed: Assumed, told: Told, part: PrintedPart) -> Iterator[Change]:
    for n_seq_max in (part.n_seqs, told.settings.n_seq_max if told.settings else None):
        if n_seq_max:
            words = f"The log has {count(n_seq_max, 'sequence')}; {assumed.settings.n_seq_max} was assumed."
            yield Change(Term("slots", words), {"n_seq_max": n_seq_max})
    implied = _implied_slots(assumed, part)
    if implied is not None:
        words = f"States of {count(implied, 'sequence')} are this large; {assumed.settings.n_seq_max} was assumed."
        yield Change(Term("slots", words), {"n_seq_max": implied})


def _implied_slots(assumed: Assumed, part: PrintedPart) -> int | None:
    """Sequences of a recurrent cache whose log does not count them: a cell holds one."""
    if assumed.geometry.kind != "recurrent" or part.n_seqs is not None:
        return None
    each = 4 * sum(r + s for r, s in assumed.geometry.states)
    found = part.cells or (round(float(part.printed.total) * MIB / each) if each else 0)
    return found if 0 < found <= MAX_PLAN_SEQ else None


def _earlier_states(assumed: Assumed, _: Told, part: PrintedPart) -> Iterator[Change]:
    """A cache of 2026 can hold some earlier states of each sequence, to go back to (n_rs_seq)."""
    if part.name == "recurrent" and part.n_rs_seq:
        held = 1 + part.n_rs_seq
        words = (
            f"Each sequence has {count(part.n_rs_seq, 'earlier state')} beside its own (rs_seq), {held} times the size."
        )
        widths = {name: tuple(held * n for n in getattr(assumed.geometry, name)) for name in ("n_embd_r", "n_embd_s")}
        yield Change(Term("earlier states", words), geometry=widths)


def _numbers(assumed: Assumed, told: Told, _: PrintedPart) -> Iterator[Change]:
    if told.settings is None:
        return
    for key, name in (("n_ubatch", "n_ubatch"), ("flash_attn", "flash attention")):
        have, were = getattr(told.settings, key), getattr(assumed.settings, key)
        words = f"The log has {name} {_shown(have)}; {_shown(were)} was assumed."
        yield Change(Term(name, words), {key: have})


def _model(assumed: Assumed, told: Told, _: PrintedPart) -> Iterator[Change]:
    if told.geometry is not None and _shape(told.geometry) != _shape(assumed.geometry):
        shape = {each.name: getattr(told.geometry, each.name) for each in fields(Geometry)}
        words = f"The model in the log ({told.geometry.arch}, {told.geometry.n_layer} layers) has another shape."
        yield Change(Term("model", words), geometry=shape)


def _streams(assumed: Assumed, _: Told, part: PrintedPart) -> Iterator[Change]:
    if assumed.settings.rules is Rules.STREAMS:
        unified = not assumed.settings.kv_unified
        words = "All sequences share one stream." if unified else "Each sequence has a stream of its own, padded alone."
        if part.n_stream is None or (part.n_stream == 1) == unified:
            yield Change(Term("streams", words), {"kv_unified": unified})


def _swa(assumed: Assumed, told: Told, part: PrintedPart) -> Iterator[Change]:
    geometry = assumed.geometry
    if geometry.swa_type is not SWAType.NONE:
        full = not assumed.settings.swa_full
        words = f"Window layers have {'as many' if full else 'fewer'} cells {'as' if full else 'than'} the others."
        yield Change(Term("swa_full", words), {"swa_full": full})
        if part.name == "kv":
            words = "Window layers are in the same cache as the others and keep every cell."
            yield Change(Term("window", words), geometry=_NO_WINDOW)
    if told.geometry is not None and told.geometry.swa_type is not SWAType.NONE:
        window = {name: getattr(told.geometry, name) for name in _NO_WINDOW}
        words = f"{sum(told.geometry.windows)} of {told.geometry.n_layer} layers have a window of {window['n_swa']:,}."
        yield Change(Term("window", words), geometry=window)


_NO_WINDOW: Mapping[str, Any] = {"swa_type": SWAType.NONE, "n_swa": 0, "swa_layers": None}


def _version(assumed: Assumed, told: Told, _: PrintedPart) -> Iterator[Change]:
    if told.settings is not None:
        rules = told.settings.rules
        words = f"The log is of {rules.words}; the rules of {assumed.settings.rules.words} were assumed."
        yield Change(Term("version", words), {"rules": rules, "kv_unified": told.settings.kv_unified})


def _shared(assumed: Assumed, _: Told, part: PrintedPart) -> Iterator[Change]:
    geometry = assumed.geometry
    if geometry.n_layer_kv_from_start is not None:
        words = "Every layer has K and V of its own; sharing was assumed."
        yield Change(Term("shared layers", words), geometry={"n_layer_kv_from_start": None})
    own = _owners(geometry, part)
    if own is not None and geometry.arch in {"gemma3n", "gemma4"}:
        words = f"Only the first {own} of {geometry.n_layer} layers have K and V of their own; the others reuse them."
        yield Change(Term("shared layers", words), geometry={"n_layer_kv_from_start": own})


def _owners(geometry: Geometry, part: PrintedPart) -> int | None:
    """The fewest first layers among which are as many of this part's kind as are printed."""
    if part.n_layer is None or part.name not in {"kv", "base", "swa"}:
        return None
    counts = [part.name == "kv" or window == (part.name == "swa") for window in geometry.windows]
    return next((n for n in range(1, len(counts) + 1) if sum(counts[:n]) == part.n_layer), None)


def _without_kv(assumed: Assumed, _: Told, part: PrintedPart) -> Iterator[Change]:
    geometry = assumed.geometry
    own = _owners(geometry, part)
    if own is not None and own < geometry.n_layer and part.name == "kv":
        heads = tuple(n_head if il < own else 0 for il, n_head in enumerate(geometry.heads))
        words = f"Only {own} of {geometry.n_layer} layers hold K and V; the others keep none, or a recurrent state."
        yield Change(Term("layers without KV", words), geometry={"n_head_kv": heads})


def _latent(assumed: Assumed, _: Told, __: PrintedPart) -> Iterator[Change]:
    words = {
        KeptMLA.HEADS: "K and V of all heads are kept, without compression.",
        KeptMLA.LATENT_TWICE: "The latent vector is kept as K and again as V.",
        KeptMLA.LATENT: "The latent vector is kept as K alone; there is no V.",
    }
    if assumed.geometry.mla is not None:
        for kept, told in words.items():
            if kept is not assumed.settings.kept_mla:
                yield Change(Term("latent attention", told), {"mla": kept})


def _differs(change: Change, assumed: Assumed) -> bool:
    """Whether a change is possible and changes anything."""
    try:
        made = change.made(assumed)
        context_sizes(made.geometry, made.settings)
    except KVModelError:
        return False
    return made != assumed or change.cells is not None


def _shape(geometry: Geometry) -> tuple[object, ...]:
    return (geometry.n_embd_k_gqa, geometry.n_embd_v_gqa, geometry.states)


def _shown(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else f"{value}"


MAKERS = (
    _types,
    _n_ctx,
    _unpadded,
    _slots,
    _earlier_states,
    _numbers,
    _model,
    _streams,
    _swa,
    _version,
    _shared,
    _without_kv,
    _latent,
)
"""The likeliest first; those that a log states itself come before those that are only supposed."""
