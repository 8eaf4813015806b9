"""Recorded runs of llama.cpp: the calls with their results, and the debug log written meanwhile.

A run is two files. NAME.json holds the settings and the calls, each with its result and with the position range of
every sequence after it. NAME.log is what LLAMA_KV_CACHE_DEBUG=3 printed: before every slot search a summary, a map
of the owners, a map of the positions and the ranges of the sequences.
"""

import json
import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvmodel.ops import AnyOp, Clear, Decode, Defrag, SeqAdd, SeqCp, SeqDiv, SeqKeep, SeqRm, TokenRun, Update
from kvmodel.scenario import CacheConfig, ContextConfig, Scenario

FOLDER = Path(__file__).parent / "data" / "live"
Json = dict[str, Any]

WITHOUT_COUNTERPART = {"save_seq", "save_session"}
"""Calls that write a file and leave the cache as it is."""

EDITS: dict[str, tuple[type[AnyOp], tuple[str, ...]]] = {
    "seq_rm": (SeqRm, ("seq", "p0", "p1")),
    "seq_cp": (SeqCp, ("src", "dst", "p0", "p1")),
    "seq_keep": (SeqKeep, ("seq",)),
    "seq_add": (SeqAdd, ("seq", "p0", "p1", "shift")),
    "seq_div": (SeqDiv, ("seq", "p0", "p1", "d")),
    "clear": (Clear, ("data",)),
    "update": (Update, ()),
    "defrag": (Defrag, ()),
}
"""Calls with positional arguments: the operation, and the names of the arguments in order."""


class UnknownCall(ValueError):
    """A call of a run that no operation of a scenario stands for."""


@dataclass(frozen=True)
class Step:
    """One recorded call: its result, and first and last position of every sequence that has any."""

    call: Json
    result: int | bool | None
    ranges: dict[int, tuple[int, int]]


@dataclass(frozen=True)
class Run:
    """A run: version of llama-cpp-python, settings as they were asked for, the calls and the log."""

    name: str
    version: str
    config: Json
    steps: tuple[Step, ...]
    log: str

    @classmethod
    def load(cls, path: Path) -> "Run":
        """Read NAME.json and the NAME.log beside it."""
        document = json.loads(path.read_text())
        steps = tuple(
            Step(step["op"], step["result"], {int(seq): (low, high) for seq, (low, high) in step["ranges"].items()})
            for step in document["steps"]
        )
        log = path.with_suffix(".log").read_text()
        return cls(path.stem, document["llama_cpp_python"], document["config"], steps, log)

    @property
    def played(self) -> list[Step]:
        """The calls that an operation of the scenario stands for, in order."""
        return [step for step in self.steps if step.call["op"] not in WITHOUT_COUNTERPART]


def scenario_of(run: Run, title: str = "", description: str = "") -> Scenario:
    """A run as a scenario; calls that only write files are left out.

    Raises:
        UnknownCall: a call that is no operation of a scenario.
    """
    return Scenario(
        title=title or run.name,
        description=description,
        source=f"A recorded run of llama.cpp as in llama-cpp-python {run.version}: {run.name}",
        cache=cache_of(run),
        context=ContextConfig(n_batch=printed(run, "n_batch"), n_ubatch=printed(run, "n_ubatch")),
        ops=tuple(operation(step.call) for step in run.played),
    )


def cache_of(run: Run) -> CacheConfig:
    """The cache that a run made, with the sizes that its log prints."""
    flash_attn = bool(printed(run, "flash_attn"))
    return CacheConfig(
        kv_size=printed(run, "n_ctx"),
        n_seq_max=printed(run, "n_seq_max"),
        n_pad=256 if flash_attn else 32,
        n_layer=printed(run, "n_layer"),
        n_head_kv=printed(run, "n_head_kv"),
        n_embd_head_k=printed(run, "n_embd_head_k"),
        n_embd_head_v=printed(run, "n_embd_head_v"),
        type_k=run.config.get("type_k", "f16"),
        type_v=run.config.get("type_v", "f16"),
        v_trans=not flash_attn,
    )


