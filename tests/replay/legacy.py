"""Replays the older transformer cache: what happened is collected from the events while it happens."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import Placed
from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.legacy_cells import LegacyCells
from kvmodel.caches.legacy_view import view_cells
from kvmodel.context import ContextParams
from kvmodel.context_legacy import MAX_NODES, LegacyContext
from kvmodel.defrag import DefragPlan
from kvmodel.events import ComputeFailed, DefragDecided, DefragPlanned, Event, ShiftApplied, SlotSearched, UBatchStored
from kvmodel.limits import MAX_BATCH
from kvmodel.split_legacy import SPLITS
from kvmodel.types import CacheParams, SWAType
from tests.replay.codec import cell_runs, index_runs, token_runs, value_runs
from tests.replay.describe import IDS_MAX
from tests.replay.driver import Args, BadRecord, Driver, Json
from tests.replay.fnv import fnv1a
from tests.replay.inputs import Wanted, graph_inputs, mask_object

VIEW_CELLS_MAX = 64
"""Largest cache whose view a recording spells out."""

SIZES = ("kv_size", "n_seq_max", "n_ubatch")
DEFAULTS: Json = {
    "n_layer": 1, "n_head_kv": 1, "n_embd_head_k": 4, "n_embd_head_v": 4, "type_k": "f16", "type_v": "f16",
    "use_alibi": False, "n_rel_attn_bkts": 0,
}  # fmt: skip


def checked_sizes(header: Json) -> Json:
    """The fields that every header of this generation must have."""
    missing = [name for name in SIZES if name not in header]
    if missing:
        raise BadRecord(f"{', '.join(missing)} missing")
    return {name: header[name] for name in ("kv_size", "n_seq_max")}


def cache_params(header: Json) -> CacheParams:
    """The cache that a header describes, with the format's defaults; its size need not be a multiple of the padding."""
    fields = checked_sizes(header) | {name: header.get(name, DEFAULTS[name]) for name in DEFAULTS}
    if isinstance(fields["n_head_kv"], list):
        fields["n_head_kv"] = tuple(fields["n_head_kv"])
    return CacheParams(**fields, n_pad=1, v_trans=not header.get("flash_attn", False))


def cell_bytes(cells: LegacyCells) -> bytes:
    """What a state hash covers: position, delta, source, tail and owners of every cell, 24 little-endian bytes each."""
    words = np.full((len(cells), 6), -1, "<i4")
    words[:, 0], words[:, 1] = cells.pos, cells.delta
    words[:, 4:] = cells.seqs.astype("<u8", copy=False).view("<i4").reshape(-1, 2)
    return words.tobytes()


def ubatch_fields(ubatch: UBatch) -> Json:
    """What a ubatch holds, whether it finds a slot or not."""
    return {
        "n_tokens": len(ubatch),
        "equal_seqs": ubatch.equal_seqs,
        "n_seqs": ubatch.n_seqs,
        "n_seq_tokens": ubatch.n_seq_tokens,
        "idx": index_runs(ubatch.idx),
        "tokens": token_runs(ubatch.runs),
    }


def plan_fields(plan: DefragPlan) -> Json:
    """What a defrag moved."""
    found: Json = {
        "n_moves": plan.n_moves,
        "n_ids": len(plan.ids),
        "moves": plan.moves.tolist(),
        "ids_fnv": fnv1a(plan.ids.astype("<u4").tobytes()),
    }
    return found | ({"ids": plan.ids.tolist()} if len(plan.ids) <= IDS_MAX else {})


def hand_made(op: Json) -> UBatch:
    """The ubatch of a `place`: plain tokens, or sequences of equal length one after the other."""
    if not op.get("equal", False):
        return UBatch.plain(Batch.from_runs(op["tokens"]))
    per = len(op["pos"]) // len(op["seqs"]) if op["seqs"] else 0
    owners = [seqs for seqs in op["seqs"] for _ in range(per)]
    batch = Batch.from_runs(zip(op["pos"], [1] * len(owners), owners, strict=True))
    return UBatch.of(batch, np.arange(len(batch), dtype=np.int32), len(op["seqs"]), True)


@dataclass(frozen=True)
class View:
    """What attention looks at, in the words of a unified cache."""

    cells: LegacyCells
    n_kv: int
    params: CacheParams


