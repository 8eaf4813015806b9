"""Sizes as llama.cpp prints them and as people write them."""

import re

import numpy as np

from kvmodel.errors import ParamError
from kvmodel.words import count

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

UNITS = {
    "": 1,
    "B": 1,
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
    "TIB": 1 << 40,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "K": 1 << 10,
    "M": 1 << 20,
    "G": 1 << 30,
    "T": 1 << 40,
}
"""Binary units with an i or a single letter, as llama.cpp prints them; decimal ones without."""

SIZE = re.compile(r"(\d{1,16}(?:\.\d{1,6})?) *([A-Za-z]{0,3})", re.ASCII)


def mib(size: int) -> str:
    """Bytes as the size lines print them: MiB with two decimals, divided in single precision."""
    return f"{float(np.float32(size) / np.float32(MIB)):.2f}"


def buffer_mib(size: int) -> str:
    """Bytes as the buffer lines print them: the same, divided in double precision."""
    return f"{size / MIB:.2f}"


def parse_bytes(text: str, field: str = "budget") -> int:
    """Bytes of a size such as 8GiB, 7.5 GB or 500000000, rounded down.

    Raises:
        ParamError: no number, or a unit that is not known.
    """
    found = SIZE.fullmatch(text.strip())
    unit = UNITS.get(found[2].upper()) if found else None
    if found is None or unit is None:
        raise ParamError(field, text[:40], "a number with B, KiB, MiB, GiB, TiB, KB, MB, GB or TB, for instance 8GiB")
    return int(float(found[1]) * unit) if "." in found[1] else int(found[1]) * unit


def bytes_words(size: int) -> str:
    """A size for a sentence: GiB with two decimals from one GiB on, else what `mib_words` makes of it."""
    return f"{size / GIB:,.2f} GiB" if size >= GIB else mib_words(size)


def mib_words(size: int) -> str:
    """A size for a label, to be held against others: MiB with two decimals, smaller units where those say too little.

    Below a tenth of a MiB these are KiB, and below one KiB bytes.
    """
    if abs(size) >= MIB / 10:
        return f"{size / MIB:,.2f} MiB"
    return f"{size / KIB:,.2f} KiB" if abs(size) >= KIB else count(size, "byte")
