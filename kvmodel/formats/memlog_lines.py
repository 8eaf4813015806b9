"""What a start-up log says about a model, its context and the memory of its caches, in every version."""

import re
from dataclasses import dataclass, field

from kvmodel.errors import ParamError
from kvmodel.formats.debuglog_settings import MEMORY_INIT, WINDOW_LAYER
from kvmodel.formats.debuglog_text import lines_of

N, MIB, TYPE = r"(\d{1,10})", r"(\d{1,12}\.\d{1,6})", r"\((\w{1,16})\)"
MAX_CONTEXTS = 64
"""Contexts of one log: a model and its draft are two, and a server that swaps models has some more."""

MAX_PARTS = 256
"""Caches of one log."""

MAX_LINE = 1 << 16
"""Characters of a line that is looked at: lists with an entry for each layer take some thousand."""


def _line(pattern: str) -> re.Pattern[str]:
    """A pattern in which N stands for a whole number, MIB for a size and TYPE for an element type in brackets."""
    return re.compile(pattern.replace("<N>", N).replace("<MIB>", MIB).replace("<TYPE>", TYPE), re.ASCII)


SPEAKS = re.compile(
    r"_info:|_meta:|_internal:|llama_\w{1,40}:|create_memory:|load_tensors: layer|(?i:kv) self size|size ="
)
"""What every line that is read has somewhere; most lines of a long log have none of it."""

MODEL = _line(r"\b(?:print_info|llm_load_print_meta|llama_model_load_internal): (\w[\w .-]{0,40}?) *= (.*)$")
CONTEXT = _line(
    r"\b(?:llama_context|llama_init_from_model|llama_new_context_with_model|llama_init_from_file):"
    r" (\w[\w ]{0,40}?) *= (.*)$"
)
HALF = _line(r"\bllama_kv_cache_(?:unified_)?iswa: creating +(non-SWA|SWA) KV cache")
PADDED = _line(r"\bcreate_memory: n_ctx = <N> \(padded\)")
BUFFER = _line(r": +(\S{1,80}) (?:KV|RS) buffer size = +<MIB> MiB\s*$")
KV_SIZE = _line(r"\bllama_kv_cache(?:_init|_unified)?: kv_size = <N>,.{0,200}\bn_layer = <N>")
UNIFIED = _line(
    r"\bllama_kv_cache(_unified)?: +size = +<MIB> MiB \( *<N> cells, +<N> layers, +<N>(?:/ *<N>)? seqs\),"
    r" K <TYPE>: +<MIB>(?: MiB)?, V <TYPE>: +<MIB>"
)
STATES = _line(
    r"\bllama_memory_recurrent: +size = +<MIB> MiB \( *<N> cells, +<N> layers, +<N> seqs[^)]{0,40}\),"
    r" R <TYPE>: +<MIB>(?: MiB)?, S <TYPE>: +<MIB>"
)
SELF_SIZE = _line(r"\b(?i:kv) self size += +<MIB>(?: MiB| MB)?")
HALVES = _line(r"[KR] <TYPE>: +<MIB>(?: MiB)?, [VS] <TYPE>: +<MIB>")
LATENT = _line(r"c\^KV <TYPE>: +<MIB>(?: MiB)?, kv\^T: not used")


@dataclass(frozen=True)
class Printed:
    """Figures of one cache as a log prints them, with two decimals; None for what a version does not print."""

    total: str
    k: str | None = None
    v: str | None = None


@dataclass(frozen=True)
class PrintedPart:
    """What a log says about one cache.

    Attributes:
        line: number of the line with the sizes, from 1.
        name: kv, base, swa or recurrent.
        printed: the figures.
        cells: of one stream, None where the log does not say.
        n_layer: layers as printed; of a recurrent cache all layers of the model.
        n_seqs: sequences.
        n_stream: streams, where they are printed.
        type_k, type_v: element types.
        buffers: device and MiB of every buffer.
    """

    line: int
    name: str
    printed: Printed
    cells: int | None = None
    n_layer: int | None = None
    n_seqs: int | None = None
    n_stream: int | None = None
    type_k: str | None = None
    type_v: str | None = None
    buffers: tuple[tuple[str, str], ...] = ()


@dataclass
class LoggedContext:
    """One context of a log: what was printed about its model before, its own settings and its caches.

    Attributes:
        model: name -> value as printed, of the model.
        windows: whether each layer has a window, where the log says so; the output layer counts as the last.
        values: name -> value as printed, of the context.
        padded: n_ctx after padding, where the log says so.
        streams: whether a line speaks of streams or has the newer names.
        parts: the caches.
    """

    model: dict[str, str]
    windows: list[bool]
    values: dict[str, str] = field(default_factory=dict)
    padded: int | None = None
    streams: bool = False
    parts: list[PrintedPart] = field(default_factory=list)


