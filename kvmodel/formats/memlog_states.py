"""The recurrent layers and state sizes of a logged model, by the rules that its file's keys follow."""

from dataclasses import dataclass

from kvmodel.errors import ParamError
from kvmodel.hparams.keys import Keys
from kvmodel.hparams.states import BOTH, EVERY_FEW, has_states, recurrent_layers, state_sizes


@dataclass(frozen=True)
class States:
    """What a log tells of a model's recurrent layers.

    Attributes:
        heads: KV heads of each layer, 0 for those that keep a state in their place.
        layers: which layers keep a state.
        n_embd_r, n_embd_s: elements of the rolling and of the recurrent state of such a layer.
        missing: which key the log does not give, a clause; None if the sizes are known.
    """

    heads: tuple[int, ...]
    layers: tuple[bool, ...]
    n_embd_r: int = 0
    n_embd_s: int = 0
    missing: str | None = None

    def of_each(self, elements: int) -> tuple[int, ...]:
        """A size for each layer: `elements` where it keeps a state, else 0."""
        return tuple(elements if keeps else 0 for keeps in self.layers)


def states_of(keys: Keys, heads: tuple[int, ...]) -> States:
    """The recurrent layers of a model, and how large their states are as far as the log says.

    Args:
        keys: what the log says of the model's keys.
        heads: KV heads of each layer as printed.

    Raises:
        ParamError: a key has a value that is not allowed.
    """
    n_layer = len(heads)
    if has_states(keys.arch):
        layers = recurrent_layers(keys, n_layer, heads)
    else:  # an architecture that is not known here: layers without heads have a state if the log speaks of one
        layers = tuple(not count and "ssm.conv_kernel" in keys for count in heads)
    if not any(layers):
        return States(heads, layers)
    if keys.arch in EVERY_FEW:
        heads = tuple(0 if keeps else count for keeps, count in zip(layers, heads, strict=True))
    if keys.arch in BOTH and not all(heads):
        raise keys.error("attention.head_count_kv", "at least one head in each layer")
    try:
        return States(heads, layers, *state_sizes(keys))
    except ParamError as error:
        if error.value != "missing":
            raise
        return States(heads, layers, missing=f"{error}; it stands in the loader's list of keys, or name the model")
