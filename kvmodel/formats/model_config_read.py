"""Looking fields of a config.json up, under any of their names, with an error that says which ones were tried."""

from collections.abc import Mapping
from typing import Any

from kvmodel.errors import ParamError, check_int
from kvmodel.formats.model_config_names import FIELDS
from kvmodel.limits import INT32_MAX, MAX_LAYERS


class Config:
    """The fields of a language model; a field that is null counts as not there.

    Attributes:
        arch: llama.cpp's name of the architecture, once it is known.
        n_layer: layers of the model, once they are known.
        notes: where llama.cpp does otherwise than the file says; readers of parts add to it.

    Args:
        fields: the parsed JSON object.
        arch: see above.
        n_layer: see above.
    """

    def __init__(self, fields: Mapping[str, Any], arch: str = "", n_layer: int = 0) -> None:
        self._fields = fields
        self.arch, self.n_layer = arch, n_layer
        self.notes: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        """A field as it stands in the file."""
        value = self._fields.get(name)
        return default if value is None else value

    def error(self, name: str, allowed: str) -> ParamError:
        """The error of a field whose value is not `allowed`; a long value is counted, not shown."""
        value = self._fields.get(name, "missing")
        if isinstance(value, (list, dict)) or (isinstance(value, str) and len(value) > 64):
            value = f"{len(value)} entries"
        return ParamError(name, value, allowed)

    def found(self, key: str) -> tuple[str, Any]:
        """Name and value of the field that holds one of llama.cpp's keys.

        Raises:
            ParamError: the file has it under none of its names.
        """
        for name in FIELDS[key]:
            if self.get(name) is not None:
                return name, self.get(name)
        raise ParamError(FIELDS[key][0], "missing", "a number under one of the names " + ", ".join(FIELDS[key]))

    def key(self, key: str, default: int | None = None, high: int = INT32_MAX) -> int:
        """The whole number of one of llama.cpp's keys.

        Raises:
            ParamError: it is missing and there is no default, or it is no whole number from 0 to `high`.
        """
        if default is not None and not any(self.get(name) is not None for name in FIELDS[key]):
            return default
        name, value = self.found(key)
        return self._whole(name, value, 0, high)

    def number(self, name: str, default: int | None = None, low: int = 0, high: int = INT32_MAX) -> int:
        """A whole number by the field's own name.

        Raises:
            ParamError: it is missing and there is no default, or it is no whole number from `low` to `high`.
        """
        value = self.get(name, default)
        if value is None:
            raise self.error(name, f"a whole number from {low} to {high}")
        return self._whole(name, value, low, high)

    def words(self, name: str) -> list[str] | None:
        """One word for each layer, such as `layer_types`; None if the file has no such field.

        Raises:
            ParamError: there is not one word for each layer.
        """
        value = self.get(name)
        if value is None:
            return None
        if (
            not isinstance(value, list)
            or len(value) != self.n_layer
            or not all(isinstance(entry, str) for entry in value)
        ):
            raise self.error(name, f"one word for each of the {self.n_layer} layers")
        return value

    def layers(self, name: str) -> list[int] | None:
        """Numbers of layers, such as `full_attn_idxs`; None if the file has no such field.

        Raises:
            ParamError: one of them is no layer of the model.
        """
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) > MAX_LAYERS:
            raise self.error(name, "a list of layers")
        return [check_int(name, entry, 0, self.n_layer - 1) for entry in value]

    def _whole(self, name: str, value: Any, low: int, high: int) -> int:
        if isinstance(value, (str, list, dict)):
            raise self.error(name, f"a whole number from {low} to {high}")
        return check_int(name, value, low, high)
