"""What a start-up log says about a model, its context and the memory of its caches, in every version."""

import re
from dataclasses import dataclass, field
from typing import Any

from kvmodel.errors import ParamError
from kvmodel.formats.debuglog_settings import MEMORY_INIT, WINDOW_LAYER
from kvmodel.formats.debuglog_text import lines_of
from kvmodel.formats.memlog_owner import LoggedModel, settle
from kvmodel.formats.memlog_parts import LoggedContext, Printed, PrintedPart

N, MIB, TYPE = r"(\d{1,10})", r"(\d{1,12}\.\d{1,6})", r"\((\w{1,16})\)"
MAX_CONTEXTS = 64
"""Contexts of one log: a model and its draft are two, and a server that swaps models has some more."""

MAX_PARTS = 256
"""Caches of one log."""

MAX_LINE = 1 << 16
"""Characters of a line that is looked at: lists with an entry for each layer take some thousand."""

Numbers = tuple[str | None, ...]


def _line(pattern: str) -> re.Pattern[str]:
    """A pattern in which N stands for a whole number, MIB for a size and TYPE for an element type in brackets."""
    return re.compile(pattern.replace("<N>", N).replace("<MIB>", MIB).replace("<TYPE>", TYPE), re.ASCII)


SPEAKS = re.compile(
    r"_info:|_meta:|_internal:|llama_\w{1,40}:|create_memory:|load_tensors: layer|(?i:kv) self size|size =|per state\)"
)
"""What every line that is read has somewhere; most lines of a long log have none of it."""

MODEL = _line(r"\b(print_info|llm_load_print_meta|llama_model_load(?:_internal)?): (\w[\w .-]{0,40}?) *= (.*)$")
KEY = _line(r"\bllama_model_loader: - kv +<N>: +(\S{1,128}) +\S{1,32} += (.*)$")
WHOLE_LIST = re.compile(r"\d{1,10}|\[\d{1,10}(?:, *\d{1,10})*\]", re.ASCII)
"""A value of the loader's list that is whole: long arrays and texts are cut off, and no other kind matters here."""

KEPT = ("general.architecture", "sliding_window_pattern")
"""Keys that are kept though they are texts, or lists cut off."""

CONTEXT = _line(
    r"\b(?:llama_context|llama_init_from_model|llama_new_context_with_model|llama_init_from_file):"
    r" (\w[\w ]{0,40}?) *= (.*)$"
)
HALF = _line(r"\bllama_kv_cache_(?:unified_)?iswa: creating +(non-SWA|SWA) KV cache")
PADDED = _line(r"\bcreate_memory: n_ctx = <N> \(padded\)")
BUFFER = _line(r": +(\S{1,80}) (?:KV|RS) buffer size = +<MIB> MiB\s*$")
KV_SIZE = _line(r"\bllama_kv_cache(_init|_unified|_recurrent)?: kv_size = <N>,.{0,200}\bn_layer = <N>")
UNIFIED = _line(
    r"\bllama_kv_cache(_unified)?: +size = +<MIB> MiB \( *<N> cells, +<N> layers, +<N>(?:/ *<N>)? seqs\),"
    r" K <TYPE>: +<MIB>(?: MiB)?, V <TYPE>: +<MIB>"
)
STATES = _line(
    r"\bllama_memory_recurrent: +size = +<MIB> MiB \( *<N> cells, +<N> layers, +<N> seqs(?: +<N> rs_seq)?\),"
    r" R <TYPE>: +<MIB>(?: MiB)?, S <TYPE>: +<MIB>"
)
SELF_SIZE = _line(r"\b(?i:kv) self size += +<MIB>(?: MiB| MB)?")
FIRST_SIZE = _line(r"\bllama_model_load: memory_size = +<MIB> MB, n_mem = <N>")
PER_STATE = _line(r": mem required += +<MIB> (?:MB|MiB) \(\+ +<MIB> (?:MB|MiB) per state\)")
VRAM = _line(r"\bllama_kv_cache_init: VRAM kv self = +<MIB> (?:MB|MiB)")
COMMA = re.compile(r"(?<=\d),(?=\d\d Mi?B)", re.ASCII)
"""A decimal comma, which a log has where the system's language writes one."""

HALVES = _line(r"[KR] <TYPE>: +<MIB>(?: MiB)?, [VS] <TYPE>: +<MIB>")
LATENT = _line(r"c\^KV <TYPE>: +<MIB>(?: MiB)?, kv\^T: not used")


def read_contexts(source: str | bytes) -> tuple[LoggedContext, ...]:
    """The contexts of a log that have at least one line about memory, in order.

    Raises:
        ParamError: the log is larger than MAX_LOG_BYTES, or speaks of more contexts or caches than are read.
    """
    reader = _Reader()
    for number, text in enumerate(lines_of(source), 1):
        if len(text) <= MAX_LINE and "=" in text and SPEAKS.search(text):
            reader.take(text, number)
    settle(reader.contexts, reader.models)
    return tuple(context for context in reader.contexts if context.parts)


@dataclass
class _Before:
    """What the lines before a cache's sizes say about it."""

    name: str = "kv"
    cells: int | None = None
    n_layer: int | None = None
    n_seqs: int | None = None
    buffers: list[tuple[str, str]] = field(default_factory=list)
    vram: str | None = None

    def part(self, line: int, printed: Printed, **said: Any) -> PrintedPart:
        """The cache, with what the line of sizes itself says."""
        known = {"name": self.name, "cells": self.cells, "n_layer": self.n_layer, "n_seqs": self.n_seqs}
        return PrintedPart(**{**known, **said}, line=line, printed=printed, buffers=tuple(self.buffers), vram=self.vram)


