"""A scenario and a view of it as the parameters of a link, and back.

A shipped scenario is named by its id. Any other travels in the link: its document as JSON, packed by zlib, in the
alphabet that needs no escape in an address. Nothing in a link is trusted: it is as long as anybody likes.
"""

import base64
import json
import re
import zlib
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, ValidationError

from kvmodel.configs import AnyCacheConfig, ContextConfig
from kvmodel.library import IDS, load, shipped
from kvmodel.limits import MAX_BATCH, MAX_BEATS, MAX_CELLS, MAX_LINK_BYTES, MAX_LINK_CHARS, MAX_OPS
from kvmodel.ops import Model
from kvmodel.scenario import Scenario, ScenarioError, first_problem

NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
PACKED = re.compile(r"[A-Za-z0-9_-]+")
USE_FILE = "share the scenario as a JSON file instead"


class View(Model):
    """What one looks at. Whoever shows it brings a number down to what the scenario has.

    Attributes:
        step: number of the step; 0 is the empty cache.
        beat: which beat inside the step, from 1 on; 0 is the whole step.
        cell: the selected cell.
        half: the set of cells that mask and tables speak of; None leaves it to the page.
        colour: what the colours of the cells stand for.
        ubatch: which ubatch of the step the mask shows, from 0 on; None leaves it to the page.
        tables: whether tables stand in for the pictures.
        query: the row of the mask that is asked about, a token of the ubatch; None for none.
        panel: what stands beside the map: what happened, the story of a cell, or the operations.
        lower: what stands below it where there is a choice: the mask, the moves of a defrag, or the K-shift.
    """

    step: int = Field(default=0, ge=0, le=MAX_OPS)
    beat: int = Field(default=0, ge=0, le=MAX_BEATS)
    cell: int | None = Field(default=None, ge=0, lt=MAX_CELLS)
    half: Literal["kv", "base", "swa"] | None = None
    colour: Literal["sequence", "position", "shift", "changed"] = "sequence"
    ubatch: int | None = Field(default=None, ge=0, lt=MAX_BATCH)
    tables: bool = False
    query: int | None = Field(default=None, ge=0, lt=MAX_BATCH)
    panel: Literal["happened", "why", "operations"] = "happened"
    lower: Literal["mask", "defrag", "shift"] = "mask"


NUMBERS = ("step", "beat", "cell", "ubatch", "tables", "query")
"""Fields of a view that are numbers in a link; `tables` is 0 or 1."""

KNOWN = ("scenario", "data", "other", *View.model_fields)

Settings = tuple[AnyCacheConfig, ContextConfig]


def to_params(scenario: Scenario, view: View, other: Settings | None = None) -> dict[str, str]:
    """The parameters of a link that restores all of them; a view's defaults are left out.

    Args:
        scenario: what is played.
        view: what is looked at.
        other: the settings that it is compared with, None if none were chosen.

    Raises:
        ScenarioError: the scenario is too large for a link.
    """
    return scenario_params(scenario) | view_params(view, other)


def scenario_params(scenario: Scenario) -> dict[str, str]:
    """The parameter that names or carries a scenario; a long one takes tens of milliseconds to pack.

    Raises:
        ScenarioError: the scenario is too large for a link.
    """
    name = next((name for name, known in shipped().items() if known == scenario), None)
    return {"scenario": name} if name else {"data": _pack(scenario)}


def view_params(view: View, other: Settings | None = None) -> dict[str, str]:
    """The parameters for a view, its defaults left out, and for the settings that it is compared with."""
    chosen = view.model_dump(exclude_defaults=True)
    shown = {name: str(int(value) if name in NUMBERS else value) for name, value in chosen.items()}
    compared = {"other": _pack(Scenario(title="other", cache=other[0], context=other[1]))} if other else {}
    return shown | compared


def from_params(params: Mapping[str, str]) -> tuple[Scenario, View]:
    """The scenario and the view that a link asks for.

    Raises:
        ScenarioError: a parameter is unknown, or has a value that is not allowed.
    """
    for name, value in params.items():
        if name not in KNOWN:
            raise ScenarioError.of("parameter", name, ", ".join(KNOWN))
        if not isinstance(value, str):
            raise ScenarioError.of(name, value, "text")
    return _scenario(params), _view({name: params[name] for name in View.model_fields if name in params})


def other_from(params: Mapping[str, str]) -> Settings | None:
    """The settings that a link compares with, None if it names none.

    Raises:
        ScenarioError: they are not allowed.
    """
    if "other" not in params:
        return None
    settings = _unpack(params["other"])
    return settings.cache, settings.context


def _view(given: dict[str, str]) -> View:
    fields: dict[str, str | int] = dict(given)
    for name in NUMBERS:
        text = given.get(name)
        if text is not None and not NUMBER.fullmatch(text):
            raise ScenarioError.of(name, text, "a whole number in decimal figures")
        if text is not None:
            fields[name] = int(text)
    try:
        return View.model_validate(fields)
    except ValidationError as problem:
        raise ScenarioError(first_problem(problem)) from None


def _scenario(params: Mapping[str, str]) -> Scenario:
    name, packed = params.get("scenario"), params.get("data")
    if packed is not None and name is not None:
        raise ScenarioError("scenario and data are both given; allowed: one of them")
    if packed is not None:
        return _unpack(packed)
    if name is None:
        raise ScenarioError("scenario is missing; allowed: an id in scenario, or a packed document in data")
    if name not in IDS:
        raise ScenarioError.of("scenario", name, ", ".join(IDS))
    return load(name)


def _pack(scenario: Scenario) -> str:
    document = json.dumps(scenario.document(), separators=(",", ":"), ensure_ascii=False).encode()
    if len(document) > MAX_LINK_BYTES:
        told = f"the document has {len(document)} bytes; allowed in a link: {MAX_LINK_BYTES} at most"
        raise ScenarioError(f"{told}; {USE_FILE}")
    text = base64.urlsafe_b64encode(zlib.compress(document, 9)).decode().rstrip("=")
    if len(text) > MAX_LINK_CHARS:
        told = f"the packed document has {len(text)} characters; allowed in a link: {MAX_LINK_CHARS} at most"
        raise ScenarioError(f"{told}; {USE_FILE}")
    return text


def _unpack(text: str) -> Scenario:
    if len(text) > MAX_LINK_CHARS:
        raise ScenarioError(f"data has {len(text)} characters; allowed: {MAX_LINK_CHARS} at most; {USE_FILE}")
    if not PACKED.fullmatch(text) or len(text) % 4 == 1:
        raise ScenarioError.of("data", text, "a document packed by zlib in base64url without padding")
    packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    reader = zlib.decompressobj()
    try:
        document = reader.decompress(packed, MAX_LINK_BYTES + 1)
    except zlib.error as problem:
        raise ScenarioError.of("data", text, f"a document packed by zlib: {problem}") from None
    if len(document) > MAX_LINK_BYTES:
        raise ScenarioError(f"data unpacks to more than {MAX_LINK_BYTES} bytes; allowed: {MAX_LINK_BYTES} at most")
    if not reader.eof or reader.unused_data:
        raise ScenarioError.of("data", text, "a packed document, whole and with nothing behind it")
    return Scenario.from_json(document)
