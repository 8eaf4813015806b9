"""Every colour of the figures, and the inks that read on them.

Sequences take the colours of Okabe and Ito's palette in one fixed order. Two of the eight are adjusted: black would
vanish on a dark page and is a pale green here, and blue is a shade lighter, so that black ink reads on all eight at
4.5:1. Sequence 8 starts over with a pattern; eight patterns make 64 distinct looks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from plotly.colors import sample_colorscale

from kvmodel.mask import MaskReason

ThemeName = Literal["light", "dark"]

SEQUENCES = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#D55E00", "#0A7BC2", "#B5E89B")
"""Sky blue, orange, bluish green, reddish purple, yellow, vermilion, blue, pale green."""

PATTERNS = ("", "-", "|", "/", "\\", "+", "x", ".")
"""Plotly's pattern shapes, one for each round through the colours."""

REASON_PATTERNS = {
    MaskReason.VISIBLE: "",
    MaskReason.EMPTY: "",
    MaskReason.OTHER_SEQ: "/",
    MaskReason.FUTURE: ".",
    MaskReason.OUTSIDE: "-",
    MaskReason.PADDING: "x",
}

BLACK, WHITE = "#000000", "#FFFFFF"
TINT, SHADE = 0.5, 0.3
"""Share of white in the pattern of a dark fill, of black in that of a light one: black ink reads on both."""

SCALE_STEPS = 255
"""Shades of a continuous scale; with the code of an empty cell they fill one byte."""


@dataclass(frozen=True)
class Theme:
    """The colours of one page.

    Attributes:
        paper: background. ink, muted: text, and text that steps back. line: hairlines and axes.
        accent: head, the current step, whatever is spoken of. empty: an empty cell.
        filled: a cell of which only its being in use matters. freed: a cell emptied in this step.
        several: a square that stands for several sequences or reasons.
        falling, rising: the ends of the scale of shifts, whose middle is `filled`.
        reasons: one colour a MaskReason, in its order.
    """

    name: ThemeName
    paper: str
    ink: str
    muted: str
    line: str
    accent: str
    empty: str
    filled: str
    freed: str
    several: str
    falling: str
    rising: str
    reasons: tuple[str, ...]


LIGHT = Theme(
    name="light",
    paper="#ffffff",
    ink="#1c2126",
    muted="#5b646d",
    line="#dfe2dd",
    accent="#0b6e6e",
    empty="#eeefeb",
    filled="#c9cfca",
    freed="#f3c58f",
    several="#7d848b",
    falling="#3d8fd1",
    rising="#e07b39",
    reasons=("#0b6e6e", "#eeefeb", "#a58cc0", "#ebcb8b", "#a9d0f5", "#bfc3bf"),
)

DARK = Theme(
    name="dark",
    paper="#14181c",
    ink="#e9ecee",
    muted="#a3adb6",
    line="#2f363d",
    accent="#4fb3b0",
    empty="#22282e",
    filled="#66717b",
    freed="#b07a3a",
    several="#aeb6bd",
    falling="#56b4e9",
    rising="#f0913f",
    reasons=("#4fb3b0", "#22282e", "#5c4a73", "#86703f", "#3f7cb0", "#4d565e"),
)

THEMES = {"light": LIGHT, "dark": DARK}


def theme(name: ThemeName) -> Theme:
    """The colours of a page by name."""
    return THEMES[name]


def seq_colour(seq: int) -> str:
    """Fill of a sequence; the same in both themes."""
    return SEQUENCES[seq % len(SEQUENCES)]


def seq_tone(seq: int) -> str:
    """Colour of the lines of a sequence's pattern: its fill, lightened or darkened."""
    fill = seq_colour(seq)
    return mix(fill, WHITE, TINT) if luminance(fill) < 0.5 else mix(fill, BLACK, SHADE)


def seq_symbol(seq: int) -> str:
    """Plotly pattern shape of a sequence: empty for the first eight, then one for each round."""
    return PATTERNS[seq // len(SEQUENCES) % len(PATTERNS)]


def seq_ink(seq: int) -> str:
    """Text colour that reads on a sequence's fill."""
    return ink_on(seq_colour(seq))


def position_scale() -> list[str]:
    """Shades of a position, earliest to latest: a part of Cividis, which has no colours to confuse."""
    return [to_hex(rgb) for rgb in sample_colorscale("Cividis", np.linspace(0.25, 1, SCALE_STEPS), colortype="tuple")]


def shift_scale(name: ThemeName) -> list[str]:
    """Shades of a pending shift, most negative to most positive; the middle one is no shift."""
    page, half = theme(name), SCALE_STEPS // 2
    down = [mix(page.filled, page.falling, share) for share in np.linspace(1, 0, half, endpoint=False)]
    up = [mix(page.filled, page.rising, share) for share in np.linspace(0, 1, half + 1)]
    return down + up


def rgb_of(colour: str) -> NDArray[np.float64]:
    """Red, green and blue of `#rrggbb`, each 0 to 1."""
    return np.array(list(bytes.fromhex(colour.removeprefix("#")))) / 255


def to_hex(rgb: Sequence[float] | NDArray[np.float64]) -> str:
    """`#rrggbb` of red, green and blue, each 0 to 1."""
    return "#" + bytes(round(255 * float(part)) for part in rgb).hex()


def mix(one: str, other: str, share: float) -> str:
    """A colour between two; `share` of the other, 0 to 1."""
    return to_hex((1 - share) * rgb_of(one) + share * rgb_of(other))


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it, 0 to 1."""
    parts = rgb_of(colour)
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def ink_on(fill: str) -> str:
    """Black or white, whichever reads better; one of the two always reaches 4.5:1."""
    light = luminance(fill) + 0.05
    return BLACK if light / 0.05 >= 1.05 / light else WHITE
