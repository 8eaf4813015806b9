"""Recorded K-shifts of the running library against ours.

A recording is a JSON list of cases: the rotation, the K rows of some cells before and after, as hexadecimal bytes.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kvmodel.ggml import dequantize
from kvmodel.rope import RopeParams, rotate
from kvmodel.rotation import Rotation
from kvmodel.tensors import Layout, Tensors
from kvmodel.types import CacheParams

MOST_APART = 0.005
"""Share of the bytes of a quantised K that may differ, each for a value between two steps of its type."""

Case = dict[str, Any]


@dataclass(frozen=True)
class Compared:
    """One case: how many bytes there are, how many differ, the largest difference of a value, and whether it holds."""

    name: str
    type_k: str
    n_bytes: int
    n_apart: int
    worst: float
    holds: bool


def load(path: Path) -> list[Case]:
    return list(json.loads(path.read_text(encoding="utf-8")))


def rope_of(case: Case) -> RopeParams:
    yarn, factors = case["yarn"], case.get("freq_factors")
    return RopeParams(
        n_rot=case["n_rot"],
        rope_type=case["rope"],
        freq_base=case["freq_base"],
        freq_scale=case["freq_scale"],
        freq_factors=factors and tuple(factors),
        n_ctx_orig=yarn["orig_ctx"],
        ext_factor=yarn["ext_factor"],
        attn_factor=yarn["attn_factor"],
        beta_fast=yarn["beta_fast"],
        beta_slow=yarn["beta_slow"],
    )


def params_of(case: Case) -> CacheParams:
    return CacheParams(
        len(case["k_before"]), n_pad=1, n_head_kv=case["n_head_kv"], n_embd_head_k=case["head_dim"],
        type_k=case["type_k"], arch=case["arch"],
    )  # fmt: skip


def rows_of(texts: list[str]) -> np.ndarray:
    return np.array([list(bytes.fromhex(text)) for text in texts], np.uint8)


def shift_of(case: Case) -> np.ndarray:
    return np.subtract(case["pos_after"], case["pos_before"]).astype(np.int32)


def shifted(case: Case) -> np.ndarray:
    """The K rows that our shift gives."""
    params = params_of(case)
    tensors = Tensors(Layout.of(params))
    tensors.k[0][:] = rows_of(case["k_before"])
    Rotation(rope_of(case)).turn(tensors, params, shift_of(case))
    return tensors.k[0]


def compare(case: Case) -> Compared:
    """Our rows against the library's, by what each type promises."""
    kind, ours, theirs = params_of(case).ggml_k, shifted(case), rows_of(case["k_after"])
    values = [dequantize(kind, rows).astype(np.float64) for rows in (ours, theirs)]
    difference = np.abs(values[0] - values[1])
    if kind.name == "f32":
        holds = bool((difference.max(axis=1) <= np.maximum(1e-5, 2e-6 * np.linalg.norm(values[1], axis=1))).all())
    elif kind.name == "f16":
        holds = bool((difference <= np.spacing(np.abs(theirs.view(np.float16))).astype(np.float64)).all())
    else:
        holds = (ours != theirs).mean() <= MOST_APART and (kind.name != "q8_0" or between_steps(case, ours, theirs))
    apart = int(np.count_nonzero(ours != theirs))
    return Compared(case["name"], kind.name, ours.size, apart, float(difference.max()), bool(holds))


def between_steps(case: Case, ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether every q8_0 number that differs does so by 1, for a value half-way between two steps."""
    before = dequantize(params_of(case).ggml_k, rows_of(case["k_before"]))
    heads = before.reshape(len(before), case["n_head_kv"], case["head_dim"])
    blocks = rotate(rope_of(case), heads, shift_of(case)).reshape(-1, 32).astype(np.float64)
    steps = blocks * 127 / np.maximum(np.abs(blocks).max(axis=1, keepdims=True), 1e-30)
    numbers = [rows.reshape(-1, 34)[:, 2:].view(np.int8).astype(int) for rows in (ours, theirs)]
    scales = [rows.reshape(-1, 34)[:, :2] for rows in (ours, theirs)]
    apart = numbers[0] != numbers[1]
    half_way = np.abs(np.abs(steps - np.floor(steps)) - 0.5) < 1e-3
    by_one = np.abs(numbers[0] - numbers[1]) <= 1
    return bool((half_way & by_one)[apart].all() and (scales[0] == scales[1]).all())