def read_contexts(source: str | bytes) -> tuple[LoggedContext, ...]:
    """The contexts of a log that have at least one line about memory, in order.

    Raises:
        ParamError: the log is larger than MAX_LOG_BYTES, or speaks of more contexts or caches than are read.
    """
    reader = _Reader()
    for number, text in enumerate(lines_of(source), 1):
        if len(text) <= MAX_LINE and "=" in text and SPEAKS.search(text):
            reader.take(text, number)
    return tuple(context for context in reader.contexts if context.parts)


class _Reader:
    """Takes a log line by line; a part's line of sizes ends what is said about it."""

    def __init__(self) -> None:
        self.contexts: list[LoggedContext] = []
        self._model: dict[str, str] = {}
        self._windows: list[bool] = []
        self._n_parts = 0
        self._begin_part()

    def take(self, text: str, line: int) -> None:
        """Look at one line."""
        if not (self._take_sizes(text, line) or self._take_shape(text)):
            self._take_setting(text)

    @property
    def _context(self) -> LoggedContext:
        if not self.contexts:
            self._begin_context()
        return self.contexts[-1]

    def _begin_context(self) -> None:
        if len(self.contexts) >= MAX_CONTEXTS:
            raise ParamError("log", f"more than {MAX_CONTEXTS} contexts", f"{MAX_CONTEXTS} at most")
        self.contexts.append(LoggedContext(self._model, self._windows))

    def _begin_part(self) -> None:
        self._name = "kv"
        self._cells: int | None = None
        self._n_layer: int | None = None
        self._n_seqs: int | None = None
        self._buffers: list[tuple[str, str]] = []

    def _take_setting(self, text: str) -> None:
        if found := MODEL.search(text):
            if found[1] in {"arch", "format"} and self._model.get(found[1]):
                self._model, self._windows = {}, []
            self._model.setdefault(found[1], found[2].strip())
        elif found := CONTEXT.search(text):
            context = self._context
            if (found[1] in context.values and context.parts) or context.model is not self._model:
                self._begin_context()
            self._context.values.setdefault(found[1], found[2].strip())
            self._context.streams |= found[1] in {"n_ctx_seq", "kv_unified"}

    def _take_shape(self, text: str) -> bool:
        """Lines before the one with the sizes of a cache."""
        if found := WINDOW_LAYER.search(text):
            self._windows.append(found[1] == "1")
        elif found := PADDED.search(text):
            self._context.padded = int(found[1])
        elif found := BUFFER.search(text):
            self._buffers.append((found[1], found[2]))
        elif found := KV_SIZE.search(text):
            self._cells, self._n_layer = int(found[1]), int(found[2])
        elif found := MEMORY_INIT.search(text):
            self._name = "recurrent"
            self._cells, self._n_seqs, self._n_layer = int(found[1]), int(found[2]), int(found[3])
        elif found := HALF.search(text):
            self._name = "base" if found[1] == "non-SWA" else "swa"
        else:
            return False
        return True

    def _take_sizes(self, text: str, line: int) -> bool:
        if found := UNIFIED.search(text):
            self._context.streams |= found[1] is None or found[6] is not None
            self._counted(found[3], found[4], found[5])
            self._finish(line, found[2], found.groups()[6:], int(found[6]) if found[6] else None)
        elif found := STATES.search(text):
            self._name, self._context.streams = "recurrent", True
            self._counted(found[2], found[3], found[4])
            self._finish(line, found[1], found.groups()[4:])
        elif found := SELF_SIZE.search(text):
            if "llama_memory_recurrent" in text:
                self._name = "recurrent"
            self._finish(line, found[1], _halves(text))
        else:
            return False
        return True

    def _counted(self, cells: str, n_layer: str, n_seqs: str) -> None:
        self._cells, self._n_layer, self._n_seqs = int(cells), int(n_layer), int(n_seqs)

    def _finish(self, line: int, total: str, halves: tuple[str | None, ...], n_stream: int | None = None) -> None:
        self._n_parts += 1
        if self._n_parts > MAX_PARTS:
            raise ParamError("log", f"more than {MAX_PARTS} caches", f"{MAX_PARTS} at most")
        type_k, k, type_v, v = halves
        self._context.parts.append(
            PrintedPart(
                line=line,
                name=self._name,
                printed=Printed(total, k, v),
                cells=self._cells,
                n_layer=self._n_layer,
                n_seqs=self._n_seqs,
                n_stream=n_stream,
                type_k=type_k,
                type_v=type_v,
                buffers=tuple(self._buffers),
            )
        )
        self._begin_part()


def _halves(text: str) -> tuple[str | None, ...]:
    """Type and MiB of K, then of V, as far as a line names them."""
    if found := HALVES.search(text):
        return found.groups()
    if found := LATENT.search(text):
        return (found[1], found[2], None, None)
    return (None, None, None, None)