def printed(run: Run, name: str) -> int:
    """A whole number that the log prints as `name = value`."""
    found = re.search(rf"^(?:llama_context|print_info): {name} += (\d+)$", run.log, re.MULTILINE)
    if not found:
        raise ValueError(f"{run.name}.log prints no {name}")
    return int(found[1])


def operation(call: Json) -> AnyOp:
    """One call as an operation.

    Raises:
        UnknownCall: there is none for it.
    """
    name = call["op"]
    if name == "decode":
        return Decode(tokens=token_runs(call["tokens"]))
    if name not in EDITS:
        known = ", ".join(["decode", *EDITS, *sorted(WITHOUT_COUNTERPART)])
        raise UnknownCall(f"op is {name!r}; allowed: {known}")
    operation_type, names = EDITS[name]
    return operation_type(**dict(zip(names, call.get("args", ()), strict=False)))


def token_runs(tokens: list[Any]) -> tuple[TokenRun, ...]:
    """Tokens [id, position, [owners]] as runs; the text of a token is its number in the vocabulary."""
    keyed = groupby(enumerate(tokens), lambda item: (item[1][1] - item[0], item[1][2]))
    runs = []
    for (_, owners), group in keyed:
        members = [token for _, token in group]
        text = tuple(str(token[0]) for token in members)
        runs.append(TokenRun(n=len(members), pos=members[0][1], seq=tuple(owners), text=text))
    return tuple(runs)


@dataclass(frozen=True, eq=False)
class CellMap:
    """The cache as the log shows it before a slot search.

    Attributes:
        n, used, head, size, n_swa: the summary line; `n` is the last used cell plus 1.
        owners: one symbol a cell: `.` empty, a digit for its only sequence, `M` for several.
        pos: int64 [size], positions, -1 for empty.
        ranges: first and last position of every sequence that has any.
    """

    n: int
    used: int
    head: int
    size: int
    n_swa: int
    owners: str
    pos: NDArray[np.int64]
    ranges: dict[int, tuple[int, int]]


SUMMARY = re.compile(
    r"^find_slot: n = +(\d+), used = +(\d+), head = +(\d+), size = +(\d+), n_swa = +(\d+)$", re.MULTILINE
)
RANGE = re.compile(r"^find_slot: min\[(\d+)\] = +(-?\d+), max\[\1\] = +(-?\d+)$", re.MULTILINE)


def cell_maps(log: str) -> list[CellMap]:
    """Every slot search of a log, in order. Sequences above 9 would make the map of owners ambiguous."""
    found = list(SUMMARY.finditer(log))
    ends = [match.start() for match in found[1:]] + [len(log)]
    return [_cell_map(match, log[match.end() : end]) for match, end in zip(found, ends, strict=True)]


def _cell_map(summary: re.Match[str], text: str) -> CellMap:
    n, used, head, size, n_swa = (int(part) for part in summary.groups())
    maps = text.partition("find_slot:")[0]
    owners, rest = _take(maps, size, 1)
    positions, _ = _take(rest, size, 5)
    words = [positions[i : i + 5].strip() for i in range(0, 5 * size, 5)]
    pos = np.array([-1 if word == "." else int(word) for word in words])
    ranges = {int(seq): (int(low), int(high)) for seq, low, high in RANGE.findall(text)}
    return CellMap(n, used, head, size, n_swa, owners, pos, ranges)


def _take(text: str, size: int, width: int) -> tuple[str, str]:
    """The next map of `size` cells, `width` characters each: its symbols, and the text behind it."""
    symbols, at = "", 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        symbols += line.rstrip("\n").removesuffix(" *")
        if len(symbols) >= size * width:
            break
    if len(symbols) != size * width:
        raise ValueError(f"a map of {size} cells has {len(symbols)} characters; allowed: {size * width}")
    return symbols, text[at:]
