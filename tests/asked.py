"""Scenarios to ask about."""

from typing import Any

from kvmodel.player import play
from kvmodel.scenario import Scenario
from kvmodel.timeline import Timeline

Json = dict[str, Any]


def played(ops: list[Json], context: Json | None = None, **cache: Any) -> Timeline:
    document = {"title": "t", "cache": {"kv_size": 32, "n_seq_max": 8} | cache, "context": context or {}, "ops": ops}
    return play(Scenario.model_validate(document))


def decode(n: int, *seq: int, **more: Any) -> Json:
    return {"op": "decode", "tokens": [{"n": n, "seq": list(seq) or [0]}], **more}


def rm(seq: int, p0: int = -1, p1: int = -1) -> Json:
    return {"op": "seq_rm", "seq": seq, "p0": p0, "p1": p1}
