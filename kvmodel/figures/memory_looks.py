"""How the caches look in pictures of memory: a colour for each cache, a pattern for each of its halves, and words."""

from dataclasses import dataclass
from typing import Any

from kvmodel.figures.entries import Entry, swatch
from kvmodel.figures.palette import Theme, ink_on, seq_colour, seq_tone
from kvmodel.memory import MemoryPlan, PartMemory

WORDS = {"kv": "", "base": "base", "swa": "window (swa)", "recurrent": "recurrent"}
"""What to call the caches; the only one needs no name."""

COLOURS = {"kv": 0, "base": 0, "swa": 1, "recurrent": 3}
"""Places in the palette of sequences; base is the cache that there is without windows too."""

PATTERN = {
    ("kv", "k"): "",
    ("kv", "v"): "/",
    ("base", "k"): "",
    ("base", "v"): "/",
    ("swa", "k"): ".",
    ("swa", "v"): "\\",
    ("recurrent", "k"): "-",
    ("recurrent", "v"): "+",
}


@dataclass(frozen=True)
class Look:
    """K or V of one cache, as it is named and drawn; in a recurrent cache R and S.

    Attributes:
        part: name of the cache.
        half: k or v.
    """

    part: str
    half: str

    @property
    def letter(self) -> str:
        """K, V, R or S."""
        return {"k": "R", "v": "S"}[self.half] if self.part == "recurrent" else self.half.upper()

    @property
    def name(self) -> str:
        """For a legend and for hover texts."""
        return f"{self.letter}, {WORDS[self.part]}" if WORDS[self.part] else self.letter

    @property
    def colour(self) -> str:
        """Fill."""
        return seq_colour(COLOURS[self.part])

    @property
    def marker(self) -> dict[str, Any]:
        """Settings of a bar's marker."""
        return filled(COLOURS[self.part], PATTERN[self.part, self.half])

    @property
    def ink(self) -> str:
        """Text on the fill."""
        return ink_on(self.colour)

    def entry(self, page: Theme) -> Entry:
        """Its place in a legend."""
        return swatch(self.name, self.colour, page, pattern=PATTERN[self.part, self.half])

    def of(self, part: PartMemory) -> int:
        """Bytes of this half."""
        return part.k_bytes if self.half == "k" else part.v_bytes

    def type_of(self, part: PartMemory) -> str:
        """Element type of this half."""
        return part.type_k if self.half == "k" else part.type_v


def filled(place: int, shape: str = "") -> dict[str, Any]:
    """A bar's marker: the colour at that place of the palette, and a pattern in a tone that the same ink reads on."""
    return patterned(seq_colour(place), seq_tone(place), shape)


def patterned(ground: str, tone: str, shape: str) -> dict[str, Any]:
    """A bar's marker with a pattern of one colour on another."""
    pattern = {"shape": shape, "fgcolor": tone, "bgcolor": ground, "size": 6, "solidity": 0.3}
    return {"color": ground, "line": {"width": 0}, "pattern": pattern}


def looks(*plans: MemoryPlan) -> list[Look]:
    """K and V of every cache that one of the plans has, halves without bytes left out."""
    found: dict[Look, int] = {}
    for part in (part for plan in plans for part in plan.parts):
        for half in ("k", "v"):
            look = Look(part.name, half)
            found[look] = found.get(look, 0) + look.of(part)
    return [look for look, size in found.items() if size]