class LegacyDriver(Driver):
    """One older cache and its context. What a recurrent cache does otherwise stands in methods of its own.

    Attributes:
        cache: what is asked and changed.
        context: decode and update around it.
        wanted: the inputs that the operation under way recorded.
        ubatches: what became of every ubatch of the decode under way.
        update: what the update under way did.
        frag: the fragmentation that the decode under way looked at.
    """

    header_fields = frozenset({"kind", "flash_attn", "n_swa", *SIZES, *DEFAULTS})
    ops: ClassVar[Mapping[str, Args]] = {
        "seq_rm": Args.of("seq p0 p1"),
        "seq_cp": Args.of("src dst p0 p1"),
        "seq_keep": Args.of("seq"),
        "seq_add": Args.of("seq p0 p1 shift"),
        "seq_div": Args.of("seq p0 p1 d"),
        "clear": Args.of(),
        "seq_pos_max": Args.of("seq"),
        "cell_max": Args.of(),
        "defrag": Args.of(),
        "k_shift": Args.of(),
        "decode": Args.of("tokens", "n_ubatch split auto_update fail_at defrag_thold masks bucket"),
        "place": Args.of("", "tokens equal seqs pos advance"),
        "update": Args.of(),
        "view": Args.of("n_seq_max"),
    }

    def __init__(self, header: Json) -> None:
        self.header = header
        self.n_ubatch: int = header.get("n_ubatch", 0)
        self.cache = self.build()
        self.context = self.context_of(-1.0)
        self.wanted = Wanted()
        self.ubatches: list[Json] = []
        self.update: Json = {}
        self.frag: float | None = None

    def build(self) -> Any:
        """Make the cache."""
        return LegacyCache(cache_params(self.header), self.receive)

    def context_of(self, defrag_thold: float) -> LegacyContext:
        """A context around the cache; one lives as long as its threshold counts."""
        params = ContextParams(n_batch=MAX_BATCH, defrag_thold=defrag_thold, n_max_nodes=MAX_NODES)
        return LegacyContext(self.cache, params, self.receive)

    def opened(self) -> Json:
        cache = self.cache
        return {
            "ok": True,
            "recurrent": False,
            "v_trans": cache.params.v_trans,
            "can_shift": cache.can_shift,
            "size_k_bytes": cache.size_k_bytes,
            "size_v_bytes": cache.size_v_bytes,
            "total_size": cache.total_size,
            "padding": cache.padding,
            "max_nodes": self.context.params.n_max_nodes,
        }

    def state(self) -> Json:
        cache = self.cache
        counters = ("head", "used", "n", "has_shift", "do_defrag", "cell_max", "max_pos")
        return {
            **{name: getattr(cache, name) for name in counters},
            "pmax": [cache.seq_pos_max(seq) for seq in range(self.header["n_seq_max"])],
            **self.cells(),
        }

    def cells(self) -> Json:
        """The cells and their hash."""
        cells = self.cache.cells
        return {"hash": fnv1a(cell_bytes(cells)), "cells": cell_runs(cells.pos, cells.delta, cells.seqs)}

    def inputs(self, ubatch: UBatch) -> Json:
        """The graph inputs of a ubatch that was just stored."""
        cache, n_swa = self.cache, self.header.get("n_swa", 0)
        seen = View(cache.cells, cache.n, cache.params)
        found = graph_inputs(seen, ubatch, self.wanted)
        if n_swa and "c" in self.wanted.masks:
            window = replace(seen, params=replace(cache.params, swa_type=SWAType.STANDARD, n_swa=n_swa))
            found["mask_swa"] = mask_object(window, ubatch, causal=True, bits_max=self.wanted.bits_max)
        return found

    def receive(self, event: Event) -> None:
        """Take an event, and the state at that moment."""
        match event:
            case ShiftApplied():
                self.update["k_shift"] = value_runs(event.k_shift)
            case DefragPlanned():
                self.update |= plan_fields(event.plan)
            case SlotSearched():
                begin = event.search.cell
                slot = [begin, begin + event.search.n_tokens] if event.search.found else [0, 0]
                found = {"found": event.search.found, "slot": slot, "head": self.cache.head}
                self.ubatches.append(self.updated() | found if self.update else found)
            case UBatchStored():
                self.ubatches[-1] |= {"n": event.n_kv, **self.inputs(event.stored)}
            case ComputeFailed():
                self.ubatches[-1]["restored"] = True
            case DefragDecided():
                self.frag = event.fragmentation

    def updated(self) -> Json:
        """What the update did that is now over, inside a decode."""
        return {"update": self.taken_update()}

    def taken_update(self) -> Json:
        """The fields of the update that is now over."""
        found, self.update = self.update, {}
        return {"do_shift": "k_shift" in found, "do_defrag": "n_ids" in found, **found}

    def do_seq_rm(self, op: Json) -> Json:
        return {"ret": self.cache.seq_rm(op["seq"], op["p0"], op["p1"])}

    def do_seq_cp(self, op: Json) -> Json:
        self.cache.seq_cp(op["src"], op["dst"], op["p0"], op["p1"])
        return {}

    def do_seq_keep(self, op: Json) -> Json:
        self.cache.seq_keep(op["seq"])
        return {}

    def do_seq_add(self, op: Json) -> Json:
        self.cache.seq_add(op["seq"], op["p0"], op["p1"], op["shift"])
        return {}

    def do_seq_div(self, op: Json) -> Json:
        self.cache.seq_div(op["seq"], op["p0"], op["p1"], op["d"])
        return {}

    def do_clear(self, _op: Json) -> Json:
        self.cache.clear()
        return {}

    def do_seq_pos_max(self, op: Json) -> Json:
        return {"ret": self.cache.seq_pos_max(op["seq"])}

    def do_cell_max(self, _op: Json) -> Json:
        return {"ret": self.cache.cell_max}

    def do_defrag(self, _op: Json) -> Json:
        self.context.defrag()
        return {}

    def do_k_shift(self, _op: Json) -> Json:
        return {"k_shift": value_runs(self.cache.cells.delta)}

    def do_decode(self, op: Json) -> Json:
        self.wanted = Wanted.by(op, self.header)
        self.ubatches, self.frag = [], None
        batch = Batch.from_runs(op["tokens"])
        n_ubatch, how = op.get("n_ubatch", self.n_ubatch), op.get("split", self.cache.split)
        result = self.context_of(op.get("defrag_thold", -1.0)).decode(
            batch, n_ubatch=n_ubatch, split=how, fail_at=op.get("fail_at"), auto_update=op.get("auto_update", True)
        )
        parts = SPLITS[how](batch, n_ubatch)[: len(self.ubatches)]
        told = [ubatch_fields(part) | found for part, found in zip(parts, self.ubatches, strict=True)]
        return {"ret": result.ret, "ubatches": told} | ({} if self.frag is None else {"frag": self.frag})

    def do_place(self, op: Json) -> Json:
        self.ubatches = []
        ubatch, before = hand_made(op), Placed(self.cache.head, self.cache.n)
        search = self.cache.find_slot(ubatch)
        [found] = self.ubatches
        if search.found and op.get("advance", False):
            self.wanted = Wanted("", False)
            self.cache.finish(ubatch, 0, before)
            found.pop("n")
        return found

    def do_update(self, _op: Json) -> Json:
        self.context.update()
        return self.taken_update()

    def do_view(self, op: Json) -> Json:
        cells, n_seq_max = self.cache.cells, op["n_seq_max"]
        view = view_cells(cells, n_seq_max)
        found: Json = {
            "init_used_cells": self.cache.used,
            "init_n_cells": 0,
            "init_max_contiguous_idx": -1,
            "n_cells": view.n_cells,
            "token_count": view.token_count,
            "used_cells": view.used_cells,
            "max_contiguous": view.max_contiguous,
            "max_contiguous_idx": view.max_contiguous_idx,
            "pos_fnv": fnv1a(view.pos.astype("<i4").tobytes()),
            "seqs_fnv": fnv1a(view.seqs.astype("<i4").tobytes()),
            "api_token_count": view.token_count,
            "api_used_cells": self.cache.used,
        }
        spelled = {"pos": view.pos.tolist(), "seqs": view.seqs.ravel().tolist()}
        return found | (spelled if view.n_cells <= VIEW_CELLS_MAX else {})
