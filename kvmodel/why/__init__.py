"""Why a cell holds what it holds, why a token sees it or not, and why a step failed."""

from kvmodel.advice import largest_fit
from kvmodel.why import effects_recurrent
from kvmodel.why.cell import CellStory, Seen, cell_story
from kvmodel.why.changes import Change, Written
from kvmodel.why.content import Content
from kvmodel.why.failure import FailedSearch, FailureStory, failure_story
from kvmodel.why.sight import mask_story

__all__ = [
    "CellStory",
    "Change",
    "Content",
    "FailedSearch",
    "FailureStory",
    "Seen",
    "Written",
    "cell_story",
    "effects_recurrent",
    "failure_story",
    "largest_fit",
    "mask_story",
]
