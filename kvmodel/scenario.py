"""A configuration and a list of operations as one versioned document: JSON in and out.

Field names are those of `CacheParams` and `ContextParams`.
"""

import json
import re
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from kvmodel.caches.sizes import tensor_bytes
from kvmodel.context import MAX_NODES, ContextParams
from kvmodel.errors import KVModelError
from kvmodel.limits import INT32_MAX, MAX_BATCH, MAX_CELLS, MAX_OPS, MAX_SCENARIO_BYTES, MAX_SEQ
from kvmodel.ops import AnyOp, Model, Op
from kvmodel.types import CacheParams


class ScenarioError(KVModelError, ValueError):
    """A document is no valid scenario; the message names the first field at fault."""


class CacheConfig(Model):
    """Which cache, and what it is made of (`CacheParams`)."""

    kind: Literal["unified"] = "unified"
    kv_size: int = Field(ge=1, le=MAX_CELLS)
    n_seq_max: int = Field(default=1, ge=1, le=MAX_SEQ)
    n_pad: int = 32
    swa_type: Literal["none", "standard", "chunked"] = "none"
    n_swa: int = 0
    n_layer: int = 1
    n_head_kv: int | tuple[int, ...] = 1
    n_embd_head_k: int = 64
    n_embd_head_v: int = 64
    type_k: str = "f16"
    type_v: str = "f16"
    v_trans: bool = True
    use_alibi: bool = False
    arch: str = "llama"
    rope: bool = True

    @property
    def params(self) -> CacheParams:
        """The same as CacheParams.

        Raises:
            ParamError: values that do not fit together.
        """
        return CacheParams(**self.model_dump(exclude={"kind"}))

    @model_validator(mode="after")
    def _check(self) -> "CacheConfig":
        params = self.params
        tensor_bytes(params, "k")
        tensor_bytes(params, "v")
        return self


class ContextConfig(Model):
    """The settings around the cache (`ContextParams`)."""

    n_batch: int = Field(default=2048, ge=1, le=MAX_BATCH)
    n_ubatch: int = Field(default=512, ge=1, le=MAX_BATCH)
    defrag_thold: float = -1.0
    n_max_nodes: int = Field(default=MAX_NODES, ge=0, le=INT32_MAX)
    causal_attn: bool = True

    @property
    def params(self) -> ContextParams:
        """The same as ContextParams."""
        return ContextParams(**self.model_dump())


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
    cache: CacheConfig
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

    def with_op(self, op: AnyOp) -> "Scenario":
        """A copy with one more operation.

        Raises:
            ScenarioError: there are 10,000 already.
        """
        if len(self.ops) >= MAX_OPS:
            raise ScenarioError(f"the scenario has {len(self.ops)} operations; allowed: {MAX_OPS} at most")
        return self.model_copy(update={"ops": (*self.ops, op)})


def first_problem(problem: ValidationError) -> str:
    """The first finding of pydantic as one sentence with field, value and what is allowed."""
    finding = problem.errors()[0]
    where = ".".join(str(part) for part in finding["loc"]) or "document"
    given, context = finding["input"], finding.get("ctx", {})
    match finding["type"]:
        case "missing":
            told = " is missing; allowed: a value, since it has no default"
        case "extra_forbidden":
            told = " is no known field; allowed: the fields of the format only"
        case "union_tag_invalid":
            told = f".op is {context['tag']!r}; allowed: {context['expected_tags']}"
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
