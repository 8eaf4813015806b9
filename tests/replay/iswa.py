"""Replays the interleaved-window cache: the unified driver on two parts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from kvmodel.caches.iswa import IswaCache, IswaParams
from tests.replay.driver import Args, Json
from tests.replay.unified import UnifiedDriver, cache_params

DEFAULT_PERIOD = 2


def swa_layers(header: Json) -> tuple[bool, ...]:
    """Which layers are window layers: a list, or a period n whose last layer of each n is none."""
    n_layer = header.get("n_layer", 1)
    if "swa_layers" in header:
        return tuple(header["swa_layers"])
    period = header.get("swa_pattern", DEFAULT_PERIOD)
    return tuple(period == 0 or il % period < period - 1 for il in range(n_layer))


class IswaDriver(UnifiedDriver):
    """A pair of caches, `base` and `swa`."""

    header_fields = UnifiedDriver.header_fields | {"swa_full", "swa_layers", "swa_pattern"}
    ops: ClassVar[Mapping[str, Args]] = UnifiedDriver.ops

    def build(self) -> None:
        model = replace(cache_params(self.header), swa_layers=swa_layers(self.header))
        cache = IswaCache(IswaParams(model, self.n_ubatch, self.header.get("swa_full", False)))
        self.cache, self.parts = cache, {part.name: part for part in cache.parts}
