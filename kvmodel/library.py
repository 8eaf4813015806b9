"""The scenarios that come with the package, by id."""

from functools import cache
from importlib.resources import files

from kvmodel.errors import ParamError
from kvmodel.scenario import Scenario

IDS = (
    "chat-context-shift",
    "parallel-prefix",
    "fragment-defrag",
    "sliding-window",
    "chunked-attention",
    "cache-full",
    "window-pair",
    "window-pair-no-slot",
    "older-partial-decode",
    "shared-states",
    "recorded-fragment-then-defrag",
    "recorded-self-extend",
    "recorded-refused-batches",
    "recorded-window-pair",
    "recorded-older-fragments",
    "recorded-states",
    "server-slots",
    "case-window-without-a-run",
    "case-defrag-in-passes",
    "case-one-large-hole",
    "case-really-full",
    "case-self-extend-fills-up",
    "case-shift-bookkeeping",
    "case-position-gap",
    "case-recurrent-removal",
    "case-remove-any-sequence",
    "case-position-twice",
    "case-reuse-moves",
    "case-other-cells",
)
"""Ids in the order in which a list shows them; each is a file in `kvmodel/scenarios`.

Those that begin with case- replay what was reported in public; `source` has the address.
"""


def shipped() -> dict[str, Scenario]:
    """Every shipped scenario by id, in the order of IDS."""
    return {scenario_id: load(scenario_id) for scenario_id in IDS}


@cache
def load(scenario_id: str) -> Scenario:
    """Read one shipped scenario.

    Raises:
        ParamError: there is none of that id.
    """
    if scenario_id not in IDS:
        raise ParamError("scenario", scenario_id, ", ".join(IDS))
    return Scenario.from_json((files("kvmodel") / "scenarios" / f"{scenario_id}.json").read_bytes())
