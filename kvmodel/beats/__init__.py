"""An operation as a sequence of beats: one thing to see each, with its sentence, its marks and the cells then."""

from kvmodel.beats.beat import Beat, Beats, beats
from kvmodel.beats.marks import Marks
from kvmodel.beats.state import parts_at

__all__ = ["Beat", "Beats", "Marks", "beats", "parts_at"]
