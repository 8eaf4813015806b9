"""Memory figures that real runs printed, and the model and settings of each, as their reporters tell them."""

import json
from typing import Any

from kvmodel.geometry import MLA, Geometry, swa_pattern
from kvmodel.memory import MemoryPlan, Settings, plan
from tests.sources import ROOT

ROWS: dict[str, dict[str, Any]] = {
    row["id"]: row for row in json.loads((ROOT / "tests/data/memory.json").read_text(encoding="utf-8"))
}

GEMMA3 = Geometry(18, 1, 256, 256, arch="gemma3", swa_type="standard", n_swa=512, swa_layers=swa_pattern(18, 6))
GEMMA4_26B = Geometry(
    30,
    tuple(2 if il % 6 == 5 else 8 for il in range(30)),
    tuple(512 if il % 6 == 5 else 256 for il in range(30)),
    tuple(512 if il % 6 == 5 else 256 for il in range(30)),
    arch="gemma4",
    swa_type="standard",
    n_swa=1024,
    swa_layers=swa_pattern(30, 6),
)
SPECIAL = {
    "m16": Geometry(61, 128, 192, 128, arch="deepseek2", mla=MLA(512, 64)),
    "m20": GEMMA3,
    "m24": GEMMA4_26B,
    "m28": Geometry(64, arch="mamba", recurrent_layers=True, n_embd_r=15360, n_embd_s=81920),
}
STREAMS = {"n_ubatch": 512, "flash_attn": True, "rules": "streams"}
"""Servers since 2026 pad to 256 and turn flash attention on by themselves."""


def geometry_of(row: dict[str, Any]) -> Geometry:
    """The model of a row; of those with several halves or devices, the part that the row prints."""
    special = SPECIAL.get(row["id"]) or SPECIAL.get(row["id"][:3])
    if special is not None:
        return special
    n_layer = row["groups"][0]["n_layer"]
    shape = (row["n_head_kv"], row["head_dim_k"], row["head_dim_v"])
    if row["recurrent"] is None:
        return Geometry(n_layer, *shape, arch=row["arch"])
    linear = tuple(il % 4 != 3 for il in range(4 * n_layer))
    heads = tuple(0 if skipped else shape[0] for skipped in linear)
    states = {"n_embd_r": row["recurrent"]["n_embd_r"], "n_embd_s": row["recurrent"]["n_embd_s"]}
    return Geometry(4 * n_layer, heads, *shape[1:], arch=row["arch"], recurrent_layers=linear, **states)


def settings_of(row: dict[str, Any]) -> Settings:
    """The settings of a row, with the rules of its time."""
    types = {"type_k": row["type_k"], "type_v": "f16" if row["type_v"] == "none" else row["type_v"]}
    newer = row["date"] >= "2025-09" or row["id"] == "m16"
    shared = {"kv_unified": not row["id"].startswith("m20")} if newer else {"rules": "0.3.7"}
    asked = {"n_ctx": row["n_ctx"], "n_seq_max": row["n_seq_max"], **types}
    return Settings(**{**asked, **(STREAMS if newer else {"flash_attn": types["type_v"] != "f16"}), **shared})


def planned(row: dict[str, Any]) -> MemoryPlan:
    """The plan of a row."""
    return plan(geometry_of(row), settings_of(row))


NAMES = {
    "m01": ("Qwen2.5 32B", "kv"),
    "m04": ("Command-R 35B", "kv"),
    "m07": ("Mistral 7B", "kv"),
    "m09": ("LLaMA 7B", "kv"),
    "m11": ("Qwen2.5 7B", "kv"),
    "m13": ("DeepSeek-R1", "kv"),
    "m16": ("DeepSeek-R1", "kv"),
    "m18": ("OLMoE 1B-7B", "kv"),
    "m19a": ("gpt-oss 20B", "base"),
    "m20a": ("Gemma 3 270M", None),
    "m20b": ("Gemma 3 270M", None),
    "m20c": ("Gemma 3 270M", None),
    "m20g": ("Gemma 3 270M", None),
    "m20h": ("Gemma 3 270M", None),
    "m21": ("Gemma 4 E4B", "base"),
    "m22a": ("Gemma 4 E4B", "base"),
    "m22c": ("Gemma 4 E4B", "swa"),
    "m24": ("Gemma 4 26B-A4B", None),
    "m25": ("Qwen3-Next 80B-A3B", "kv"),
    "m27a": ("Qwen3.5 9B", None),
    "m27b": ("Qwen3.5 9B", None),
    "m27c": ("Qwen3.5 9B", None),
    "m28": ("Mamba 2.8B", None),
}
"""The well-known model of a row, and which of its caches the row's figures are of; None for all together."""
