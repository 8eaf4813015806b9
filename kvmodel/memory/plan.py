"""Bytes of every layer of every cache that a model gets for given settings."""

from dataclasses import dataclass
from functools import cached_property

from kvmodel.geometry import Geometry
from kvmodel.ggml import GGMLType, ggml_type
from kvmodel.memory.context import ContextSizes, context_sizes, has_windows
from kvmodel.memory.names import model_name
from kvmodel.memory.parts import LayerMemory, PartMemory
from kvmodel.memory.settings import KeptMLA, Rules, Settings
from kvmodel.memory.units import bytes_words, mib
from kvmodel.show import Card, Shown, Table
from kvmodel.words import count

STATE_TYPE = "f32"
"""Recurrent states are kept in full precision whatever types are asked for."""

COLUMNS = ("cache", "cells", "streams", "layers", "K MiB", "K type", "V MiB", "V type", "all MiB")


@dataclass(frozen=True, repr=False)
class MemoryPlan(Shown):
    """What the caches of one context take.

    Attributes:
        geometry: the model.
        settings: what was asked for.
        context: what became of that.
        parts: the caches, in the order in which llama.cpp makes them; none for an encoder.
    """

    geometry: Geometry
    settings: Settings
    context: ContextSizes
    parts: tuple[PartMemory, ...]

    @cached_property
    def k_bytes(self) -> int:
        """Bytes of K (and R) of all caches."""
        return sum(part.k_bytes for part in self.parts)

    @cached_property
    def v_bytes(self) -> int:
        """Bytes of V (and S) of all caches."""
        return sum(part.v_bytes for part in self.parts)

    @property
    def total(self) -> int:
        """Bytes of all tensors."""
        return self.k_bytes + self.v_bytes

    @cached_property
    def buffer_bytes(self) -> int:
        """Bytes of the buffers that hold them, the most exact figure of what is taken from a device."""
        return sum(part.buffer_bytes for part in self.parts)

    @property
    def bytes_per_token(self) -> int:
        """Bytes that one token's K and V take while every layer still holds it."""
        return sum(part.row_bytes for part in self.parts if part.name != "recurrent")

    @property
    def bytes_per_position(self) -> int:
        """Bytes by which one more position of n_ctx makes the caches grow; window layers count while they grow."""
        full = self.context.cells
        return sum(part.row_bytes for part in self.parts if part.name != "recurrent" and part.cells == full)

    def part(self, name: str) -> PartMemory | None:
        """The cache of that name, None if there is none."""
        return next((part for part in self.parts if part.name == name), None)

    def card(self) -> Card:
        """The model, what became of the context, and a table of the caches."""
        sizes, asked = self.context, self.settings
        padded = "" if sizes.n_ctx == sizes.asked else f" (padded from {sizes.asked:,})"
        facts = (
            f"n_ctx {sizes.n_ctx:,}{padded}, {count(asked.n_seq_max, 'sequence')} of {sizes.n_ctx_seq:,}, n_ubatch "
            f"{sizes.n_ubatch}, flash attention {'on' if sizes.flash_attn else 'off'}, rules of llama.cpp "
            f"{asked.rules.words}: {bytes_words(self.buffer_bytes) if self.parts else 'no cache, as for every encoder'}"
        )
        title = f"{model_name(self.geometry)} ({self.geometry.arch}), {count(self.geometry.n_layer, 'layer')}"
        return Card(title, facts, tables=(Table.of(COLUMNS, map(_row, self.parts)),))

    def by_layer(self) -> tuple[tuple[int, str, int, int], ...]:
        """One row for each layer and cache: index, name of the cache, bytes of K and of V; for a table or bars."""
        rows = [(layer.il, part.name, layer.k_bytes, layer.v_bytes) for part in self.parts for layer in part.layers]
        return tuple(sorted(rows))


