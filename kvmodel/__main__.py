"""The planner on the command line: `python -m kvmodel memory --gguf FILE --ctx 32768 --type-k q8_0`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kvmodel.errors import KVModelError, ParamError
from kvmodel.formats.memlog import reconcile
from kvmodel.geometry import Geometry
from kvmodel.ggml import KV_TYPES
from kvmodel.limits import MAX_CONFIG_BYTES, MAX_LOG_BYTES
from kvmodel.memory import (
    Rules,
    Settings,
    fit_report,
    largest_n_ctx,
    log_lines,
    parse_bytes,
    plan,
    report,
)
from kvmodel.models import find, from_config, from_gguf

FAILED = 2
"""Exit code of every error, the one of argparse."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. An error is one line on the error stream."""
    options = _parser().parse_args(argv)
    try:
        for line in _memory(options):
            print(line)
    except (KVModelError, OSError) as error:
        print(f"kvmodel: error: {error}", file=sys.stderr)
        return FAILED
    return 0


def _memory(options: argparse.Namespace) -> list[str]:
    geometry, settings = _geometry(options), _settings(options)
    if options.log is not None:
        return _reconciled(options, geometry)
    if geometry is None:
        raise ParamError("model", None, "one of --gguf, --config or --model, or a --log")
    planned = plan(geometry, settings)
    lines = [report(planned)]
    if options.budget is not None:
        lines += ["", fit_report(largest_n_ctx(geometry, settings, parse_bytes(options.budget)))]
    return lines + ["", *log_lines(planned)] * options.lines


def _reconciled(options: argparse.Namespace, geometry: Geometry | None) -> list[str]:
    lines: list[str] = []
    for found in reconcile(_bounded(options.log, MAX_LOG_BYTES), geometry):
        lines += found.missing
        lines += [f"line {check.line}, {check.name}: {check.told}" for check in found.checks]
    return lines


def _geometry(options: argparse.Namespace) -> Geometry | None:
    if options.gguf is not None:
        return from_gguf(options.gguf)
    if options.config is not None:
        return from_config(_bounded(options.config, MAX_CONFIG_BYTES))
    return find(options.model) if options.model is not None else None


def _bounded(path: Path, most: int) -> bytes:
    """A file that is read whole, if it is no larger than allowed."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ParamError(str(path), f"over {most:,} bytes", f"{most:,} bytes at most")
    return data


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        n_ctx=options.ctx,
        n_seq_max=options.slots,
        n_batch=options.batch,
        n_ubatch=options.ubatch,
        type_k=options.type_k,
        type_v=options.type_v,
        flash_attn=options.flash_attn,
        swa_full=options.swa_full,
        rules=Rules(options.rules),
        kv_unified=options.kv_unified,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m kvmodel", description="An exact model of llama.cpp's KV caches.")
    commands = parser.add_subparsers(required=True, metavar="command")
    memory = commands.add_parser("memory", help="how much memory the caches of a model take")
    model = memory.add_mutually_exclusive_group()
    model.add_argument("--gguf", type=Path, metavar="FILE", help="a GGUF file; only its header is read")
    model.add_argument("--config", type=Path, metavar="FILE", help="a config.json of Hugging Face")
    model.add_argument("--model", metavar="NAME", help="a well-known model")
    memory.add_argument("--log", type=Path, metavar="FILE", help="compute the memory lines of a start-up log again")
    _add_settings(memory)
    memory.add_argument("--budget", metavar="SIZE", help="name the longest context that fits, for instance in 8GiB")
    memory.add_argument("--lines", action="store_true", help="print llama.cpp's log lines as well")
    return parser


def _add_settings(parser: argparse.ArgumentParser) -> None:
    default = Settings()
    for name, value, told in (
        ("--ctx", default.n_ctx, "positions; 0 for the context length of the training"),
        ("--slots", default.n_seq_max, "sequences (n_seq_max)"),
        ("--batch", default.n_batch, "tokens of a batch"),
        ("--ubatch", default.n_ubatch, "tokens of a part of a batch"),
    ):
        parser.add_argument(name, type=int, default=value, metavar="N", help=f"{told} (default: {value})")
    for name in ("k", "v"):
        parser.add_argument(f"--type-{name}", choices=KV_TYPES, default="f16", help=f"element type of {name.upper()}")
    for flag, told in (
        ("--flash-attn", "turn flash attention on"),
        ("--swa-full", "give window layers as many cells as the others"),
        ("--kv-unified", "let all sequences share one stream (rules: streams)"),
    ):
        parser.add_argument(flag, action="store_true", help=told)
    rules = [rules.value for rules in Rules]
    parser.add_argument("--rules", choices=rules, default=default.rules.value, help="version whose rules count")


if __name__ == "__main__":
    sys.exit(main())
