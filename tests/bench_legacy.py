"""The transformer cache of January 2025 on the bench: its cells as symbols, and everything it told."""

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.base import Placed
from kvmodel.caches.legacy import LegacyCache
from kvmodel.events import (
    Event,
    QuirkSeen,
)
from kvmodel.types import CacheParams


class Bench:
    """A cache, what it tells, and its cells as text: `a` for sequence 0, `M` for several, `?` for no owner."""

    def __init__(self, n: int, **params: object) -> None:
        self.events: list[Event] = []
        self.cache = LegacyCache(CacheParams(n, **{"n_seq_max": 4, "n_pad": 1} | params), self.events.append)

    def place(self, *runs: tuple[int, int, tuple[int, ...]]) -> bool:
        """Seek and store tokens as one ubatch, then let head pass them."""
        before, ubatch = Placed(self.cache.head, self.cache.n), UBatch.plain(Batch.from_runs(runs))
        search = self.cache.find_slot(ubatch)
        if search.found:
            self.cache.finish(ubatch, 0, before)
        return search.found

    def told(self) -> list[Event]:
        """The events since the last call."""
        events, self.events[:] = list(self.events), []
        return events

    def quirks(self) -> list[str]:
        return [event.quirk for event in self.told() if isinstance(event, QuirkSeen)]

    def row(self) -> str:
        owners = zip(self.cache.cells.pos.tolist(), self.cache.cells.seqs.tolist(), strict=True)
        return "".join(symbol(pos, bits) for pos, bits in owners)

    def pos(self, n: int | None = None) -> list[int]:
        return self.cache.cells.pos[:n].tolist()

    def delta(self, n: int | None = None) -> list[int]:
        return self.cache.cells.delta[:n].tolist()


def symbol(pos: int, bits: int) -> str:
    if pos < 0:
        return "."
    if not bits:
        return "?"
    return "M" if bits & (bits - 1) else "abcdefgh"[bits.bit_length() - 1]
