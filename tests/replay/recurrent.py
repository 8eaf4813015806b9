"""Replays the older cache in recurrent mode: the older driver, with whole states for cells."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from kvmodel.batch import UBatch
from kvmodel.caches.base import Placed
from kvmodel.caches.recurrent import RecurrentCache
from kvmodel.caches.recurrent_params import RecurrentParams
from kvmodel.events import Event
from kvmodel.events_recurrent import SlotFilled, SlotRefused, SourcesTaken
from kvmodel.types import get_padding
from tests.replay.driver import Args, Json
from tests.replay.fnv import fnv1a
from tests.replay.legacy import LegacyDriver, checked_sizes, hand_made

MODEL_FIELDS = (
    "n_layer", "n_head_kv", "n_embd_head_k", "n_embd_head_v", "type_k", "type_v", "use_alibi",
    "n_rel_attn_bkts", "n_swa",
    "ssm_d_conv", "ssm_d_inner", "ssm_d_state", "wkv_head_size", "n_embd", "token_shift_count",
)  # fmt: skip
NO_SLOT = [0, 0]
"""A recurrent search names no cells."""


def recurrent_params(header: Json) -> RecurrentParams:
    """The cache that a header describes; the format's defaults are the model's own."""
    fields = checked_sizes(header) | {name: header[name] for name in MODEL_FIELDS if name in header}
    if isinstance(fields.get("n_head_kv"), list):
        fields["n_head_kv"] = tuple(fields["n_head_kv"])
    return RecurrentParams(**fields)


class RecurrentDriver(LegacyDriver):
    """One recurrent cache and its context."""

    header_fields = frozenset({"kind", "kv_size", "n_seq_max", "n_ubatch", "flash_attn", *MODEL_FIELDS})
    ops: ClassVar[Mapping[str, Args]] = LegacyDriver.ops | {
        "place": Args.of("", "tokens equal seqs pos inputs advance")
    }

    def build(self) -> RecurrentCache:
        self.sources: Json = {}
        return RecurrentCache(recurrent_params(self.header), self.receive)

    def opened(self) -> Json:
        cache = self.cache
        return {
            "ok": True,
            "recurrent": True,
            "v_trans": cache.params.v_trans,
            "can_shift": cache.can_shift,
            "size_k_bytes": cache.size_k_bytes,
            "size_v_bytes": cache.size_v_bytes,
            "total_size": cache.total_size,
            "padding": get_padding(flash_attn=self.header.get("flash_attn", False)),
            "max_nodes": self.context.params.n_max_nodes,
        }

    def cells(self) -> Json:
        arrays = self.cache.arrays
        columns = np.stack([arrays[name] for name in ("pos", "delta", "src", "tail")], axis=1)
        owners = arrays["seqs"].astype("<u8")
        data = np.concatenate([columns.astype("<i4"), owners.view("<i4").reshape(-1, 2)], axis=1)
        rows = zip(columns.tolist(), owners.tolist(), strict=True)
        return {"hash": fnv1a(data.tobytes()), "cells": [[*row, f"{bits:x}"] for row, bits in rows]}

    def inputs(self, _ubatch: UBatch) -> Json:
        return self.sources

    def receive(self, event: Event) -> None:
        match event:
            case SlotFilled():
                self.ubatches.append({"found": event.found, "slot": NO_SLOT, "head": self.cache.head})
            case SlotRefused():
                self.ubatches.append({"found": False, "slot": NO_SLOT, "head": self.cache.head})
            case SourcesTaken():
                self.sources = {"s_mask": event.s_mask.astype(int).tolist(), "s_copy": event.s_copy.tolist()}
            case _:
                super().receive(event)

    def do_place(self, op: Json) -> Json:
        self.ubatches = []
        ubatch, before = hand_made(op), Placed(self.cache.head, self.cache.n)
        found = self.cache.find_slot(ubatch).found
        told = dict(self.ubatches[0])
        if found and op.get("inputs", False):
            self.cache.set_inputs()
            told["inputs"] = self.sources
        if found and op.get("advance", False):
            self.cache.finish(ubatch, 0, before)
        return told

    def do_view(self, op: Json) -> Json:
        """As for the older cache; upstream's count of used cells is read as signed there."""
        used: Any = int(np.uint32(self.cache.used).astype(np.int32))
        return super().do_view(op) | {"init_used_cells": used, "api_used_cells": used}
