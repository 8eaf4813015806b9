"""Colours: contrast by the formula of WCAG 2, and distance under simulated colour blindness."""

import tomllib
from itertools import combinations, pairwise

import numpy as np
import pytest

from kvmodel.figures import palette
from kvmodel.figures.palette import DARK, LIGHT, SEQUENCES, Theme
from kvmodel.mask import MaskReason
from tests.sources import ROOT

THEMES = pytest.mark.parametrize("page", [LIGHT, DARK], ids=["light", "dark"])

# Machado, Oliveira and Fernandes 2009, severity 1, for linear RGB.
VISION = {
    "full": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(colour: str) -> list[float]:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def contrast(one: str, other: str) -> float:
    """WCAG 2, success criterion 1.4.3."""
    high, low = sorted((0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in map(linear, (one, other))), reverse=True)
    return (high + 0.05) / (low + 0.05)


def lab(colour: str, vision: str) -> np.ndarray:
    """CIE L*a*b* of a colour as seen."""
    seen = np.clip(np.array(VISION[vision]) @ linear(colour), 0, 1)
    x = XYZ @ seen / [0.95047, 1, 1.08883]
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def nearest(colours: list[str], vision: str) -> float:
    """The smallest distance of any two of the colours."""
    return min(float(np.linalg.norm(lab(one, vision) - lab(other, vision))) for one, other in combinations(colours, 2))


def test_the_formula_knows_black_on_white() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)


@pytest.mark.parametrize("seq", range(64))
def test_text_reads_on_every_sequence_and_on_its_pattern(seq: int) -> None:
    ink = palette.seq_ink(seq)
    assert contrast(ink, palette.seq_colour(seq)) >= 4.5
    assert contrast(ink, palette.seq_tone(seq)) >= 4.5


@THEMES
def test_text_reads_on_the_page_and_on_plain_cells(page: Theme) -> None:
    for ink in (page.ink, page.muted, page.accent):
        assert contrast(ink, page.paper) >= 4.5
    for fill in (page.filled, page.several, page.freed, page.accent, *palette.position_scale()):
        assert contrast(palette.ink_on(fill), fill) >= 4.5


@THEMES
def test_text_reads_on_every_shade_of_a_shift(page: Theme) -> None:
    assert min(contrast(palette.ink_on(fill), fill) for fill in palette.shift_scale(page.name)) >= 4.5


@THEMES
def test_lines_around_cells_stand_out_from_what_is_beside_them(page: Theme) -> None:
    """WCAG 2, criterion 1.4.11: 3:1 for graphics; outlines and marks lie between page and empty cells."""
    for line in (page.ink, page.accent):
        assert min(contrast(line, page.paper), contrast(line, page.empty)) >= 3


@pytest.mark.parametrize("vision", VISION)
def test_sequences_are_told_apart(vision: str) -> None:
    assert nearest(list(SEQUENCES), vision) >= 14


@pytest.mark.parametrize("vision", VISION)
@THEMES
def test_sequences_are_no_empty_cells(page: Theme, vision: str) -> None:
    assert min(nearest([page.empty, colour], vision) for colour in SEQUENCES) >= 14


@pytest.mark.parametrize("vision", VISION)
@THEMES
def test_reasons_are_told_apart(page: Theme, vision: str) -> None:
    assert len(page.reasons) == len(MaskReason)
    assert nearest(list(page.reasons), vision) >= 14


def test_sixty_four_sequences_look_different() -> None:
    looks = {(palette.seq_colour(seq), palette.seq_symbol(seq)) for seq in range(64)}
    assert len(looks) == 64
    assert {palette.seq_symbol(seq) for seq in range(8)} == {""}


def test_the_order_is_fixed() -> None:
    assert [palette.seq_colour(seq) for seq in (0, 1, 2, 8)] == ["#56B4E9", "#E69F00", "#009E73", "#56B4E9"]


@pytest.mark.parametrize("name", ["light", "dark"])
def test_a_shift_scale_is_symmetric_around_the_plain_fill(name: palette.ThemeName) -> None:
    scale, page = palette.shift_scale(name), palette.theme(name)
    assert len(scale) == 255
    assert (scale[0], scale[127], scale[254]) == (page.falling, page.filled, page.rising)


def test_positions_get_lighter() -> None:
    lights = [lab(colour, "full")[0] for colour in palette.position_scale()]
    assert len(lights) == 255
    assert all(b > a - 0.5 for a, b in pairwise(lights))
    assert lights[-1] - lights[0] > 50


@THEMES
def test_the_page_is_the_one_of_the_app(page: Theme) -> None:
    config = tomllib.loads((ROOT / ".streamlit/config.toml").read_text(encoding="utf-8"))["theme"][page.name]
    assert config["backgroundColor"] == page.paper


def test_pages_differ() -> None:
    assert LIGHT.paper != DARK.paper
    assert contrast(LIGHT.paper, DARK.paper) > 10


def test_a_mix_lies_between() -> None:
    assert palette.mix("#000000", "#ffffff", 0.5) in {"#7f7f7f", "#808080"}
    assert palette.mix("#102030", "#ffffff", 0) == "#102030"
