"""The values that a GGUF header gives an architecture, read with the checks of llama_model_loader's `get_key`."""

from collections.abc import Mapping
from typing import Any

from kvmodel.errors import ParamError, check_int
from kvmodel.limits import INT32_MAX, MAX_LAYERS


class Keys:
    """Values by key without the architecture's name in front, as in `attention.head_count`.

    Args:
        arch: llama.cpp's name of the architecture, for messages.
        values: numbers, truth values and one number for each layer; a text is what a file has in their place.
    """

    def __init__(self, arch: str, values: Mapping[str, Any]) -> None:
        self.arch = arch
        self._values = {key: value for key, value in values.items() if value is not None}

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def error(self, key: str, allowed: str) -> ParamError:
        """The error of a key whose value is not `allowed`; a long value is counted, not shown."""
        value = self._values.get(key, "missing")
        if isinstance(value, (tuple, list, dict)) or (isinstance(value, str) and len(value) > 64):
            value = f"{len(value)} entries"
        return ParamError(f"{self.arch}.{key}", value, allowed)

    def number(self, key: str, default: int | None = None, low: int = 0, high: int = INT32_MAX) -> int:
        """A whole number.

        Raises:
            ParamError: it is missing and there is no default, or it is no whole number from `low` to `high`.
        """
        if key not in self:
            if default is None:
                raise self.error(key, f"a whole number from {low} to {high}")
            return default
        return self._checked(key, self._values[key], low, high)

    def per_layer(self, key: str, n_layer: int, default: int | None = None, high: int = INT32_MAX) -> tuple[int, ...]:
        """One whole number for each layer, given as such or as one for all (`get_key_or_arr`).

        Raises:
            ParamError: it is missing and there is no default, or the entries are too few, too many or out of range.
        """
        if isinstance(self._values.get(key), str):
            raise self.error(key, f"one number for each of the {n_layer} layers, or one for all")
        if key not in self or not self.is_array(key):
            return (self.number(key, default, 0, high),) * n_layer
        entries = self._values[key]
        if len(entries) != n_layer:
            raise self.error(key, f"one number for each of the {n_layer} layers")
        return tuple(self._checked(key, entry, 0, high) for entry in entries)

    def flags(self, key: str, n_layer: int) -> tuple[bool, ...]:
        """One truth value for each layer, as booleans or as 0 and 1.

        Raises:
            ParamError: there is not one of them for each layer.
        """
        if key not in self or not self.is_array(key) or len(self._values[key]) != n_layer:
            raise self.error(key, f"one truth value for each of the {n_layer} layers")
        entries = self._values[key]
        if any(entry not in (0, 1) for entry in entries):
            raise self.error(key, "truth values")
        return tuple(bool(entry) for entry in entries)

    def is_number(self, key: str) -> bool:
        """Whether the value is one number."""
        value = self._values.get(key)
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    def positive(self, key: str) -> bool:
        """Whether a number is there and above zero.

        Raises:
            ParamError: there is something else.
        """
        if key in self and not self.is_number(key):
            raise self.error(key, "a number")
        return key in self and bool(self._values[key] > 0)

    def is_array(self, key: str) -> bool:
        """Whether the value has entries rather than being one number."""
        return isinstance(self._values.get(key), (tuple, list))

    def n_layer(self) -> int:
        """Layers of the model (`block_count`)."""
        return self.number("block_count", low=1, high=MAX_LAYERS)

    def _checked(self, key: str, value: Any, low: int, high: int) -> int:
        if isinstance(value, (str, tuple, list, dict)):
            raise self.error(key, f"a whole number from {low} to {high}")
        return check_int(f"{self.arch}.{key}", value, low, high)
