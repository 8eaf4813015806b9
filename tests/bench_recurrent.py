"""A recurrent cache on the bench: its context, its cells as rows, and everything it told."""

from typing import Any

import numpy as np

from kvmodel.batch import Batch, UBatch
from kvmodel.caches.recurrent import RecurrentCache
from kvmodel.caches.recurrent_params import RecurrentParams
from kvmodel.context import ContextParams
from kvmodel.context_legacy import LegacyContext
from kvmodel.events import Event, QuirkSeen


class Bench:
    """A cache, its context, and everything it told."""

    def __init__(self, size: int, n_ubatch: int = 8) -> None:
        self.seen: list[Event] = []
        self.cache = RecurrentCache(RecurrentParams(size, n_seq_max=min(size, 64)), self.seen.append)
        self.context = LegacyContext(self.cache, ContextParams(n_ubatch=n_ubatch), self.seen.append)

    def decode(self, *runs: tuple[int, int, tuple[int, ...]], **more: Any) -> int:
        return self.context.decode(Batch.from_runs(runs), **more).ret

    @property
    def rows(self) -> list[tuple[int, int, int, int, tuple[int, ...]]]:
        """Position, delta, source, tail and owners of every cell."""
        cells = self.cache.cells
        columns = zip(*(cells.arrays[name].tolist() for name in ("pos", "delta", "src", "tail")), strict=True)
        return [(*row, cells.owners(i)) for i, row in enumerate(columns)]

    def told(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.seen if isinstance(event, kind)]

    @property
    def quirks(self) -> list[str]:
        return [event.quirk for event in self.told(QuirkSeen)]


def equal(seqs: list[tuple[int, ...]], pos: list[int]) -> UBatch:
    per = len(pos) // len(seqs)
    batch = Batch.from_runs([(p, 1, seqs[k // per]) for k, p in enumerate(pos)])
    return UBatch.of(batch, np.arange(len(pos), dtype=np.int32), len(seqs), True)
