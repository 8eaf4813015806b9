"""The graph inputs of one ubatch as a recording holds them: masks and relative position buckets."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvmodel.batch import UBatch
from kvmodel.caches.unified import UnifiedCache
from kvmodel.mask import MaskReason, kq_mask, mask_reasons, pos_buckets
from tests.replay.codec import packed_rows
from tests.replay.fnv import fnv1a

ALIBI_ENTRIES_MAX = 4096
MASK_BITS_MAX = 8192


@dataclass(frozen=True)
class Wanted:
    """Which inputs an operation recorded.

    Attributes:
        masks: contains c for the causal mask, n for the other one.
        bucket: relative position buckets.
        bits_max: rows are spelled out up to that many mask entries.
    """

    masks: str = "c"
    bucket: bool = False
    bits_max: int = MASK_BITS_MAX

    @classmethod
    def by(cls, op: dict[str, Any], header: dict[str, Any]) -> "Wanted":
        """As one operation asks for."""
        masks = op.get("masks", "c") if header.get("record_mask", True) else ""
        return cls(masks, op.get("bucket", False), header.get("mask_bits_max", MASK_BITS_MAX))


def graph_inputs(cache: UnifiedCache, ubatch: UBatch, wanted: Wanted) -> dict[str, Any]:
    """Fields `mask`, `mask_nc` and `bucket` of a ubatch that was just stored, as far as wanted."""
    found: dict[str, Any] = {}
    if "c" in wanted.masks:
        found["mask"] = mask_object(cache, ubatch, causal=True, bits_max=wanted.bits_max)
    if "n" in wanted.masks:
        found["mask_nc"] = mask_object(cache, ubatch, causal=False, bits_max=wanted.bits_max)
    if wanted.bucket:
        pos = cache.cells.pos[: cache.n_kv]
        found["bucket"] = pos_buckets(pos, ubatch.pos, cache.params.n_rel_attn_bkts).tolist()
    return found


def mask_object(cache: UnifiedCache, ubatch: UBatch, *, causal: bool, bits_max: int) -> dict[str, Any]:
    """One mask object. What no recording has, `anomaly`, says that the mask breaks a rule."""
    p = cache.params
    cells = cache.cells.pos[: cache.n_kv], cache.cells.seqs[: cache.n_kv]
    rules: dict[str, Any] = {"causal": causal, "swa_type": p.swa_type, "n_swa": p.n_swa}
    mask = kq_mask(*cells, ubatch.pos, ubatch.first_seq, **rules, use_alibi=p.use_alibi)
    reasons = mask_reasons(*cells, ubatch.pos, ubatch.first_seq, **rules)
    rows = mask[: len(ubatch)]
    visible = rows > -np.inf
    packed = packed_rows(visible)
    found: dict[str, Any] = {"ones": int(np.count_nonzero(visible)), "fnv": fnv1a(packed.tobytes())}
    if visible.size <= bits_max:
        found["rows"] = [row.tobytes().hex() for row in packed]
    if p.use_alibi and visible.size <= ALIBI_ENTRIES_MAX:
        found["alibi"] = np.where(visible, rows.astype(object), np.array(None)).tolist()
    wrong = _anomalies(mask, visible, reasons, p.use_alibi)
    return found | ({"anomaly": wrong} if wrong else {})


def _anomalies(
    mask: NDArray[np.float32], visible: NDArray[np.bool_], reasons: NDArray[np.uint8], use_alibi: bool
) -> list[str]:
    n = len(visible)
    rules = {
        "a padding row is visible": (mask[n:] > -np.inf).any(),
        "rows are no multiple of 64": len(mask) % 64 != 0,
        "a visible entry is not 0": not use_alibi and mask[:n][visible].any(),
        "the reasons name other cells visible": ((reasons == MaskReason.VISIBLE) != visible).any(),
    }
    return [rule for rule, broken in rules.items() if broken]
