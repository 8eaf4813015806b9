"""One family of exceptions; every message names the field, the value and what is allowed."""

from typing import Any


class KVModelError(Exception):
    """Base of every error this package raises on purpose."""


class ParamError(KVModelError, ValueError):
    """An argument or a configuration value is not allowed.

    Attributes:
        field: name of the argument.
        value: what was given.
        allowed: what would have been accepted, in words.
    """

    def __init__(self, field: str, value: Any, allowed: str) -> None:
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(f"{field} is {value!r}; allowed: {allowed}")


class BatchError(KVModelError, ValueError):
    """A batch that `llama_decode` refuses with return code -1.

    Attributes:
        kind: `empty`, `bad_seq_id`, `not_consecutive`, `gap` or `coupled_diverged`.
        seq: the sequence the refusal speaks of, -1 if none.
        stored: X, the newest position in the cache, or None where it plays no part.
        start: Y, the first position in the batch, or None where it plays no part.
    """

    def __init__(
        self, kind: str, message: str, *, seq: int = -1, stored: int | None = None, start: int | None = None
    ) -> None:
        self.kind, self.seq, self.stored, self.start = kind, seq, stored, start
        super().__init__(message)


class CacheAbort(KVModelError, RuntimeError):
    """An operation after which the C++ would be undefined or end its process.

    Attributes:
        quirk: id of the quirk that explains it, empty if it is a plain misuse.
    """

    def __init__(self, message: str, *, quirk: str = "") -> None:
        self.quirk = quirk
        super().__init__(message)


def check_int(field: str, value: Any, low: int, high: int) -> int:
    """Return `value` as int if it is a whole number in [low, high], else raise ParamError."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ParamError(field, value, f"a whole number from {low} to {high}")
    number = int(value)
    if not low <= number <= high:
        raise ParamError(field, number, f"a whole number from {low} to {high}")
    return number
