"""A configuration and a list of operations as one versioned document: JSON in and out.

The configurations are in `configs.py`, the operations in `ops.py`.
"""

import json
import re
from typing import Any, Literal

from pydantic import Field, ValidationError

from kvmodel.configs import KINDS, AnyCacheConfig, CacheConfig, CacheField, ContextConfig, Kind, translated
from kvmodel.errors import KVModelError, ParamError, check_int
from kvmodel.limits import MAX_OPS, MAX_SCENARIO_BYTES
from kvmodel.ops import AnyOp, Model, Op

__all__ = ["CacheConfig", "ContextConfig", "Scenario", "ScenarioError", "first_problem"]


class ScenarioError(KVModelError, ValueError):
    """A document is no valid scenario, or an edit is not possible; the message names the first field at fault."""

    @classmethod
    def of(cls, field: str, value: object, allowed: str) -> "ScenarioError":
        """The error for one value, which the message cuts if it is long."""
        return cls(f"{field} is {value!r:.80}; allowed: {allowed}")


class Scenario(Model):
    """A versioned document: one configuration, operations in order. Edits give a copy.

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
            ScenarioError: it is no text, too large, no JSON, or a field is not allowed.
        """
        data = _encoded(text)
        if len(data) > MAX_SCENARIO_BYTES:
            raise ScenarioError(f"the document has {len(data)} bytes; allowed: {MAX_SCENARIO_BYTES} at most")
        try:
            return cls.model_validate_json(data)
        except ValidationError as problem:
            raise ScenarioError(first_problem(problem)) from None

    def to_json(self) -> str:
        """The document as JSON, without fields that have their default."""
        return json.dumps(self.document(), indent=1, ensure_ascii=False) + "\n"

    def document(self) -> dict[str, Any]:
        """The document as data for JSON: the version, and the fields that do not have their default."""
        return {"version": self.version, **self.model_dump(mode="json", exclude_defaults=True)}

    def on(self, kind: Kind) -> "Scenario":
        """The same operations on another kind of cache, as far as the configuration can be carried over.

        Raises:
            ScenarioError: there is no such kind, or it needs what this configuration does not say.
        """
        if kind not in tuple(KINDS):
            raise ScenarioError.of("kind", kind, ", ".join(KINDS))
        try:
            return self.model_copy(update={"cache": translated(self.cache, kind)})
        except ValidationError as problem:
            raise ScenarioError(f"on {kind}: {first_problem(problem, ('cache',))}") from None

    def with_op(self, op: AnyOp, at: int | None = None) -> "Scenario":
        """A copy with one more operation: before the one at index `at`, or at the end.

        Raises:
            ScenarioError: there are 10,000 already, `op` is none, or `at` is out of range.
        """
        if len(self.ops) >= MAX_OPS:
            raise ScenarioError(f"the scenario has {len(self.ops)} operations; allowed: {MAX_OPS} at most")
        n = len(self.ops)
        at = n if at is None else _index("at", at, n + 1)
        return self._with((*self.ops[:at], _checked(op), *self.ops[at:]))

    def without_op(self, i: int) -> "Scenario":
        """A copy without operation `i`.

        Raises:
            ScenarioError: there is no such operation.
        """
        i = _index("i", i, len(self.ops))
        return self._with(self.ops[:i] + self.ops[i + 1 :])

    def with_op_changed(self, i: int, op: AnyOp) -> "Scenario":
        """A copy with `op` in the place of operation `i`.

        Raises:
            ScenarioError: there is no such operation, or `op` is none.
        """
        i = _index("i", i, len(self.ops))
        return self._with((*self.ops[:i], _checked(op), *self.ops[i + 1 :]))

    def with_op_moved(self, i: int, to: int) -> "Scenario":
        """A copy in which operation `i` has index `to`; those between move up by one.

        Raises:
            ScenarioError: there is no operation `i`, or no place `to`.
        """
        i, to = _index("i", i, len(self.ops)), _index("to", to, len(self.ops))
        others = self.ops[:i] + self.ops[i + 1 :]
        return self._with((*others[:to], self.ops[i], *others[to:]))

    def with_config(self, cache: AnyCacheConfig, context: ContextConfig) -> "Scenario":
        """A copy with another configuration and the same operations.

        Raises:
            ScenarioError: one of both is no configuration.
        """
        if not isinstance(cache, AnyCacheConfig):
            raise ScenarioError.of("cache", cache, f"a configuration of kind {', '.join(KINDS)}")
        if not isinstance(context, ContextConfig):
            raise ScenarioError.of("context", context, "a ContextConfig")
        return self.model_copy(update={"cache": cache, "context": context})

    def _with(self, ops: tuple[AnyOp, ...]) -> "Scenario":
        return self.model_copy(update={"ops": ops})


def _encoded(text: object) -> bytes:
    """A document as bytes."""
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise ScenarioError.of("document", text, "JSON as text or bytes")
    try:
        return text.encode()
    except UnicodeEncodeError as problem:
        raise ScenarioError.of(f"character {problem.start}", text[problem.start], "any but half a pair") from None


def _checked(op: object) -> AnyOp:
    if not isinstance(op, AnyOp):
        raise ScenarioError.of("op", op, "an operation of kvmodel.ops")
    return op


def _index(field: str, value: int, n: int) -> int:
    """A place among `n`."""
    if not n:
        raise ScenarioError.of(field, value, "none, since the scenario has no operations")
    try:
        return check_int(field, value, 0, n - 1)
    except ParamError as problem:
        raise ScenarioError(str(problem)) from None


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
