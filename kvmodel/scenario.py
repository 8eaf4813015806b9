"""A configuration and a list of operations as one versioned document: JSON in and out.

The configurations are in `configs.py`, the operations in `ops.py`.
"""

import json
import re
from typing import Literal

from pydantic import Field, ValidationError

from kvmodel.configs import KINDS, CacheConfig, CacheField, ContextConfig, Kind, translated
from kvmodel.errors import KVModelError
from kvmodel.limits import MAX_OPS, MAX_SCENARIO_BYTES
from kvmodel.ops import AnyOp, Model, Op

__all__ = ["CacheConfig", "ContextConfig", "Scenario", "ScenarioError", "first_problem"]


class ScenarioError(KVModelError, ValueError):
    """A document is no valid scenario; the message names the first field at fault."""


class Scenario(Model):
    """A versioned document: one configuration, operations in order.

    Attributes:
        version: of the document's format.
        title, description: one sentence, and what to look for.
        source: where it comes from, an address or words.
        cache, context: the configuration.
        ops: at most 10,000 operations.
    """

    version: Literal[1] = 1
    title: str = Field(min_length=1, max_length=120)
    description: str = Field(default="", max_length=4000)
    source: str = Field(default="", max_length=500)
    cache: CacheField
    context: ContextConfig = ContextConfig()
    ops: tuple[Op, ...] = Field(default=(), max_length=MAX_OPS)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Scenario":
        """Read a document.

        Raises:
            ScenarioError: it is too large, no JSON, or a field is not allowed.
        """
        size = len(text.encode() if isinstance(text, str) else text)
        if size > MAX_SCENARIO_BYTES:
            raise ScenarioError(f"the document has {size} bytes; allowed: {MAX_SCENARIO_BYTES} at most")
        try:
            return cls.model_validate_json(text)
        except ValidationError as problem:
            raise ScenarioError(first_problem(problem)) from None

    def to_json(self) -> str:
        """The document as JSON, without fields that have their default."""
        document = {"version": self.version, **self.model_dump(mode="json", exclude_defaults=True)}
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"

    def on(self, kind: Kind) -> "Scenario":
        """The same operations on another kind of cache, as far as the configuration can be carried over.

        Raises:
            ScenarioError: the other kind needs what this configuration does not say.
        """
        try:
            return self.model_copy(update={"cache": translated(self.cache, kind)})
        except ValidationError as problem:
            raise ScenarioError(f"on {kind}: {first_problem(problem, ('cache',))}") from None

    def with_op(self, op: AnyOp) -> "Scenario":
        """A copy with one more operation.

        Raises:
            ScenarioError: there are 10,000 already.
        """
        if len(self.ops) >= MAX_OPS:
            raise ScenarioError(f"the scenario has {len(self.ops)} operations; allowed: {MAX_OPS} at most")
        return self.model_copy(update={"ops": (*self.ops, op)})


def first_problem(problem: ValidationError, within: tuple[str, ...] = ()) -> str:
    """The first finding of pydantic as one sentence with field, value and what is allowed.

    Args:
        problem: what pydantic found.
        within: the way to what was validated, if that was not the whole document.
    """
    finding = problem.errors()[0]
    where = ".".join(_path((*within, *finding["loc"]))) or "document"
    given, context = finding["input"], finding.get("ctx", {})
    match finding["type"]:
        case "missing":
            told = " is missing; allowed: a value, since it has no default"
        case "extra_forbidden":
            told = " is no known field; allowed: the fields of the format only"
        case "union_tag_invalid":
            tag = ".kind" if where == "cache" else ".op"
            told = f"{tag} is {context['tag']!r:.80}; allowed: {context['expected_tags']}"
        case "union_tag_not_found":
            told = ".op is missing; allowed: the name of an operation"
        case "value_error":
            told = f": {context['error']}"
        case "json_invalid":
            told = f" is no JSON: {context['error']}"
        case _:
            allowed = re.sub(r"^\w+ should (be|have) ", "", finding["msg"])
            told = f" is {repr(given)[:80]}; allowed: {allowed}"
    return where + told


def _path(loc: tuple[int | str, ...]) -> list[str]:
    """The way to a field; the kind of a cache is a field of its own and no step on the way."""
    kind = loc[:1] == ("cache",) and loc[1:2] and loc[1] in KINDS
    return [str(part) for part in (loc[:1] + loc[2:] if kind else loc)]
