"""A batch token by token: completion, checks and splits (`llama_batch_allocr`)."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.reference.cells import MAX_SEQ


@dataclass(frozen=True)
class Token:
    """Position (None: not given), sequence ids in order, and a serial number."""

    pos: int | None
    seqs: tuple[int, ...]
    serial: int = -1


@dataclass(frozen=True)
class Refusal:
    """Why a batch is refused: the kind, the sequence spoken of, X (newest stored) and Y (first new)."""

    kind: str
    seq: int = -1
    stored: int | None = None
    start: int | None = None


PosOf = Callable[[int], int]


def complete(tokens: list[Token], pos_max: PosOf) -> list[Token]:
    """Give every token without a position the next one of its first sequence."""
    next_pos = [pos_max(seq) + 1 for seq in range(MAX_SEQ)]
    done = []
    for token in tokens:
        placed = replace(token, pos=next_pos[token.seqs[0]])
        for seq in token.seqs:
            next_pos[seq] = placed.pos + 1
        done.append(placed)
    return done


def bad_ids(tokens: list[Token]) -> Refusal | None:
    if not tokens:
        return Refusal("empty")
    for token in tokens:
        for seq in token.seqs:
            if not 0 <= seq < MAX_SEQ:
                return Refusal("bad_seq_id", seq)
    if any(not token.seqs for token in tokens):
        return Refusal("bad_seq_id")
    return None


def refusal(tokens: list[Token], embd: bool, pos_min: PosOf, pos_max: PosOf) -> Refusal | None:
    """The first rule that a completed batch breaks."""
    new_pos: list[set[int]] = [set() for _ in range(MAX_SEQ)]
    for token in tokens:
        for seq in token.seqs:
            new_pos[seq].add(token.pos)
    for seq in range(MAX_SEQ):
        if not new_pos[seq]:
            continue
        stored, start, end = pos_max(seq), min(new_pos[seq]), max(new_pos[seq])
        follows = start == stored + 1 or (embd and start == stored)
        if stored >= 0 and not follows:
            return Refusal("not_consecutive", seq, stored, start)
        if end - start + 1 > len(new_pos[seq]):
            return Refusal("gap", seq, None, start)
    return _diverged(tokens, pos_min, pos_max)


def _diverged(tokens: list[Token], pos_min: PosOf, pos_max: PosOf) -> Refusal | None:
    coupled = {(seq, token.seqs[0]) for token in tokens for seq in token.seqs[1:]}
    for s0 in range(MAX_SEQ):
        for s1 in range(MAX_SEQ):
            if (s0, s1) in coupled and (pos_min(s0) != pos_min(s1) or pos_max(s0) != pos_max(s1)):
                return Refusal("coupled_diverged", s0)
    return None


def split_simple(tokens: list[Token], n_ubatch: int) -> list[list[int]]:
    """Indices of the tokens of every ubatch, in token order."""
    parts: list[list[int]] = []
    for i in range(len(tokens)):
        if not parts or len(parts[-1]) >= n_ubatch:
            parts.append([])
        parts[-1].append(i)
    return parts


def split_equal(tokens: list[Token], n_ubatch: int) -> list[list[list[int]]]:
    """For every ubatch the indices of each sequence set, equally many."""
    sets = [frozenset(token.seqs) for token in tokens]
    taken: set[int] = set()
    ubatches = []
    while len(taken) < len(tokens):
        chosen = _disjoint_sets(sets, taken, n_ubatch)
        waiting = [[i for i in range(len(tokens)) if i not in taken and sets[i] == one] for one in chosen]
        rows: list[list[int]] = [[] for _ in chosen]
        while all(len(row) < len(queue) for row, queue in zip(rows, waiting, strict=True)):
            for row, queue in zip(rows, waiting, strict=True):
                row.append(queue[len(row)])
            if (len(rows[0]) + 1) * len(rows) > n_ubatch:
                break
        taken.update(i for row in rows for i in row)
        ubatches.append(rows)
    return ubatches


def _disjoint_sets(sets: list[frozenset[int]], taken: set[int], n_ubatch: int) -> list[frozenset[int]]:
    chosen: list[frozenset[int]] = []
    for i, one in enumerate(sets):
        if i in taken or any(one & other for other in chosen):
            continue
        chosen.append(one)
        if len(chosen) > n_ubatch:
            break
    return chosen


def split_seq(tokens: list[Token], n_ubatch: int) -> list[list[int]]:
    """Indices of every ubatch: each token's set lies within that of the token before it."""
    sets = [frozenset(token.seqs) for token in tokens]
    taken: set[int] = set()
    ubatches = []
    while len(taken) < len(tokens):
        part: list[int] = []
        for i in range(len(tokens)):
            if i in taken or len(part) >= n_ubatch:
                continue
            if not part or sets[i] <= sets[part[-1]]:
                part.append(i)
        taken.update(part)
        ubatches.append(part)
    return ubatches
