"""Recorded runs of llama.cpp of both generations: the calls with their results, and what was seen after each.

A run is two files. NAME.json holds the settings and the calls, each with its result; mid-2025 also the position range
of every sequence after it, January 2025 the cache view. NAME.log is the log written meanwhile, see `live_log.py`.
"""

import json
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from kvmodel.configs import AnyCacheConfig, CacheConfig, ContextConfig, IswaConfig, LegacyConfig, RecurrentConfig
from kvmodel.ops import AnyOp, Clear, Decode, Defrag, SeqAdd, SeqCp, SeqDiv, SeqKeep, SeqRm, TokenRun, Update
from kvmodel.scenario import Scenario
from tests.live_log import printed, window_layers

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
    """One recorded call: its result, and what was seen after it.

    Attributes:
        ranges: first and last position of every sequence that has any; None before mid-2025.
        view: the cache view, with position and owners of every cell; None in mid-2025.
    """

    call: Json
    result: int | bool | None
    ranges: dict[int, tuple[int, int]] | None
    view: Json | None


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
            Step(step["op"], step["result"], _ranges(step["ranges"]), step.get("view")) for step in document["steps"]
        )
        log = path.with_suffix(".log").read_text()
        return cls(path.stem, document["llama_cpp_python"], document["config"], steps, log)

    @property
    def played(self) -> list[Step]:
        """The calls that an operation of the scenario stands for, in order."""
        return [step for step in self.steps if step.call["op"] not in WITHOUT_COUNTERPART]

    def printed(self, name: str) -> int:
        """A whole number that the log prints as `name = value`."""
        return printed(self.log, name)


def _ranges(recorded: Json | None) -> dict[int, tuple[int, int]] | None:
    return None if recorded is None else {int(seq): (low, high) for seq, (low, high) in recorded.items()}


def runs(version: str) -> dict[str, Run]:
    """All runs of one version by name."""
    return {path.stem: Run.load(path) for path in sorted((FOLDER / version).glob("*.json"))}


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
        context=ContextConfig(n_batch=run.printed("n_batch"), n_ubatch=run.printed("n_ubatch")),
        ops=tuple(operation(step.call) for step in run.played),
    )


def cache_of(run: Run) -> AnyCacheConfig:
    """The cache that a run made, with the sizes that its log prints."""
    if run.printed("ssm_d_inner"):
        names = ("ssm_d_conv", "ssm_d_inner", "ssm_d_state", "n_seq_max", "kv_size")
        sizes = {name: run.printed(name) for name in names}
        return RecurrentConfig(kind="recurrent", arch="mamba", n_layer=run.printed("n_layer"), **sizes)
    names = ("n_seq_max", "n_layer", "n_head_kv", "n_embd_head_k", "n_embd_head_v")
    sizes = {name: run.printed(name) for name in names}
    types = {name: run.config.get(name, "f16") for name in ("type_k", "type_v")}
    flash_attn = bool(run.printed("flash_attn"))
    if run.version == "0.3.7":
        return LegacyConfig(kind="legacy", kv_size=run.printed("kv_size"), flash_attn=flash_attn, **sizes, **types)
    shape = {"kv_size": run.printed("n_ctx"), "n_pad": 256 if flash_attn else 32, "v_trans": not flash_attn}
    layers = window_layers(run.log)
    if any(layers):
        window = {"n_swa": run.printed("n_swa"), "swa_layers": layers}
        return IswaConfig(kind="iswa", arch="gemma3", **sizes, **types, **shape, **window)
    return CacheConfig(**sizes, **types, **shape)


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
