"""Recorded runs of llama.cpp of January 2025: every call gives the recorded result and leaves the recorded view.

A run is one JSON file: settings, and calls with their result and the cache view after each. The view lists every cell
with its position, pending shift included, and its sequences.
"""

import json
from typing import Any

import pytest

from kvmodel.batch import Batch
from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.legacy_view import view_cells
from kvmodel.context import ContextParams
from kvmodel.context_legacy import MAX_NODES, LegacyContext
from kvmodel.types import CacheParams, pad
from tests.live import FOLDER, WITHOUT_COUNTERPART

Json = dict[str, Any]

RUNS = (
    "chat-context-shift",
    "fragment-then-defrag",
    "speculative",
    "types-f32-f32",
    "types-q8_0-f16",
    "types-q8_0-q8_0-fa",
    "y-equals-x-plus-1",
)
N_LAYER = 2
"""Layers of the models that were run."""


def context_of(config: Json) -> LegacyContext:
    flash_attn = config.get("flash_attn", False)
    cells = pad(config["n_ctx"], 256 if flash_attn else 32)
    params = CacheParams(cells, n_seq_max=config["n_seq_max"], n_layer=N_LAYER, v_trans=not flash_attn)
    settings = ContextParams(n_batch=config["n_batch"], n_ubatch=config["n_ubatch"], n_max_nodes=MAX_NODES)
    return LegacyContext(LegacyCache(params), settings)


def called(context: LegacyContext, call: Json) -> int | bool | None:
    """The result of one call; what a program may ask of the context first goes through it."""
    name = call["op"]
    if name == "decode":
        return context.decode(Batch.from_runs([(pos, 1, seqs) for _, pos, seqs in call["tokens"]])).ret
    if name == "update":
        context.update()
        return None
    return getattr(context if hasattr(context, name) else context.cache, name)(*call["args"])


def shown(context: LegacyContext, n_seq_max: int) -> Json:
    view = view_cells(context.cache.cells, n_seq_max)
    rows = zip(view.pos.tolist(), view.seqs.tolist(), strict=True)
    return {
        "n_cells": view.n_cells,
        "token_count": view.token_count,
        "used_cells": view.used_cells,
        "max_contiguous": view.max_contiguous,
        "max_contiguous_idx": view.max_contiguous_idx,
        "cells": [[pos, [seq for seq in seqs if seq >= 0]] for pos, seqs in rows],
    }


@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_run(name):
    run = json.loads((FOLDER / "0.3.7" / f"{name}.json").read_text(encoding="utf-8"))
    context = context_of(run["config"])
    steps = [step for step in run["steps"] if step["op"]["op"] not in WITHOUT_COUNTERPART]
    results = []
    for step in steps:
        result = called(context, step["op"])
        results.append((result, shown(context, run["config"]["n_seq_max"])))
    assert results == [(step["result"], step["view"]) for step in steps]
    assert len(steps) >= 5
