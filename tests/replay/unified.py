"""Replays the unified cache. What several caches do alike works on every part, so that a pair needs little more."""

from collections.abc import Mapping
from typing import ClassVar

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import Cache, MemoryStatus, Placed
from kvmodel.caches.unified import UnifiedCache
from kvmodel.checks import check, complete
from kvmodel.errors import BatchError
from kvmodel.types import CacheParams, get_padding
from tests.replay.describe import cache_sizes, cache_state, ubatch_fields, update_fields
from tests.replay.driver import Args, BadRecord, Driver, Json
from tests.replay.inputs import Wanted, graph_inputs

N_MAX_NODES = 65536
"""Graph budget of an update that names none."""

SIZES = ("kv_size", "n_seq_max", "n_pad")
DEFAULTS: Json = {
    "swa_type": "none", "n_swa": 0, "n_layer": 1, "n_head_kv": 1, "n_embd_head_k": 4, "n_embd_head_v": 4,
    "type_k": "f16", "type_v": "f16", "v_trans": True, "use_alibi": False, "n_rel_attn_bkts": 0,
}  # fmt: skip


def cache_params(header: Json) -> CacheParams:
    """The cache that a header describes, with the format's defaults."""
    missing = [name for name in (*SIZES, "n_ubatch") if name not in header]
    if missing:
        raise BadRecord(f"{', '.join(missing)} missing")
    fields = {name: header[name] for name in SIZES} | {name: header.get(name, DEFAULTS[name]) for name in DEFAULTS}
    if isinstance(fields["n_head_kv"], list):
        fields["n_head_kv"] = tuple(fields["n_head_kv"])
    return CacheParams(**fields)


class UnifiedDriver(Driver):
    """One unified cache, called `kv`.

    Attributes:
        cache: what is asked and changed.
        parts: the unified caches it consists of, by the names that a recording gives them.
    """

    header_fields = frozenset({"kind", "kv_data", "n_ubatch", *SIZES, *DEFAULTS})
    ops: ClassVar[Mapping[str, Args]] = {
        "seq_rm": Args.of("seq p0 p1"),
        "seq_cp": Args.of("src dst p0 p1"),
        "seq_keep": Args.of("seq"),
        "seq_add": Args.of("seq p0 p1 shift"),
        "seq_div": Args.of("seq p0 p1 d"),
        "clear": Args.of("data"),
        "seq_pos_min": Args.of("seq"),
        "seq_pos_max": Args.of("seq"),
        "decode": Args.of("tokens", "n_ubatch input auto_pos masks bucket"),
        "place": Args.of("tokens", "masks bucket"),
        "find_slot": Args.of("tokens"),
        "update": Args.of("optimize", "thold n_max_nodes"),
    }

    cache: Cache
    parts: dict[str, UnifiedCache]

    def __init__(self, header: Json) -> None:
        self.header = header
        self.n_ubatch: int = header.get("n_ubatch", 0)
        self.build()

    def build(self) -> None:
        """Make the cache and name its parts."""
        cache = UnifiedCache(cache_params(self.header))
        self.cache, self.parts = cache, {"kv": cache}

    def opened(self) -> Json:
        padding = {f"flash_attn={str(on).lower()}": get_padding(flash_attn=on) for on in (False, True)}
        sizes = {name: cache_sizes(part) for name, part in self.parts.items()}
        return sizes | {"get_padding": padding, "can_shift": self.cache.can_shift}

    def state(self) -> Json:
        return {name: cache_state(part, self.header["n_seq_max"]) for name, part in self.parts.items()}

    def do_seq_rm(self, op: Json) -> Json:
        return {"ret": self.cache.seq_rm(op["seq"], op["p0"], op["p1"])}

    def do_seq_cp(self, op: Json) -> Json:
        self.cache.seq_cp(op["src"], op["dst"], op["p0"], op["p1"])
        return {}

    def do_seq_keep(self, op: Json) -> Json:
        self.cache.seq_keep(op["seq"])
        return {}

    def do_seq_add(self, op: Json) -> Json:
        self.cache.seq_add(op["seq"], op["p0"], op["p1"], op["shift"])
        return {}

    def do_seq_div(self, op: Json) -> Json:
        self.cache.seq_div(op["seq"], op["p0"], op["p1"], op["d"])
        return {}

    def do_clear(self, op: Json) -> Json:
        self.cache.clear(op["data"])
        return {}

    def do_seq_pos_min(self, op: Json) -> Json:
        return {"ret": self.cache.seq_pos_min(op["seq"])}

    def do_seq_pos_max(self, op: Json) -> Json:
        return {"ret": self.cache.seq_pos_max(op["seq"])}

    def do_decode(self, op: Json) -> Json:
        embd = op.get("input", "token") == "embd"
        batch = Batch.from_runs(op["tokens"], embd=embd, auto_pos=op.get("auto_pos", False))
        try:
            batch = complete(batch, self.cache.seq_pos_max)
            check(batch, self.cache.seq_pos_min, self.cache.seq_pos_max)
        except BatchError as error:
            return {"init": False, "error": error.kind}
        prepared = self.cache.init_batch(batch, op.get("n_ubatch", self.n_ubatch))
        found: Json = {"init": True, "status": str(prepared.status)}
        if prepared.status is not MemoryStatus.SUCCESS:
            return found
        wanted = Wanted.by(op, self.header)
        found["ubatches"] = []
        for i, ubatch in enumerate(prepared.ubatches):
            placed = self.cache.apply(prepared, i)
            stored = self._stored(ubatch, placed, wanted)
            found["ubatches"].append(ubatch_fields(ubatch) | stored | {"applied": placed.keys() == self.parts.keys()})
        return found

    def do_place(self, op: Json) -> Json:
        ubatch = UBatch.plain(Batch.from_runs(op["tokens"]))
        slots = {}
        for name, part in self.parts.items():
            heads = part.prepare([ubatch])
            if heads is None:
                return {"ok": False}
            slots[name] = heads[0]
        placed = {}
        for name, part in self.parts.items():
            part.apply_ubatch(slots[name], ubatch)
            placed[name] = Placed(slots[name], part.n_kv)
        return {"ok": True, **self._stored(ubatch, placed, Wanted.by(op, self.header))}

    def _stored(self, ubatch: UBatch, placed: dict[str, Placed], wanted: Wanted) -> Json:
        """For every part where a ubatch went and what attention gets to see."""
        return {
            name: {"head": at.head, "n_kv": at.n_kv, **graph_inputs(self.parts[name], ubatch, wanted)}
            for name, at in placed.items()
        }

    def do_find_slot(self, op: Json) -> Json:
        n_tokens = len(Batch.from_runs(op["tokens"]))
        return {name: part.find_slot(n_tokens).cell for name, part in self.parts.items()}

    def do_update(self, op: Json) -> Json:
        n_max_nodes = op.get("n_max_nodes", N_MAX_NODES)
        prepared = self.cache.init_update(optimize=op["optimize"], thold=op.get("thold", 0.0), n_max_nodes=n_max_nodes)
        k_shifts = self.cache.update(prepared)
        found = {name: update_fields(info, k_shifts.get(name)) for name, info in prepared.parts.items()}
        return {**found, "status": str(prepared.status)}
