"""What replays one family: a cache built from a header, its operations, and its state in the recording's words."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

Json = dict[str, Any]

RECORDER_FIELDS = frozenset({"mask_bits_max", "cells_every", "cells_max_runs", "record_mask", "quirk"})
"""Header fields that speak of the recording, not of the cache."""


class BadRecord(ValueError):
    """A record that is not in the format: what is wrong, in words."""


@dataclass(frozen=True)
class Args:
    """The arguments of an operation: those it must have and those it may have."""

    must: frozenset[str]
    may: frozenset[str]

    @classmethod
    def of(cls, must: str = "", may: str = "") -> "Args":
        """From names in a line."""
        return cls(frozenset(must.split()), frozenset(may.split()))


class Driver(ABC):
    """One recording being replayed.

    Attributes:
        header_fields: header fields that this family has; any other one is a difference, since nothing read it.
        ops: the arguments of every operation; each is carried out by the method `do_NAME`.
    """

    header_fields: ClassVar[frozenset[str]]
    ops: ClassVar[Mapping[str, Args]]

    @abstractmethod
    def __init__(self, header: Json) -> None:
        """Build the cache that `header` describes."""

    @abstractmethod
    def opened(self) -> Json:
        """What the header record holds as `res`."""

    @abstractmethod
    def state(self) -> Json:
        """What every record holds as `state`."""

    def run(self, op: Json) -> Json:
        """Carry out one operation; return its `res`.

        Raises:
            BadRecord: an operation that the family does not have, or one that lacks an argument.
        """
        name = str(op.get("op"))
        if name not in self.ops:
            raise BadRecord(f"op is {op.get('op')!r}; allowed: {', '.join(sorted(self.ops))}")
        missing = self.ops[name].must - op.keys()
        if missing:
            raise BadRecord(f"{name} lacks {', '.join(sorted(missing))}")
        result: Json = getattr(self, f"do_{name}")(op)
        return result

    def known_header(self, header: Json) -> Json:
        """The fields of a header that this driver, or its recorder, knows."""
        return {name: value for name, value in header.items() if name in self.header_fields | RECORDER_FIELDS}

    def known_args(self, op: Json) -> Json:
        """The arguments of an operation that this driver uses."""
        args = self.ops[op["op"]]
        return {name: value for name, value in op.items() if name in args.must | args.may | {"op"}}
