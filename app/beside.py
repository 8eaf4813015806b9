"""The panel beside the map: what happened, the story of a cell, or the operations."""

from app import controls
from app.moment import Moment
from app.operations import operations
from app.telling import happened, sequences
from app.why import why

PANELS = {"happened": "What happened", "why": "Ask why", "operations": "Operations"}


def beside(moment: Moment) -> None:
    """One of the panels, as was chosen."""
    chosen = controls.panel_choice(PANELS)
    if chosen == "why":
        why(moment)
    elif chosen == "operations":
        operations()
    else:
        happened(moment)
        sequences(moment)
