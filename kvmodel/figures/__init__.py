"""Pictures of a cache: pure functions from snapshots and timelines to Plotly figures, and their table twins."""

from kvmodel.figures.cells import cells_figure
from kvmodel.figures.defrag import defrag_figure, defrag_table
from kvmodel.figures.kshift import kshift_heatmap, kshift_table
from kvmodel.figures.kshift_arrows import kshift_arrows
from kvmodel.figures.mask import mask_figure
from kvmodel.figures.memory import memory_figure, plans_figure
from kvmodel.figures.memory_choices import savings_figure
from kvmodel.figures.memory_growth import growth_figure
from kvmodel.figures.memory_tables import checks_table, growth_table, memory_table, plans_table, savings_table
from kvmodel.figures.overview import overview_figure
from kvmodel.figures.shift import shift_figure
from kvmodel.figures.shift_runs import shift_table
from kvmodel.figures.states import states_figure
from kvmodel.figures.tables import (
    cells_table,
    comparison_table,
    events_table,
    mask_table,
    sequences_table,
    states_table,
    usage_table,
)
from kvmodel.figures.usage import usage_figure

__all__ = [
    "cells_figure",
    "cells_table",
    "checks_table",
    "comparison_table",
    "defrag_figure",
    "defrag_table",
    "events_table",
    "growth_figure",
    "growth_table",
    "kshift_arrows",
    "kshift_heatmap",
    "kshift_table",
    "mask_figure",
    "mask_table",
    "memory_figure",
    "memory_table",
    "overview_figure",
    "plans_figure",
    "plans_table",
    "savings_figure",
    "savings_table",
    "sequences_table",
    "shift_figure",
    "shift_table",
    "states_figure",
    "states_table",
    "usage_figure",
    "usage_table",
]
