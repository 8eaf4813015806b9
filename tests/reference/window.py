"""Which positions a window hides (`llama_kv_cache_unified::is_masked_swa`)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """`kind` is none, standard or chunked; `n` its length in positions."""

    kind: str = "none"
    n: int = 0

    def hides(self, p0: int, p1: int) -> bool:
        """Whether a query at p1 is kept from the position p0."""
        if self.kind == "standard":
            return p1 - p0 >= self.n
        if self.kind == "chunked":
            chunk_start = p1 // self.n * self.n
            return p0 < chunk_start
        return False
