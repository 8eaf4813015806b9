"""An exact, inspectable model of llama.cpp's KV caches.

The names below are the public ones; figures are in `kvmodel.figures`.
"""

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.unified import UnifiedCache
from kvmodel.context import Context, ContextParams, DecodeResult
from kvmodel.defrag import DefragPlan
from kvmodel.errors import BatchError, CacheAbort, KVModelError, ParamError
from kvmodel.mask import MaskReason
from kvmodel.player import play
from kvmodel.scenario import CacheConfig, ContextConfig, Scenario, ScenarioError
from kvmodel.slots import SlotSearch
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Cursor, Snapshot, Timeline
from kvmodel.types import CacheParams, SWAType

__all__ = [
    "Batch",
    "BatchError",
    "CacheAbort",
    "CacheConfig",
    "CacheParams",
    "Context",
    "ContextConfig",
    "ContextParams",
    "Cursor",
    "DecodeResult",
    "DefragPlan",
    "KVModelError",
    "MaskReason",
    "ParamError",
    "PartSnapshot",
    "SWAType",
    "Scenario",
    "ScenarioError",
    "SlotSearch",
    "Snapshot",
    "Timeline",
    "UBatch",
    "UnifiedCache",
    "play",
]
