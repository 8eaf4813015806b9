"""Fields of a start-up log, read as numbers, and the keys of a model's file that they stand for."""

import re
from collections.abc import Mapping
from typing import Any

from kvmodel.errors import ParamError
from kvmodel.formats.memlog_parts import LoggedContext
from kvmodel.hparams.keys import Keys

NUMBER = re.compile(r"\d{1,10}", re.ASCII)
LIST = re.compile(r"\[[\d, ]*\]", re.ASCII)

KEY_OF = {
    "n_layer": "block_count",
    "n_ctx_train": "context_length",
    "n_embd": "embedding_length",
    "n_ff": "feed_forward_length",
    "n_head": "attention.head_count",
    "n_head_kv": "attention.head_count_kv",
    "n_embd_head_k": "attention.key_length",
    "n_embd_head_v": "attention.value_length",
    "ssm_d_conv": "ssm.conv_kernel",
    "ssm_d_inner": "ssm.inner_size",
    "ssm_d_state": "ssm.state_size",
    "ssm_n_group": "ssm.group_count",
}
"""The keys that the fields of `llama_model::print_info` come from."""


def keys_of(context: LoggedContext) -> Keys:
    """What a log says of a model's keys: printed fields, and beside them the loader's list of the file's keys.

    Fields of states that are 0 are left out: versions that print them for every architecture mean that there are none.
    """
    arch = context.model.get("arch") or context.keys.get("general.architecture") or "llama"
    own = {key.removeprefix(f"{arch}."): value for key, value in context.keys.items() if key.startswith(f"{arch}.")}
    found = {key: _value(value) for key, value in own.items()}
    for name, key in KEY_OF.items():
        value = _value(context.model.get(name, ""))
        if value is not None and (value or not name.startswith("ssm_")):
            found[key] = value
    return Keys(arch, found)


def number(values: Mapping[str, str], name: str) -> int | None:
    """A whole number as printed, None if there is none."""
    found = NUMBER.fullmatch(values.get(name, ""))
    return int(found[0]) if found else None


def per_layer(values: Mapping[str, str], name: str, n_layer: int) -> tuple[int, ...]:
    """A value of each layer: printed once if it is the same for all, else as a list in brackets; 0 if not printed.

    Raises:
        ParamError: the list has not one entry for each layer.
    """
    found = [int(digits) for digits in NUMBER.findall(values.get(name, "0"))] or [0]
    if len(found) not in {1, n_layer}:
        raise ParamError(name, f"a list of {len(found)}", f"one entry for each of the {n_layer} layers")
    return tuple(found) if len(found) == n_layer else (found[0],) * n_layer


def _value(text: str) -> Any:
    """A number, or one for each layer; None for anything else."""
    if LIST.fullmatch(text):
        return tuple(int(digits) for digits in NUMBER.findall(text))
    return int(text) if NUMBER.fullmatch(text) else None
