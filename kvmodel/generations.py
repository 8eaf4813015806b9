"""The caches of both generations by kind, each with the context that drives it."""

from kvmodel.caches.iswa import IswaCache
from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.memory_recurrent import RecurrentMemory
from kvmodel.caches.recurrent import RecurrentCache
from kvmodel.caches.unified import UnifiedCache
from kvmodel.configs import CacheConfig, IswaConfig, LegacyConfig
from kvmodel.context import Context
from kvmodel.context_legacy import LegacyContext
from kvmodel.events import Emit, silent
from kvmodel.scenario import Scenario


def make_context(scenario: Scenario, emit: Emit = silent) -> Context | LegacyContext:
    """The empty cache that a scenario asks for, in its context; both report to `emit`."""
    config, context = scenario.cache, scenario.context.params(scenario.cache.kind)
    if isinstance(config, CacheConfig):
        return Context(UnifiedCache(config.params, emit), context, emit)
    if isinstance(config, IswaConfig):
        return Context(IswaCache(config.pair(context.n_ubatch), emit), context, emit)
    if isinstance(config, LegacyConfig):
        return LegacyContext(LegacyCache(config.params, emit), context, emit)
    if config.kind == "memory_recurrent":
        return Context(RecurrentMemory(config.params, emit), context, emit)
    return LegacyContext(RecurrentCache(config.params, emit), context, emit)
