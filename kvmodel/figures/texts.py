"""Short texts of the figures and tables: owners, tokens, reasons."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from kvmodel.limits import MAX_SEQ
from kvmodel.mask import MaskReason
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Token
from kvmodel.types import SWAType
from kvmodel.words import ranges

MIB = 2**20

Strings = NDArray[np.str_]


def owners_of(bits: int) -> tuple[int, ...]:
    """The sequences of one bit set, ascending."""
    return tuple(seq for seq in range(MAX_SEQ) if bits >> seq & 1)


def owner_texts(seqs: NDArray[np.uint64]) -> Strings:
    """The owners of every cell as text, str [n]; empty without owners."""
    sets, which = np.unique(seqs, return_inverse=True)
    told = [ranges(owners_of(int(bits)), most=MAX_SEQ) if bits else "" for bits in sets]
    return np.array(told, np.str_)[which]


def token_texts(token: NDArray[np.int32], tokens: Sequence[Token]) -> Strings:
    """The token text of every cell, str [n]; empty where none is known."""
    if not tokens:
        return np.full(len(token), "", np.str_)
    serials, which = np.unique(token, return_inverse=True)
    known = [tokens[serial].text if 0 <= serial < len(tokens) else "" for serial in serials.tolist()]
    return np.array(known, np.str_)[which]


def source_texts(part: PartSnapshot) -> Strings:
    """Where the state of every cell comes from next, str [n]; empty for its own cell, and without a state."""
    own = np.arange(part.n_cells)
    named = np.strings.add("from cell ", part.src.astype(np.str_))
    told = np.where(part.src < 0, "from zero", np.where(part.src == own, "", named))
    return np.where(part.seqs != 0, told, "")


def tail_texts(part: PartSnapshot) -> Strings:
    """Where every sequence below the number of cells keeps its state, in words, str [n]."""
    seqs = np.arange(min(part.n_cells, MAX_SEQ))
    tail = part.tail[: len(seqs)]
    bits = np.uint64(1) << seqs.astype(np.uint64)
    owned = (part.seqs[np.maximum(tail, 0)] & bits) != 0
    where = np.strings.add("its state is in cell ", tail.astype(np.str_))
    lost = np.strings.add(np.strings.add("its tail points at cell ", tail.astype(np.str_)), ", which it does not own")
    told = np.where(tail < 0, "no state", np.where(owned, where, lost))
    return np.strings.add(np.strings.add(np.strings.add("sequence ", seqs.astype(np.str_)), ": "), told)


def safe(text: str) -> str:
    """Text of a person as Plotly shows it, without its tags taking effect."""
    return escape(text, quote=False).replace("\n", "⏎")


def shift_of(part: PartSnapshot) -> tuple[str, NDArray[np.int32]]:
    """The pending position changes and what the cache calls them: shift, or delta in the older cache."""
    for word in ("shift", "delta"):
        if word in part.arrays:
            return word, part.arrays[word]
    return "shift", np.zeros_like(part.pos)


def reason_words(swa_type: SWAType) -> tuple[str, ...]:
    """What hides a cell, in words; index: MaskReason."""
    words = {
        MaskReason.VISIBLE: "visible",
        MaskReason.EMPTY: "empty",
        MaskReason.OTHER_SEQ: "other sequence",
        MaskReason.FUTURE: "future",
        MaskReason.OUTSIDE: "outside the chunk" if swa_type is SWAType.CHUNKED else "outside the window",
        MaskReason.PADDING: "padding row",
    }
    return tuple(words[reason] for reason in MaskReason)


def mib(n_bytes: float) -> str:
    """Bytes in MiB with two decimals, as llama.cpp prints them."""
    return f"{n_bytes / MIB:.2f} MiB"
