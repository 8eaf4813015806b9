"""The memory of a model's caches, to the byte: planned, asked about and printed as llama.cpp prints it."""

from kvmodel.memory.context import ContextSizes, context_sizes
from kvmodel.memory.lines import log_lines
from kvmodel.memory.names import model_name
from kvmodel.memory.parts import LayerMemory, PartMemory
from kvmodel.memory.plan import MemoryPlan, plan
from kvmodel.memory.questions import Fit, Growth, Saving, growth, largest_n_ctx, savings
from kvmodel.memory.refusals import Refusal, refusals, shift_refusal
from kvmodel.memory.report import beyond_training, fit_report, report
from kvmodel.memory.settings import KeptMLA, Rules, Settings
from kvmodel.memory.state_size import sequence_file_bytes, state_bytes
from kvmodel.memory.units import buffer_mib, bytes_words, mib, mib_words, parse_bytes

__all__ = [
    "ContextSizes",
    "Fit",
    "Growth",
    "KeptMLA",
    "LayerMemory",
    "MemoryPlan",
    "PartMemory",
    "Refusal",
    "Rules",
    "Saving",
    "Settings",
    "beyond_training",
    "buffer_mib",
    "bytes_words",
    "context_sizes",
    "fit_report",
    "growth",
    "largest_n_ctx",
    "log_lines",
    "mib",
    "mib_words",
    "model_name",
    "parse_bytes",
    "plan",
    "refusals",
    "report",
    "savings",
    "sequence_file_bytes",
    "shift_refusal",
    "state_bytes",
]
