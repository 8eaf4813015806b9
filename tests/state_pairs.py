"""Caches and the slow reference around the same state stream."""

import struct

from hypothesis import strategies as st

from kvmodel.errors import CacheAbort
from kvmodel.formats.errors import STATE_KINDS, StateError

owners = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)


def outcome(call) -> tuple[str, int | None]:
    """What a read came to, for comparison: the kind of the refusal and the bytes consumed."""
    try:
        return "read", call()
    except StateError as refusal:
        return (refusal.kind if refusal.kind in STATE_KINDS else "unknown"), refusal.consumed
    except CacheAbort:
        return "crash", None


@st.composite
def damages(draw, data: bytes) -> bytes:
    """The stream as it is, cut, longer, with a bit flipped or with a word of it replaced."""
    out = bytearray(data)
    how = draw(st.sampled_from(["whole", "cut", "longer", "bit", "word", "words"]))
    if how == "cut":
        return bytes(out[: draw(st.integers(0, len(out)))])
    if how == "longer":
        return bytes(out) + draw(st.binary(max_size=9))
    if how == "bit":
        at = draw(st.integers(0, 8 * len(out) - 1))
        out[at // 8] ^= 1 << at % 8
    words = {"word": 1, "words": 3}.get(how, 0)
    for _ in range(words):
        at = 4 * draw(st.integers(0, min(len(out) // 4 - 1, 40)))
        out[at : at + 4] = struct.pack("<i", draw(st.sampled_from([-1, 0, 1, 2, 3, 5, 200, 2**31 - 2])))
    return bytes(out)


sequences = st.integers(0, 2)

uses = st.one_of(st.just((-1, -1)), st.tuples(sequences, sequences), st.tuples(st.integers(-1, 5), st.integers(-1, 5)))
"""The sequence that is written and the one it is restored as, mostly such that the two go together."""
