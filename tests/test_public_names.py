"""The public surface is a decision, not an accident."""

import kvmodel

PUBLIC = {
    "Batch", "BatchError", "CacheAbort", "CacheConfig", "CacheParams", "Context", "ContextConfig", "ContextParams",
    "Cursor", "DecodeResult", "DefragPlan", "KVModelError", "MaskReason", "ParamError", "PartSnapshot", "SWAType",
    "Scenario", "ScenarioError", "SlotSearch", "Snapshot", "Timeline", "UBatch", "UnifiedCache", "play",
}  # fmt: skip


def test_all_lists_the_public_names() -> None:
    assert set(kvmodel.__all__) == PUBLIC


def test_every_public_name_exists_and_is_documented() -> None:
    undocumented = [name for name in kvmodel.__all__ if not getattr(kvmodel, name).__doc__]
    assert undocumented == []
