"""A term by which a printed size can differ from a computed one, as a change to what was assumed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kvmodel.geometry import Geometry
from kvmodel.memory import Settings


@dataclass(frozen=True)
class Assumed:
    """What a size is computed from."""

    geometry: Geometry
    settings: Settings


@dataclass(frozen=True)
class Term:
    """One thing that is not as assumed.

    Attributes:
        name: types, padding, n_ctx, slots, earlier states, n_ubatch, flash attention, streams, swa_full, window,
            shared layers, layers without KV, latent attention, model or version.
        told: what the log has and what was assumed, a sentence.
    """

    name: str
    told: str


@dataclass(frozen=True)
class Change:
    """A term and the fields it sets; several changes can be made together.

    Attributes:
        term: what is said of it.
        settings, geometry: fields and their new values.
        cells: cells that the cache then has, where no setting leads to them.
    """

    term: Term
    settings: Mapping[str, Any] = field(default_factory=dict)
    geometry: Mapping[str, Any] = field(default_factory=dict)
    cells: int | None = None

    def made(self, assumed: Assumed) -> Assumed:
        """What was assumed, with this change.

        Raises:
            ParamError: the changed fields do not go together with the others.
        """
        return Assumed(replace(assumed.geometry, **self.geometry), replace(assumed.settings, **self.settings))