class _Reader:
    """Takes a log line by line; a part's line of sizes ends what is said about it."""

    def __init__(self) -> None:
        self.contexts: list[LoggedContext] = []
        self.models: list[LoggedModel] = []
        self._n_parts = 0
        self._before = _Before()
        self._begin_model()

    def take(self, text: str, line: int) -> None:
        """Look at one line."""
        text = COMMA.sub(".", text)
        part = self._sizes(text, line)
        if part is not None:
            self._finish(part)
        elif not self._take_shape(text):
            self._take_setting(text)

    @property
    def _context(self) -> LoggedContext:
        if not self.contexts or self.contexts[-1].model is not self._model:
            self._begin_context()
        return self.contexts[-1]

    def _begin_context(self) -> None:
        if len(self.contexts) >= MAX_CONTEXTS:
            raise ParamError("log", f"more than {MAX_CONTEXTS} contexts", f"{MAX_CONTEXTS} at most")
        self.contexts.append(LoggedContext(self._model, self._keys, self._windows))

    def _begin_model(self) -> None:
        self._model: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._windows: list[bool] = []
        self.models.append((self._model, self._keys, self._windows))

    def _take_setting(self, text: str) -> None:
        if found := KEY.search(text):
            self._take_key(int(found[1]), found[2], found[3].strip())
        elif found := MODEL.search(text):
            if self._model and self._begins(found[1], found[2]):
                self._begin_model()
            self._model.setdefault(found[2], found[3].strip())
        elif found := CONTEXT.search(text):
            if found[1] in self._context.values and self._context.caches:
                self._begin_context()
            self._context.values.setdefault(found[1], found[2].strip())
            self._context.streams |= found[1] in {"n_ctx_seq", "kv_unified"}

    def _begins(self, function: str, name: str) -> bool:
        """Whether a field is the first one that its version prints of a model."""
        if name == "arch":  # it comes first or after the format
            return not self._model.keys().isdisjoint({"arch", "n_layer"})
        return name == "format" or (name == "n_vocab" and function == "llama_model_load")

    def _take_key(self, index: int, key: str, value: str) -> None:
        """A line of the loader's list of keys, which comes before all else that is printed of a model."""
        if index == 0 or self._model:
            self._begin_model()
        if WHOLE_LIST.fullmatch(value) or key.endswith(KEPT):
            self._keys.setdefault(key, value)

    def _take_shape(self, text: str) -> bool:
        """Lines before the one with the sizes of a cache."""
        before = self._before
        if found := WINDOW_LAYER.search(text):
            self._windows.append(found[1] == "1")
        elif found := PADDED.search(text):
            self._context.padded = int(found[1])
        elif found := BUFFER.search(text):
            before.buffers.append((found[1], found[2]))
        elif found := VRAM.search(text):
            before.vram = found[1]
        elif found := KV_SIZE.search(text):
            before.name = "recurrent" if found[1] == "_recurrent" else before.name
            before.cells, before.n_layer = int(found[2]), int(found[3])
        elif found := MEMORY_INIT.search(text):
            before.name = "recurrent"
            before.cells, before.n_seqs, before.n_layer = int(found[1]), int(found[2]), int(found[3])
        elif found := HALF.search(text):
            before.name = "base" if found[1] == "non-SWA" else "swa"
        else:
            return False
        return True

    def _sizes(self, text: str, line: int) -> PrintedPart | None:
        """The cache of a line with sizes, None if it is another line."""
        if found := UNIFIED.search(text):
            self._context.streams |= found[1] is None or found[6] is not None
            stream = {"n_stream": _number(found[6])}
            return self._counted(line, found[2], found.groups()[2:5], found.groups()[6:], stream)
        if found := STATES.search(text):
            self._context.streams = True
            named = {"name": "recurrent", "n_rs_seq": _number(found[5])}
            return self._counted(line, found[1], found.groups()[1:4], found.groups()[5:], named)
        if found := SELF_SIZE.search(text):
            type_k, k, type_v, v = _halves(text)
            name = "recurrent" if "_recurrent: " in text else self._before.name
            return self._before.part(line, Printed(found[1], k, v), name=name, type_k=type_k, type_v=type_v)
        if found := FIRST_SIZE.search(text):
            return self._before.part(line, Printed(found[1]), n_mem=int(found[2]))
        if found := PER_STATE.search(text):
            return PrintedPart(line, "state", Printed(found[2]))
        return None

    def _counted(
        self, line: int, total: str, numbers: Numbers, halves: tuple[str | None, ...], said: dict[str, Any]
    ) -> PrintedPart:
        cells, n_layer, n_seqs = (_number(digits) for digits in numbers)
        type_k, k, type_v, v = halves
        counted = {"cells": cells, "n_layer": n_layer, "n_seqs": n_seqs, "type_k": type_k, "type_v": type_v}
        return self._before.part(line, Printed(total, k, v), **counted, **said)

    def _finish(self, part: PrintedPart) -> None:
        self._n_parts += 1
        if self._n_parts > MAX_PARTS:
            raise ParamError("log", f"more than {MAX_PARTS} caches", f"{MAX_PARTS} at most")
        self._context.parts.append(part)
        self._before = _Before()


def _number(digits: str | None) -> int | None:
    return int(digits) if digits else None


def _halves(text: str) -> tuple[str | None, ...]:
    """Type and MiB of K, then of V, as far as a line names them."""
    if found := HALVES.search(text):
        return found.groups()
    if found := LATENT.search(text):
        return (found[1], found[2], None, None)
    return (None, None, None, None)