def plan(geometry: Geometry, settings: Settings | None = None) -> MemoryPlan:
    """Size the caches of a model.

    Settings that llama.cpp refuses are planned all the same: `kvmodel.memory.refusals` names them.

    Args:
        geometry: the model.
        settings: what is asked for; left out, the defaults.

    Upstream: `llama_kv_cache_init` in llama-kv-cache.cpp (0.3.7); `create_memory` in llama-model.cpp and the
    constructors in llama-kv-cache-unified.cpp, llama-kv-cache-unified-iswa.cpp, llama-memory-recurrent.cpp and
    llama-memory-hybrid.cpp (0.3.11).

    Raises:
        ParamError: a row is no multiple of the type's block, or there is no n_ctx.
    """
    asked = settings or Settings()
    context = context_sizes(geometry, asked)
    parts: list[PartMemory] = []
    if geometry.kind in {"attention", "hybrid"}:
        parts += _attention(geometry, asked, context)
    if geometry.kind in {"recurrent", "hybrid"}:
        parts.append(_recurrent(geometry, context))
    return MemoryPlan(geometry, asked, context, tuple(parts))


def _row(part: PartMemory) -> tuple[object, ...]:
    halves = (mib(part.k_bytes), part.type_k, mib(part.v_bytes), part.type_v)
    return (part.name, part.cells, part.n_stream, len(part.layers), *halves, mib(part.total))


def held_layers(geometry: Geometry, rules: Rules) -> tuple[int, ...]:
    """Layers that a transformer cache makes tensors for, be they of 0 elements.

    A hybrid's cache leaves out the layers without heads; sharing layers came after January 2025.
    """
    own = geometry.n_layer_kv_from_start if rules is not Rules.JANUARY_2025 else None
    layers = range(geometry.n_layer if own is None else own)
    return tuple(il for il in layers if geometry.kind != "hybrid" or geometry.heads[il])


def widths(geometry: Geometry, settings: Settings, *, flash_attn: bool) -> tuple[tuple[int, int], ...]:
    """Elements of a K row and of a V row of each layer, as these settings keep them."""
    k, v = geometry.n_embd_k_gqa, geometry.n_embd_v_gqa
    if geometry.mla is not None and settings.kept_mla is not KeptMLA.HEADS:
        latent_v = geometry.mla.n_embd_v if settings.kept_mla is KeptMLA.LATENT_TWICE else 0
        k, v = (tuple(width if heads else 0 for heads in geometry.heads) for width in (geometry.mla.n_embd_k, latent_v))
    if settings.rules is Rules.STREAMS and not flash_attn and any(v):
        v = (max(v),) * len(v)  # a transposed V has rows of one width in all layers
    return tuple(zip(k, v, strict=True))


def _attention(geometry: Geometry, settings: Settings, context: ContextSizes) -> list[PartMemory]:
    rows = widths(geometry, settings, flash_attn=context.flash_attn)
    layers = held_layers(geometry, settings.rules)
    if not has_windows(geometry, settings):
        return [_part("kv", context.cells, layers, rows, settings, context)]
    halves = {flag: tuple(il for il in layers if geometry.windows[il] is flag) for flag in (False, True)}
    return [
        _part("base", context.cells, halves[False], rows, settings, context),
        _part("swa", context.window_cells, halves[True], rows, settings, context),
    ]


def _part(
    name: str,
    cells: int,
    layers: tuple[int, ...],
    rows: tuple[tuple[int, int], ...],
    settings: Settings,
    context: ContextSizes,
) -> PartMemory:
    all_cells = cells * context.n_stream
    held = tuple(_layer(il, rows[il], settings.ggml_k, settings.ggml_v, all_cells) for il in layers)
    return PartMemory(name, cells, context.n_stream, settings.n_seq_max, settings.type_k, settings.type_v, held)


def _recurrent(geometry: Geometry, context: ContextSizes) -> PartMemory:
    kind, cells = ggml_type(STATE_TYPE), context.recurrent_cells
    keep = [il for il, keeps in enumerate(geometry.recurrent) if keeps]
    held = tuple(_layer(il, geometry.states[il], kind, kind, cells) for il in keep)
    return PartMemory("recurrent", cells, 1, cells, STATE_TYPE, STATE_TYPE, held)


def _layer(il: int, row: tuple[int, int], kind_k: GGMLType, kind_v: GGMLType, cells: int) -> LayerMemory:
    k_row, v_row = kind_k.row_size(row[0], "n_embd_k_gqa"), kind_v.row_size(row[1], "n_embd_v_gqa")
    return LayerMemory(il, row[0], row[1], k_row, v_row, k_row * cells, v_row * cells)
