"""A unified cache under watch: its events are kept, and must tell all that happened."""

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.unified import UnifiedCache
from kvmodel.events import Event
from kvmodel.types import CacheParams
from tests.ledger import Ledger


class Watched(UnifiedCache):
    """A cache that keeps its events, each checked on arrival against a state that only events change."""

    def __init__(self, n: int, **params) -> None:
        self.events: list[Event] = []
        super().__init__(CacheParams(n, **{"n_pad": 1, "n_seq_max": 4, **params}), self._keep)
        self.ledger = Ledger(self)

    def _keep(self, event: Event) -> None:
        self.events.append(event)
        self.ledger.take(event)

    def place(self, *runs) -> None:
        """Store runs (first position, tokens, sequences) as one ubatch."""
        ubatch = UBatch.plain(Batch.from_runs(runs))
        heads = self.prepare([ubatch])
        assert heads is not None
        self.apply_ubatch(heads[0], ubatch)
        self.told()

    def told(self) -> list[Event]:
        """The events since the last call, after a look whether they tell all that happened."""
        self.ledger.check(self)
        assert self.cells.check_integrity() == []
        events, self.events = self.events, []
        return events

    def row(self) -> str:
        """Owners of the cells: `.` for none, a letter for one, `M` for several."""
        letters = {0: ".", 1: "a", 2: "b", 4: "c", 8: "d"}
        return "".join(letters.get(owners, "M") for owners in self.cells.seqs.tolist())


def shared_prefix() -> Watched:
    """Sequences a and b share positions 0 and 1 in cells 0 and 1 and go on by themselves to 3."""
    cache = Watched(10)
    cache.place((0, 2, (0, 1)), (2, 2, (0,)), (2, 2, (1,)))
    cache.told()
    return cache
