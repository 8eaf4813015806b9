"""A scenario as a Python script: one call of the public API for every operation, then the cells as text.

A document is a stranger's text. Its words stand in comments, cleaned of whatever could end one; its values are written
by `ascii`, which gives literals only.
"""

import textwrap
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from typing import Any

from kvmodel.caches.iswa import IswaParams
from kvmodel.calls import WIDTH, call_lines
from kvmodel.configs import OLDER, IswaConfig
from kvmodel.markdown import one_line
from kvmodel.ops import AnyOp, Decode
from kvmodel.scenario import Scenario
from kvmodel.types import SWAType

CACHES = {
    "unified": "UnifiedCache",
    "iswa": "IswaCache",
    "legacy": "LegacyCache",
    "recurrent": "RecurrentCache",
    "memory_recurrent": "RecurrentMemory",
}
"""The class of each kind."""

HOMES = {
    "Batch": "kvmodel",
    "CacheParams": "kvmodel",
    "Context": "kvmodel",
    "ContextParams": "kvmodel",
    "KVModelError": "kvmodel",
    "SWAType": "kvmodel",
    "UnifiedCache": "kvmodel",
    "IswaCache": "kvmodel.caches.iswa",
    "IswaParams": "kvmodel.caches.iswa",
    "LegacyCache": "kvmodel.caches.legacy",
    "RecurrentMemory": "kvmodel.caches.memory_recurrent",
    "RecurrentCache": "kvmodel.caches.recurrent",
    "RecurrentParams": "kvmodel.caches.recurrent_params",
    "cell_lines": "kvmodel.cellruns",
    "LegacyContext": "kvmodel.context_legacy",
    "snapshot": "kvmodel.snapshot",
}
"""Where a script imports each name from, in the order of the modules."""

MOST_IN_A_LINE = 80
"""Characters of a record on one line; a longer one takes a line for each field."""

HEAD = '''"""A scenario of kvmodel, call by call.

Run it where kvmodel is installed: it prints the cells after the last call.
"""'''

TAIL = r"""except KVModelError as problem:
    print(problem)

for part in cache.parts:
    shown = snapshot(part)
    print(shown)
    print(*cell_lines(shown), sep="\n")
"""


def to_script(scenario: Scenario) -> str:
    """The source of a script that makes the calls of a scenario and prints the cells after the last one.

    A call that cannot be carried out ends it as it ends the timeline: its message is printed, then the cells as they
    are. A script keeps no timeline, so it knows no bound on the size of one.
    """
    about = [line for words in (scenario.title, scenario.description, scenario.source) for line in comment(words)]
    calls = [f"    {line}" for i, op in enumerate(scenario.ops) for line in _op_lines(i + 1, op)] or ["    pass"]
    made, names = _made(scenario)
    body = "\n".join([*made, "", "try:", *calls, TAIL])
    return "\n\n".join([HEAD, *filter(None, ["\n".join(about)]), "\n".join(_imports(names)), body])


def comment(words: str) -> list[str]:
    """Words as lines of a comment; none for no words."""
    return [f"# {line}" for line in textwrap.wrap(one_line(words), WIDTH)]


def _op_lines(step: int, op: AnyOp) -> list[str]:
    """The lines of one operation: its note and the words of its tokens as comments, then the call."""
    texts = [text for run in op.tokens for text in run.text or ()] if isinstance(op, Decode) else []
    words = textwrap.shorten(one_line("".join(texts)), WIDTH, placeholder=" ...")
    return [*comment(op.note and f"Step {step}: {op.note}"), *comment(words and f"Words: {words}"), *call_lines(op)]


def _made(scenario: Scenario) -> tuple[list[str], set[str]]:
    """The lines that make the cache and its context, and the names in the whole script."""
    config = scenario.cache
    context = scenario.context.params(config.kind)
    params = config.pair(context.n_ubatch) if isinstance(config, IswaConfig) else config.params
    cache, around = CACHES[config.kind], "LegacyContext" if config.kind in OLDER else "Context"
    model = params.model if isinstance(params, IswaParams) else params
    names = {"KVModelError", "cell_lines", "snapshot", cache, around}
    names |= {type(made).__name__ for made in (params, model, context)}
    names |= {"SWAType"} if model.swa_type is not SWAType.NONE else set()
    names |= {"Batch"} if any(isinstance(op, Decode) for op in scenario.ops) else set()
    return [f"cache = {cache}({_literal(params)})", f"context = {around}(cache, {_literal(context)})"], names


def _literal(value: Any) -> str:
    """A value as source; of a record only the fields that do not have their default."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if not hasattr(value, "__dataclass_fields__"):
        return ascii(value)
    given = ((field.name, getattr(value, field.name), field.default) for field in fields(value))
    told = [f"{name}={_literal(held)}" for name, held, default in given if held != default]
    line = f"{type(value).__name__}({', '.join(told)})"
    if len(line) <= MOST_IN_A_LINE:
        return line
    block = textwrap.indent(",\n".join(told), "    ")
    return f"{type(value).__name__}(\n{block},\n)"


def _imports(names: set[str]) -> Iterator[str]:
    """One line a module."""
    for home in dict.fromkeys(HOMES.values()):
        yield from [f"from {home} import {', '.join(own)}" for own in [_from(home, names)] if own]


def _from(home: str, names: set[str]) -> list[str]:
    return [name for name, at in HOMES.items() if at == home and name in names]
