"""Replays unified and iSWA caches with their bytes: on top of all other operations state streams, fills and dumps."""

from collections.abc import Mapping
from typing import ClassVar

from kvmodel.formats.errors import StateError
from kvmodel.formats.state import read_state, write_state
from kvmodel.tensors import Tensors
from tests.replay.driver import Args, Json
from tests.replay.fnv import fnv1a
from tests.replay.iswa import IswaDriver
from tests.replay.unified import UnifiedDriver


class StateDriver(IswaDriver):
    """A cache of either kind, with tensors."""

    ops: ClassVar[Mapping[str, Args]] = {
        **UnifiedDriver.ops,
        "fill": Args.of("seed"),
        "dump_data": Args.of(),
        "state_write": Args.of("seq"),
        "state_read": Args.of("seq bytes"),
    }

    tensors: dict[str, Tensors]

    def build(self) -> None:
        (IswaDriver if self.header["kind"] == "iswa" else UnifiedDriver).build(self)
        self.tensors = {}
        for name, part in self.parts.items():
            part.attach()
            self.tensors[name] = part.tensors

    def state(self) -> Json:
        found = super().state()
        if self.header.get("kv_data", False):
            for name, tensors in self.tensors.items():
                found[name]["kv_hash"] = fnv1a(b"".join(array.tobytes() for array in (*tensors.k, *tensors.v)))
        return found

    def do_fill(self, op: Json) -> Json:
        for tensors in self.tensors.values():
            tensors.fill(op["seed"])
        return {}

    def do_dump_data(self, _op: Json) -> Json:
        return {
            name: {"k": [k.tobytes().hex() for k in tensors.k], "v": [v.tobytes().hex() for v in tensors.v]}
            for name, tensors in self.tensors.items()
        }

    def do_state_write(self, op: Json) -> Json:
        data = write_state(self.cache, op["seq"])
        return {"n": len(data), "bytes": data.hex()}

    def do_state_read(self, op: Json) -> Json:
        try:
            return {"ok": True, "read": read_state(self.cache, bytes.fromhex(op["bytes"]), op["seq"])}
        except StateError as refusal:
            return {"ok": False, "read": refusal.consumed, "error": refusal.kind}
