"""The splits of the older generation, token by token (`llama_sbatch` in llama-batch.cpp, January 2025)."""

from dataclasses import dataclass
from functools import cmp_to_key

from tests.reference.batch import Token


@dataclass
class Group:
    """Tokens with one list of ids: a stretch of the sorted order that is taken from its front."""

    seqs: tuple[int, ...]
    offset: int
    length: int


@dataclass
class Part:
    """A ubatch: tokens of the batch in order, and tokens a set."""

    idx: list[int]
    n_seqs: int


def before(tokens: list[Token], a: int, b: int) -> int:
    """Below 0 if token `a` sorts before `b`: more ids, smaller ids, smaller position."""
    one, other = tokens[a], tokens[b]
    if len(one.seqs) != len(other.seqs):
        return len(other.seqs) - len(one.seqs)
    for left, right in zip(one.seqs, other.seqs, strict=True):
        if left != right:
            return left - right
    return one.pos - other.pos


def groups_of(tokens: list[Token]) -> tuple[list[int], list[Group]]:
    ids = sorted(range(len(tokens)), key=cmp_to_key(lambda a, b: before(tokens, a, b)))
    groups: list[Group] = []
    for at, i in enumerate(ids):
        if groups and groups[-1].seqs == tokens[i].seqs:
            groups[-1].length += 1
        else:
            groups.append(Group(tokens[i].seqs, at, 1))
    groups.sort(key=lambda group: (len(group.seqs), -group.length))
    return ids, groups


def take(ids: list[int], group: Group, length: int) -> list[int]:
    taken = ids[group.offset : group.offset + length]
    group.offset += length
    group.length -= length
    return taken


def older_split_equal(tokens: list[Token], n_ubatch: int) -> list[Part]:
    ids, groups = groups_of(tokens)
    left = len(tokens)
    parts = []
    while left > 0:
        most = min(left, n_ubatch)
        while groups and groups[-1].length == 0:
            groups.pop()
        part, length = Part([], 0), 0
        for group in reversed(groups):
            assert group.length > 0
            if length == 0:
                length = min(group.length, most)
            part.idx += take(ids, group, length)
            part.n_seqs += 1
            left -= length
            if len(group.seqs) > 1 or length + len(part.idx) > most:
                break
        parts.append(part)
    return parts


def older_split_seq(tokens: list[Token], n_ubatch: int) -> list[Part]:
    ids, groups = groups_of(tokens)
    left = len(tokens)
    parts = []
    while left > 0:
        while groups and groups[-1].length == 0:
            groups.pop()
        length = min(groups[-1].length, left, n_ubatch)
        parts.append(Part(take(ids, groups[-1], length), 1))
        left -= length
    return parts
