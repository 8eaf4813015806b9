"""The pair of caches in literal form: every call goes to both references (`llama_kv_cache_unified_iswa`)."""

from dataclasses import dataclass, field

from tests.reference.batch import Token, bad_ids, complete, refusal, split_equal, split_simple
from tests.reference.cache import Decode, Params, RefCache, Update
from tests.reference.slots import Search
from tests.reference.window import Window


@dataclass(frozen=True)
class Layers:
    """Which layers are window layers; both halves have at least one layer."""

    swa: tuple[bool, ...]

    def held(self, swa: bool) -> int:
        return sum(layer == swa for layer in self.swa)


@dataclass
class Tried:
    """One split: how, its ubatches, and per half the searches made for them."""

    how: str
    parts: list[list[int]]
    searches: dict[str, list[Search]] = field(default_factory=dict)


def window_cells(size: int, n_swa: int, n_seq_max: int, n_ubatch: int, n_pad: int) -> int:
    """Every sequence's window and one ubatch, in whole padding units, but never more than the full half has."""
    cells = 0
    while cells < n_swa * n_seq_max + n_ubatch:
        cells += n_pad
    return min(size, cells)


class RefIswa:
    def __init__(self, size: int, swa_size: int, n_pad: int, window: Window, layers: Layers) -> None:
        self.base = RefCache(Params(size, n_pad, Window(), layers.held(swa=False)))
        self.swa = RefCache(Params(swa_size, n_pad, window, layers.held(swa=True)))
        self.halves = {"base": self.base, "swa": self.swa}
        self.tried: list[Tried] = []

    def edit(self, name: str, *args: int) -> None:
        for half in self.halves.values():
            getattr(half, name)(*args)

    def decode(self, tokens: list[Token], n_ubatch: int, *, embd: bool, auto_pos: bool) -> Decode:
        """Checks by the window half's positions, then token order, then equal sets; stores only if all fits."""
        cells, self.tried = self.swa.cells, []
        refused = bad_ids(tokens)
        if refused is None:
            tokens = complete(tokens, cells.pos_max) if auto_pos else tokens
            refused = refusal(tokens, embd, cells.pos_min, cells.pos_max)
        if refused is not None:
            return Decode("refused", refused)
        for how in ("simple", "equal"):
            parts = parts_of(tokens, n_ubatch, how)
            ubatches = [[tokens[i] for i in part] for part in parts]
            heads = self.prepare(how, parts, ubatches)
            if heads is None:
                continue
            for k, ubatch in enumerate(ubatches):
                for name, half in self.halves.items():
                    half.apply_ubatch(heads[name][k], ubatch)
            return Decode("success", None, parts, list(zip(*heads.values(), strict=True)))
        return Decode("failed_prepare")

    def prepare(self, how: str, parts: list[list[int]], ubatches: list[list[Token]]) -> dict[str, list[int]] | None:
        """Slots in both halves; the window half is not asked when the full one has none."""
        tried = Tried(how, parts)
        self.tried.append(tried)
        heads = {}
        for name, half in self.halves.items():
            found = half.prepare(ubatches)
            tried.searches[name] = half.searches
            if found is None:
                return None
            heads[name] = found
        return heads

    def update(self, *, optimize: bool, thold: float, n_max_nodes: int) -> dict[str, Update]:
        return {
            name: half.update(optimize=optimize, thold=thold, n_max_nodes=n_max_nodes)
            for name, half in self.halves.items()
        }


def parts_of(tokens: list[Token], n_ubatch: int, how: str) -> list[list[int]]:
    if how == "simple":
        return split_simple(tokens, n_ubatch)
    return [[i for row in rows for i in row] for rows in split_equal(tokens, n_ubatch)]
