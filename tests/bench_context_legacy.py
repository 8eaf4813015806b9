"""The decode loop of January 2025 on the bench."""

from typing import Any

from kvmodel.batch import Batch
from kvmodel.caches.legacy import LegacyCache
from kvmodel.context import ContextParams, DecodeResult
from kvmodel.context_legacy import MAX_NODES, LegacyContext
from kvmodel.events import (
    Event,
    QuirkSeen,
)
from kvmodel.types import CacheParams


class Bench:
    """A cache in its context, and what both tell."""

    def __init__(self, kv_size: int = 32, *, context: dict[str, Any] | None = None, **cache: Any) -> None:
        self.events: list[Event] = []
        params = CacheParams(kv_size, **{"n_seq_max": 4, "n_pad": 1} | cache)
        self.cache = LegacyCache(params, self.events.append)
        settings = ContextParams(**{"n_max_nodes": MAX_NODES} | (context or {}))
        self.context = LegacyContext(self.cache, settings, self.events.append)

    def decode(self, *runs: tuple[int, int, tuple[int, ...]], auto_pos: bool = False, **more: Any) -> DecodeResult:
        self.events.clear()
        return self.context.decode(Batch.from_runs(runs, auto_pos=auto_pos), **more)

    def update(self, **more: Any) -> bool:
        self.events.clear()
        return self.context.update(**more)

    def kinds(self) -> list[type[Event]]:
        return [type(event) for event in self.events]

    def quirks(self) -> list[str]:
        return [event.quirk for event in self.events if isinstance(event, QuirkSeen)]

    def pos(self, n: int) -> list[int]:
        return self.cache.arrays["pos"][:n].tolist()
