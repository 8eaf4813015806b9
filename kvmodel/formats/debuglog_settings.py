"""What a log says about the model, the context and the memory of the caches, in either generation."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

N, MIB = r"(\d{1,10})", r"(\d{1,12}\.\d{1,6}) MiB"


def _line(pattern: str) -> re.Pattern[str]:
    """A pattern in which N stands for a whole number and MIB for a size."""
    return re.compile(pattern.replace("<N>", N).replace("<MIB>", MIB), re.ASCII)


SETTING = _line(
    r"\b(?:print_info|llm_load_print_meta|llama_context|llama_init_from_model|llama_new_context_with_model):"
    r" (\w[\w ]*?) *= (.*?)\s*$"
)
WINDOW_LAYER = _line(r"\bload_tensors: layer +\d+ assigned to device .*, is_swa = ([01])\s*$")
N_TENSORS = _line(r"\bllama_model_loader: loaded meta data with \d+ key-value pairs and <N> tensors")
HALF = _line(r"\bllama_kv_cache_unified_iswa: creating +(non-SWA|SWA) KV cache")
BUFFER = _line(r": +(\S+) KV buffer size = +<MIB>\s*$")
UNIFIED = _line(
    r"\bllama_kv_cache_unified: size = +<MIB> \( *<N> cells, +<N> layers, +<N>(?:/\d+)? seqs\),"
    r" K \((\w+)\): +<MIB>, V \((\w+)\): +<MIB>\s*$"
)
INIT = _line(
    r"\bllama_kv_cache_init: kv_size = <N>, offload = [01], type_k = '\w+', type_v = '\w+', n_layer = <N>,"
    r" can_shift = ([01])\s*$"
)
MEMORY_INIT = _line(
    r"\bllama_memory_recurrent: mem_size = <N>, n_seq_max = <N>, type_r = '\w+', type_s = '\w+', n_layer = <N>\s*$"
)
WIDTHS = _line(r"\bllama_kv_cache_init: layer <N>: n_embd_k_gqa = <N>, n_embd_v_gqa = <N>")
SELF_SIZE = _line(r": KV self size += +<MIB>, [KR] \((\w+)\): +<MIB>, [VS] \((\w+)\): +<MIB>\s*$")


@dataclass(frozen=True)
class MemoryLine:
    """What a log says about the memory of one cache.

    Attributes:
        line: number of the line with the sizes, from 1.
        kind: unified, legacy (or recurrent, which prints the same) or memory_recurrent.
        part: kv, or base and swa of a pair.
        cells, n_layer: of the cache; None where a log is cut off before it.
        n_seqs: sequences; None in January 2025.
        can_shift: None in mid-2025.
        mib, k_mib, v_mib: all, K (R of recurrent models) and V (S), in MiB with two decimals.
        type_k, type_v: element types.
        buffers: device and MiB of every buffer.
        widths: layer -> elements of a K and of a V row, where the log prints them.
    """

    line: int
    kind: str
    part: str
    cells: int | None
    n_layer: int | None
    n_seqs: int | None
    can_shift: bool | None
    mib: float
    type_k: str
    k_mib: float
    type_v: str
    v_mib: float
    buffers: tuple[tuple[str, float], ...]
    widths: Mapping[int, tuple[int, int]]


@dataclass
class SettingsReader:
    """Collects settings and memory lines, a line at a time.

    Attributes:
        values: of every setting the first one printed, as words.
        window_layers: whether each layer has a window; the output counts as the last one.
        memory: the caches.
    """

    values: dict[str, str] = field(default_factory=dict)
    window_layers: list[bool] = field(default_factory=list)
    memory: list[MemoryLine] = field(default_factory=list)
    _part: str = "kv"
    _buffers: list[tuple[str, float]] = field(default_factory=list)
    _widths: dict[int, tuple[int, int]] = field(default_factory=dict)
    _init: tuple[str, int, int, int | None, bool | None] | None = None

    def take(self, text: str, line: int) -> None:
        """Look at one line."""
        if window := WINDOW_LAYER.search(text):
            self.window_layers.append(window[1] == "1")
        elif tensors := N_TENSORS.search(text):
            self.values.setdefault("n_tensors", tensors[1])
        elif not (self._take_sizes(text, line) or self._take_shape(text)) and (setting := SETTING.search(text)):
            self.values.setdefault(setting[1], setting[2])

    def _take_shape(self, text: str) -> bool:
        """Lines before those with the sizes of a cache."""
        if half := HALF.search(text):
            self._part = "base" if half[1] == "non-SWA" else "swa"
        elif buffer := BUFFER.search(text):
            self._buffers.append((buffer[1], float(buffer[2])))
        elif init := INIT.search(text):
            self._init = ("legacy", int(init[1]), int(init[2]), None, init[3] == "1")
        elif memory := MEMORY_INIT.search(text):
            self._init = ("memory_recurrent", int(memory[1]), int(memory[3]), int(memory[2]), None)
        elif widths := WIDTHS.search(text):
            self._widths[int(widths[1])] = int(widths[2]), int(widths[3])
        else:
            return False
        return True

    def _take_sizes(self, text: str, line: int) -> bool:
        """The line with the sizes of a cache, which ends what is said about it."""
        if unified := UNIFIED.search(text):
            told = ("unified", int(unified[2]), int(unified[3]), int(unified[4]), None)
            self._finish(line, told, (unified[1], *unified.groups()[4:]))
        elif sizes := SELF_SIZE.search(text):
            kind = "memory_recurrent" if "llama_memory_recurrent" in text else "legacy"
            self._finish(line, self._init or (kind, None, None, None, None), sizes.groups())
        else:
            return False
        return True

    def _finish(
        self,
        line: int,
        told: tuple[str, int | None, int | None, int | None, bool | None],
        sizes: tuple[str, ...],
    ) -> None:
        kind, cells, n_layer, n_seqs, can_shift = told
        self.memory.append(
            MemoryLine(
                line=line,
                kind=kind,
                part=self._part,
                cells=cells,
                n_layer=n_layer,
                n_seqs=n_seqs,
                can_shift=can_shift,
                mib=float(sizes[0]),
                type_k=sizes[1],
                k_mib=float(sizes[2]),
                type_v=sizes[3],
                v_mib=float(sizes[4]),
                buffers=tuple(self._buffers),
                widths=dict(self._widths),
            )
        )
        self._part, self._buffers, self._widths, self._init = "kv", [], {}, None
