"""Well-known models by name: data in known.json, in the keys of their GGUF files, each with its source."""

import difflib
import re
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from kvmodel.errors import ParamError
from kvmodel.geometry import Geometry
from kvmodel.hparams.shape import from_keys

LONGEST_NAME = 200
CLOSE = 0.5
ASIDE = re.compile(r"[(,;].*$")
WORDS = re.compile(r"[a-z]+|\d+")
FLUFF = {
    "base",
    "chat",
    "class",
    "gguf",
    "hf",
    "instruct",
    "instruction",
    "it",
    "model",
    "preview",
    "pt",
    "qat",
    "tuned",
}
"""Words that a file's name adds to a model's: kinds of tuning and of files."""

QUANTISED = re.compile(r"[-_.](?:ud-)?(?:iq|q)\d\w*$|[-_.](?:bf|fp|f)(?:16|32|8)$|[-_.]mxfp4\w*$", re.IGNORECASE)
"""The quantisation at the end of a file's name."""


class Entry(BaseModel):
    """One model of known.json.

    Attributes:
        name: what it is called.
        aliases: other names, of models of the same shape too.
        arch: llama.cpp's name of its architecture.
        source: the address of the config.json or of the text that the numbers stand in.
        keys: the keys of its GGUF file without the architecture's name in front.
        notes: what a reader should know.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1, max_length=LONGEST_NAME)
    aliases: list[str] = []
    arch: str = Field(min_length=1)
    source: str = Field(pattern="^https://")
    keys: dict[str, int | float | list[int] | list[bool]]
    notes: list[str] = []


@cache
def _entries() -> tuple[Entry, ...]:
    text = (files("kvmodel") / "models" / "known.json").read_bytes()
    return tuple(TypeAdapter(list[Entry]).validate_json(text))


@cache
def known() -> dict[str, Geometry]:
    """Every known model by its name, in the order of the file."""
    return {
        entry.name: from_keys(entry.arch, entry.keys, name=entry.name, source=entry.source, notes=entry.notes)
        for entry in _entries()
    }


@cache
def _index() -> dict[str, str]:
    """Names in their plain form to the names that `known` has."""
    plain: dict[str, str] = {}
    for entry in _entries():
        for name in (entry.name, *entry.aliases):
            if plain.setdefault(_plain(name), entry.name) != entry.name:
                raise ParamError("name", name, f"a name that is not that of {plain[_plain(name)]}")
    return plain


def find(name: str) -> Geometry:
    """A known model by its name, whatever the case, the publisher in front or the quantisation behind.

    Raises:
        ParamError: no known model has that name; the message names those that come close.
    """
    if not name.strip() or len(name) > LONGEST_NAME:
        raise ParamError("model", name[:LONGEST_NAME], f"the name of a model, at most {LONGEST_NAME} letters")
    index, plain = _index(), _plain(name)
    if plain in index:
        return known()[index[plain]]
    close = difflib.get_close_matches(plain, index, n=5, cutoff=CLOSE)
    names = list(dict.fromkeys(index[other] for other in close)) or list(known())[:5]
    raise ParamError("model", name, "a known model; close to it are " + ", ".join(names))


def _plain(name: str) -> str:
    """A name without case, publisher, asides, signs and the words of FLUFF."""
    short = ASIDE.sub("", name).strip().lower().rpartition("/")[2].removesuffix(".gguf")
    short = QUANTISED.sub("", short)
    return "".join(word for word in WORDS.findall(short) if word not in FLUFF)
