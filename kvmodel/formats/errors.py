"""Why a file or a stream is refused: where, which field, what it should be and what it is."""

from typing import Any

from kvmodel.errors import KVModelError

STATE_KINDS = (
    "eof",
    "not_single_seq",
    "no_slot",
    "too_many_cells",
    "bad_seq_id",
    "layer_count",
    "too_many_cells_data",
    "v_trans",
    "key_type",
    "key_row_size",
    "value_type",
    "value_row_size",
    "value_el_size",
    "value_gqa",
    "duplicate_tail",
    "bad_pos",
)
"""Every reason to refuse a state stream, in the order in which they can be met.

The last but one exists for recurrent caches only. The last one is this model's own: llama.cpp takes a negative position
over into a transformer cache, where the cell then counts as used and as empty at once.
"""


FILE_KINDS = (
    "eof",
    "magic",
    "version",
    "arch",
    "output_id",
    "too_many_cells",
    "bad_seq_id",
    "owner_order",
    "v_trans",
    "layer_count",
    "key_type",
    "key_row_size",
    "value_type",
    "value_row_size",
    "value_el_size",
    "value_gqa",
    "trailing",
    "no_cells",
    "not_finite",
)
"""Every reason to refuse a session or sequence file as such; the last two are found by its `check` alone."""


class FormatError(KVModelError, ValueError):
    """Bytes that are not what their format or their reader asks for.

    Attributes:
        kind: short name of the reason.
        offset: where the field begins, in bytes.
        field: what is refused.
        expected: what it should have been, in words.
        found: what it is.
    """

    def __init__(self, kind: str, offset: int, field: str, expected: Any, found: Any) -> None:
        self.kind, self.offset, self.field, self.expected, self.found = kind, offset, field, expected, found
        super().__init__(f"{field} at byte {offset:,} is {found}; allowed: {expected}")


class StateError(FormatError):
    """A state stream that a cache refuses; `kind` is one of STATE_KINDS.

    Attributes:
        consumed: bytes read before the refusal, the refused field included unless the stream ends in it.
    """

    def __init__(self, kind: str, offset: int, field: str, expected: Any, found: Any, *, consumed: int) -> None:
        self.consumed = consumed
        super().__init__(kind, offset, field, expected, found)
