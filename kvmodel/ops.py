"""Operations as data: what a scenario can ask of a cache, validated field by field.

Names and arguments are those of the cache's own calls.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from kvmodel.limits import INT32_MAX, MAX_BATCH, MAX_IDS, MAX_SEQ

SeqIdField = Annotated[int, Field(ge=0, lt=MAX_SEQ)]
PosField = Annotated[int, Field(ge=-INT32_MAX, le=INT32_MAX)]


class Model(BaseModel):
    """Frozen, and strict about unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class TokenRun(Model):
    """Tokens in a row with counting positions and one list of owners.

    Attributes:
        n: number of tokens; left out, it is the number of texts.
        pos: first position; left out, the sequence continues after its newest position.
        seq: owners; the first one is the sequence the mask asks for.
        text: one text a token, to be shown in the cells.
    """

    n: int = Field(ge=1, le=MAX_BATCH)
    pos: Annotated[int, Field(ge=0, le=INT32_MAX)] | None = None
    seq: tuple[int, ...] = Field(default=(0,), min_length=1, max_length=MAX_IDS)
    text: tuple[Annotated[str, Field(max_length=64)], ...] | None = None

    @model_validator(mode="before")
    @classmethod
    def _count_text(cls, data: Any) -> Any:
        if isinstance(data, dict) and "n" not in data and isinstance(data.get("text"), list | tuple):
            return {**data, "n": len(data["text"])}
        return data

    @model_validator(mode="after")
    def _check_text(self) -> "TokenRun":
        if self.text is not None and len(self.text) != self.n:
            raise ValueError(f"text has {len(self.text)} entries; allowed: one for each of the {self.n} tokens")
        return self


class _Op(Model):
    op: str
    note: str = Field(default="", max_length=2000)

    @model_serializer(mode="wrap")
    def _keep_tag(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The tag tells the operations apart, so it is written even where it is the default."""
        return {"op": self.op, **handler(self)}


class Decode(_Op):
    """A decode call; `fail_at` makes the computation of that ubatch fail."""

    op: Literal["decode"] = "decode"
    tokens: tuple[TokenRun, ...] = Field(min_length=1)
    n_ubatch: Annotated[int, Field(ge=1, le=MAX_BATCH)] | None = None
    embd: bool = False
    fail_at: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _check_tokens(self) -> "Decode":
        total = sum(run.n for run in self.tokens)
        if total > MAX_BATCH:
            raise ValueError(f"the batch has {total} tokens; allowed: {MAX_BATCH} at most")
        missing = [run.pos is None for run in self.tokens]
        if any(missing) and not all(missing):
            raise ValueError("pos is given for some runs only; allowed: for all of them or for none")
        return self


class SeqRm(_Op):
    """`seq_rm`: remove a sequence (-1: every one) from a range of positions."""

    op: Literal["seq_rm"] = "seq_rm"
    seq: int = Field(default=-1, ge=-1, lt=MAX_SEQ)
    p0: PosField = -1
    p1: PosField = -1


class SeqCp(_Op):
    """`seq_cp`: make `dst` an owner of the cells of `src`."""

    op: Literal["seq_cp"] = "seq_cp"
    src: SeqIdField
    dst: SeqIdField
    p0: PosField = -1
    p1: PosField = -1


class SeqKeep(_Op):
    """`seq_keep`: remove every other sequence."""

    op: Literal["seq_keep"] = "seq_keep"
    seq: SeqIdField


class SeqAdd(_Op):
    """`seq_add`: shift the positions of a sequence."""

    op: Literal["seq_add"] = "seq_add"
    seq: SeqIdField
    p0: PosField = -1
    p1: PosField = -1
    shift: PosField


class SeqDiv(_Op):
    """`seq_div`: divide the positions of a sequence."""

    op: Literal["seq_div"] = "seq_div"
    seq: SeqIdField
    p0: PosField = -1
    p1: PosField = -1
    d: Annotated[int, Field(ge=1, le=INT32_MAX)]


class Update(_Op):
    """An update: pending shifts, and a defrag if asked for or due."""

    op: Literal["update"] = "update"
    optimize: bool = False
    thold: Annotated[float, Field(ge=-1, le=1)] | None = None
    n_max_nodes: Annotated[int, Field(ge=0, le=INT32_MAX)] | None = None


class Defrag(_Op):
    """Ask for a defrag at the next update."""

    op: Literal["defrag"] = "defrag"


class Clear(_Op):
    """`clear`: empty every cell."""

    op: Literal["clear"] = "clear"
    data: bool = True


Op = Annotated[Decode | SeqRm | SeqCp | SeqKeep | SeqAdd | SeqDiv | Update | Defrag | Clear, Field(discriminator="op")]

AnyOp = Decode | SeqRm | SeqCp | SeqKeep | SeqAdd | SeqDiv | Update | Defrag | Clear
