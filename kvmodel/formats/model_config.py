"""A Hugging Face config.json, told in the keys that llama.cpp's converter writes for the same model.

Only the text is read: no class is loaded and nothing in it is executed. What llama.cpp does with a model decides, so a
window that its converter does not carry over is not carried over here; a note says so.
"""

import json
from dataclasses import dataclass
from typing import Any

from kvmodel.errors import ParamError, check_int
from kvmodel.formats.model_config_names import ARCHS, DEFAULTS, NESTED
from kvmodel.formats.model_config_parts import attention, extras, latent, windows
from kvmodel.formats.model_config_read import Config
from kvmodel.formats.model_config_states import states
from kvmodel.limits import MAX_CONFIG_BYTES, MAX_LAYERS

DEEPEST = 2
"""Levels that the language model's fields may be nested: thinker_config holds a text_config."""

WINDOW_WORDS = ("sliding_attention", "chunked_attention")


@dataclass(frozen=True)
class ConfigKeys:
    """A config.json in llama.cpp's words.

    Attributes:
        arch: llama.cpp's name of the architecture.
        keys: its keys without the architecture's name in front.
        name: what the file calls the model, empty if it does not.
        windowed: which layers have a window by the file's own account, None if it gives none.
        notes: where llama.cpp does otherwise than the file says.
    """

    arch: str
    keys: dict[str, Any]
    name: str
    windowed: tuple[bool, ...] | None
    notes: tuple[str, ...]


def read_config(text: str | bytes) -> ConfigKeys:
    """Read a config.json.

    Args:
        text: the file's text, at most MAX_CONFIG_BYTES.

    Raises:
        ParamError: it is too long, no JSON object, of a model type that is not known here, or a field is missing or
            has a value that is not allowed.
    """
    outer = _parse(text)
    given = {name: value for name, value in (outer | _language_part(outer)).items() if value is not None}
    arch = _arch(Config(given))
    fields = DEFAULTS.get(arch, {}) | given
    config = Config(fields, arch, check_int(*Config(fields).found("block_count"), 1, MAX_LAYERS))
    keys: dict[str, Any] = {"block_count": config.n_layer}
    for part in (attention, latent, states, windows, extras):
        keys |= part(config)
    name, words = outer.get("_name_or_path"), config.words("layer_types")
    windowed = None if words is None else tuple(word in WINDOW_WORDS for word in words)
    return ConfigKeys(config.arch, keys, name if isinstance(name, str) else "", windowed, tuple(config.notes))


def _arch(config: Config) -> str:
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or model_type.lower() not in ARCHS:
        raise config.error("model_type", "one that is known here: " + ", ".join(sorted(ARCHS)))
    arch = ARCHS[model_type.lower()]
    words = config.get("layer_types")
    if arch == "granitehybrid" and isinstance(words, list) and "mamba" not in words:
        return "granitemoe" if config.get("num_local_experts") else "granite"
    return arch


def _parse(text: str | bytes) -> dict[str, Any]:
    raw = text.encode(errors="surrogatepass") if isinstance(text, str) else bytes(text)
    if len(raw) > MAX_CONFIG_BYTES:
        raise ParamError("config", f"{len(raw):,} bytes", f"at most {MAX_CONFIG_BYTES:,} bytes")
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        where = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""
        raise ParamError("config", "no JSON" + where, "the text of a config.json") from error
    if not isinstance(found, dict):
        raise ParamError("config", type(found).__name__, "a JSON object with fields such as model_type")
    return found


def _language_part(outer: dict[str, Any]) -> dict[str, Any]:
    """The language model's own fields in the file of a model of several kinds of input, empty in any other."""
    fields: dict[str, Any] = {}
    inner = outer
    for _ in range(DEEPEST):
        parts = [inner[name] for name in NESTED if isinstance(inner.get(name), dict)]
        inner = parts[0] if parts else {}
        fields |= inner
    return fields
