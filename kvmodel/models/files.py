"""Geometry from what a user has: a GGUF file, its first bytes, or the text of a config.json."""

import os
import re
from pathlib import Path

from kvmodel.errors import ParamError
from kvmodel.formats.gguf_header import GGUFHeader, open_header, read_header
from kvmodel.formats.model_config import read_config
from kvmodel.formats.stream import Data
from kvmodel.geometry import Geometry
from kvmodel.hparams.shape import ARCH_ALLOWED, check_arch, from_keys

SPLIT_NAME = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
PATTERN_NOTE = "The file's layer_types differ from the layers that llama.cpp gives a window, which are used here."


def from_gguf(path: str | os.PathLike[str]) -> Geometry:
    """The geometry of a GGUF file of any size; only its header is read. Of a split model, give the first part.

    Raises:
        ParamError: the file cannot be opened, or a key is missing or has a value that is not allowed.
        GGUFError: the header is damaged, or it is no GGUF header of version 2 or 3.
    """
    return _from_header(open_header(path), source=Path(path).name)


def from_gguf_bytes(data: Data, *, source: str = "") -> Geometry:
    """The geometry from a GGUF file's first bytes, as many as hold all keys.

    Args:
        data: the bytes.
        source: what to call them, a file's name for instance.

    Raises:
        ParamError: a key is missing or has a value that is not allowed.
        GGUFError: the header is damaged, ends too early, or it is no GGUF header of version 2 or 3.
    """
    return _from_header(read_header(data), source=source)


def from_config(text: str | bytes, *, name: str = "", source: str = "config.json") -> Geometry:
    """The geometry from the text of a Hugging Face config.json, as llama.cpp takes the converted model.

    Args:
        text: the text; it is parsed, never executed.
        name: what to call the model; left out, what the file says.
        source: where the text comes from.

    Raises:
        ParamError: it is no such text, of a model type that is not known, or a field is missing or not allowed.
    """
    found = read_config(text)
    title = name or found.name or found.arch
    geometry = from_keys(found.arch, found.keys, name=title, source=source, notes=found.notes)
    differs = found.windowed is not None and any(geometry.windows) and found.windowed != geometry.windows
    if not differs:
        return geometry
    return from_keys(found.arch, found.keys, name=title, source=source, notes=(*found.notes, PATTERN_NOTE))


def _from_header(header: GGUFHeader, *, source: str) -> Geometry:
    # A value that was moved past stands in for itself as words: where a number is wanted, the message shows them.
    values = {**header.values, **{key: skipped.words for key, skipped in header.skipped.items()}}
    if values.get("general.type", "model") != "model":
        raise ParamError("general.type", values["general.type"], "model; adapters and projectors have no cache")
    if "general.architecture" not in values:
        raise ParamError("general.architecture", "missing", _advice(header, source))
    if "general.architecture" in header.skipped:
        raise ParamError("general.architecture", values["general.architecture"], ARCH_ALLOWED)
    arch = check_arch(values["general.architecture"])
    own = {key.removeprefix(f"{arch}."): value for key, value in values.items() if key.startswith(f"{arch}.")}
    name = header.values.get("general.name")
    title = name if isinstance(name, str) and name else source or arch
    return from_keys(arch, own, name=title, source=source)


def _advice(header: GGUFHeader, source: str) -> str:
    """What to do about a file without a model's keys: the first part of a split model has them."""
    part, parts = header.values.get("split.no"), header.values.get("split.count")
    if isinstance(part, int) and isinstance(parts, int) and part > 0:
        first = SPLIT_NAME.sub(r"-00001-of-\2.gguf", source)
        named = f", {first}" if first != source else ""
        return f"a model's first file; this is part {part + 1} of {parts}, open the first one{named}"
    return "the name of an architecture, such as llama"
