"""The families of recordings, which one a recording belongs to, and what replays it."""

from tests.replay.driver import BadRecord, Driver, Json
from tests.replay.iswa import IswaDriver
from tests.replay.legacy import LegacyDriver
from tests.replay.recurrent import RecurrentDriver
from tests.replay.state import StateDriver
from tests.replay.unified import UnifiedDriver

FAMILIES = ("unified", "iswa", "state", "legacy", "recurrent")
KINDS = frozenset(FAMILIES) - {"state"}
STATE_OPS = frozenset({"fill", "dump_data", "state_write", "state_read"})

DRIVERS: dict[str, type[Driver]] = {
    "unified": UnifiedDriver,
    "iswa": IswaDriver,
    "state": StateDriver,
    "recurrent": RecurrentDriver,
    "legacy": LegacyDriver,
}
"""Family -> what replays it; a family without an entry is not built yet."""


def family_of(header: Json, ops: set[str]) -> str:
    """The family of a recording: a unified or iSWA one with bytes is of the family `state`.

    Raises:
        BadRecord: the header's kind is none of the known ones.
    """
    kind = header.get("kind")
    if kind not in KINDS:
        raise BadRecord(f"kind is {kind!r}; allowed: {', '.join(sorted(KINDS))}")
    with_bytes = header.get("kv_data", False) or ops & STATE_OPS
    return "state" if with_bytes and kind in {"unified", "iswa"} else str(kind)
