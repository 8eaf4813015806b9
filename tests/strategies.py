"""What Hypothesis draws for the unified cache: small caches, odd positions, valid and invalid batches."""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from kvmodel.types import CacheParams
from tests.reference import INT32_MAX, INT32_MIN, Params, RefCache, Token, Window

MACHINE = settings(
    max_examples=150,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""One fixed set of runs: the same commit draws the same examples everywhere."""

SEQ_POOLS = ([0], [0, 1], [0, 1, 2], [3, 17, 63], [0, 1, 2, 3, 62, 63])
BAD_SEQS = (-1, 64, -7, INT32_MAX, INT32_MIN)

small_pos = st.integers(0, 70)
range_ends = st.one_of(st.integers(-3, 70), st.sampled_from([-1, INT32_MIN, INT32_MAX - 1, INT32_MAX]))
shifts = st.one_of(
    st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([INT32_MIN, INT32_MIN + 1, INT32_MAX - 80, INT32_MAX])
)
divisors = st.sampled_from([1, 2, 2, 2, 3, 3, 7, INT32_MAX])
node_budgets = st.one_of(st.integers(0, 40), st.sampled_from([65_536, 2**31 - 1]))
often = st.sampled_from([True, True, True, False])
tholds = st.sampled_from([-1.0, 0.0, 1e-3, 0.1, 0.5])


@dataclass(frozen=True)
class Setup:
    """One cache in the words of both sides."""

    size: int
    n_pad: int
    swa: str
    n_swa: int
    seqs: list[int] = field(default_factory=lambda: [0])
    n_layer: int = 1

    @property
    def model(self) -> CacheParams:
        return CacheParams(
            self.size, n_seq_max=64, n_pad=self.n_pad, swa_type=self.swa, n_swa=self.n_swa, n_layer=self.n_layer
        )

    @property
    def reference(self) -> Params:
        return Params(self.size, self.n_pad, Window(self.swa, self.n_swa), self.n_layer)


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    n_pad = draw(st.sampled_from([1, 1, 4, 4, 8, 8, 3]))
    swa = draw(st.sampled_from(["none", "standard", "chunked"]))
    n_swa = 0 if swa == "none" else draw(st.integers(1, 12))
    size = n_pad * draw(st.integers(1, 48 // n_pad))
    return Setup(size, n_pad, swa, n_swa, draw(st.sampled_from(SEQ_POOLS)), draw(st.integers(1, 3)))


@st.composite
def edits(draw: st.DrawFn, cache: RefCache, pool: list[int]) -> tuple[int, int, int]:
    """Sequence, first position and end: mostly a few cells that exist, else anything, reversed ends included."""
    filled = [i for i in range(cache.cells.n) if cache.cells.seqs[i]]
    if not filled or not draw(often):
        return draw(st.sampled_from(pool)), draw(range_ends), draw(range_ends)
    cell = draw(st.sampled_from(filled))
    p0 = cache.cells.pos[cell]
    return draw(st.sampled_from(sorted(cache.cells.seqs[cell]))), p0, p0 + draw(st.integers(1, 6))


def owner_lists(pool: list[int], *, may_be_empty: bool = False) -> st.SearchStrategy[tuple[int, ...]]:
    """Ids of one token in any order, one of them twice at times."""
    lists = st.lists(st.sampled_from(pool), min_size=0 if may_be_empty else 1, max_size=3)
    return lists.map(tuple)


@st.composite
def any_tokens(draw: st.DrawFn, pool: list[int], *, max_runs: int = 4, may_be_empty: bool = False) -> list[Token]:
    """Runs of counting positions with owners of one's choice: nothing in them need fit the cache."""
    tokens: list[Token] = []
    for _ in range(draw(st.integers(1, max_runs))):
        first, n = draw(small_pos), draw(st.integers(1, 6))
        seqs = draw(owner_lists(pool, may_be_empty=may_be_empty))
        tokens += [Token(first + k, seqs) for k in range(n)]
    return tokens


@st.composite
def next_tokens(draw: st.DrawFn, cache: RefCache, pool: list[int]) -> list[Token]:
    """A batch that the checks accept: groups of sequences with equal spans go on after their newest position."""
    spans: dict[tuple[int, int], list[int]] = {}
    for seq in draw(st.lists(st.sampled_from(pool), min_size=1, unique=True)):
        spans.setdefault((cache.cells.pos_min(seq), cache.cells.pos_max(seq)), []).append(seq)
    queues = []
    for (_, newest), seqs in spans.items():
        for group in [seqs] if draw(st.booleans()) else [[seq] for seq in seqs]:
            n = draw(st.integers(1, 10))
            queues.append([Token(newest + 1 + k, tuple(group)) for k in range(n)])
    if draw(st.booleans()):
        return [token for queue in queues for token in queue]
    longest = max(len(queue) for queue in queues)
    return [queue[k] for k in range(longest) for queue in queues if k < len(queue)]


@st.composite
def spoiled_tokens(draw: st.DrawFn, cache: RefCache, pool: list[int]) -> list[Token]:
    """A valid batch with one token's position or owners replaced, or a token left out."""
    tokens = draw(next_tokens(cache, pool))
    at = draw(st.integers(0, len(tokens) - 1))
    token = tokens[at]
    how = draw(st.sampled_from(["owner", "pos", "left out", "joined"]))
    if how == "left out":
        return tokens[:at] + tokens[at + 1 :]
    changed = {
        "owner": Token(token.pos, (*token.seqs, draw(st.sampled_from(BAD_SEQS)))),
        "pos": Token(draw(small_pos), token.seqs),
        "joined": Token(token.pos, (*token.seqs, draw(st.sampled_from(pool)))),
    }[how]
    return [*tokens[:at], changed, *tokens[at + 1 :]]
