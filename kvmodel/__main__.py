"""The planner on the command line: `python -m kvmodel memory --gguf FILE --ctx 32768 --type-k q8_0`."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kvmodel.errors import KVModelError, ParamError
from kvmodel.formats.memlog import reconcile
from kvmodel.geometry import Geometry
from kvmodel.ggml import KV_TYPES
from kvmodel.limits import MAX_CONFIG_BYTES, MAX_LOG_BYTES
from kvmodel.markdown import one_line
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
from kvmodel.words import joined

FAILED = 2
"""Exit code of every error, the one of argparse."""

ABOUT = """\
Size the caches of a model to the byte, or compute the memory lines of a start-up log again.

Name the model by one of --gguf, --config and --model, and say what the context is asked for. With --log, the model and
the context are those that the log describes; --gguf, --config or --model beside it names the model that the log is held
against, and no other option is allowed."""

EXAMPLES = """\
examples:
  python -m kvmodel memory --model "Gemma 3 12B" --ctx 32768 --slots 4 --type-k q8_0 --budget 8GiB
  python -m kvmodel memory --gguf model.gguf --ctx 0 --flash-attn --lines
  python -m kvmodel memory --log server.log --gguf model.gguf

exit codes: 0, or 2 if an option, a file or a value is not allowed"""

NUMBERS = {
    "--ctx": ("n_ctx", "positions; 0 for the context length of the training"),
    "--slots": ("n_seq_max", "sequences (n_seq_max)"),
    "--batch": ("n_batch", "tokens of a batch"),
    "--ubatch": ("n_ubatch", "tokens of a part of a batch, never more than of a batch"),
}
SWITCHES = {
    "--flash-attn": ("flash_attn", "turn flash attention on"),
    "--swa-full": ("swa_full", "give window layers as many cells as the others"),
    "--kv-unified": ("kv_unified", "let all sequences share one stream (rules: streams)"),
    "--lines": ("lines", "print llama.cpp's log lines as well"),
}
CHOICES = {
    "--type-k": ("type_k", KV_TYPES, "element type of K"),
    "--type-v": ("type_v", KV_TYPES, "element type of V"),
    "--rules": ("rules", [rules.value for rules in Rules], "version whose rules count"),
}
FLAGS = {flag: told[0] for flag, told in (NUMBERS | SWITCHES | CHOICES).items()} | {"--budget": "budget"}
"""Every option that describes a context or asks about it, with the name of what it gives."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. An error is one line on the error stream.

    A reader who has seen enough, as `head` has after ten lines, is no error.
    """
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered would fail again when Python ends, so it goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(argv: Sequence[str] | None) -> int:
    given = vars(_parser().parse_args(argv))
    try:
        told = "\n".join(_reconciled(given) if "log" in given else _planned(given))
    except (KVModelError, OSError) as error:
        print(f"kvmodel: error: {one_line(str(error))}", file=sys.stderr)
        return FAILED
    print(told)
    return 0


def _planned(given: dict[str, Any]) -> Iterator[str]:
    """The plan, what a budget allows, and llama.cpp's lines."""
    settings = Settings(**{name: value for name, value in given.items() if name in Settings.__match_args__})
    geometry = _geometry(given)
    if geometry is None:
        raise ParamError("model", None, "one of --gguf, --config or --model, or a --log")
    planned = plan(geometry, settings)
    yield report(planned)
    if "budget" in given:
        yield "\n" + fit_report(largest_n_ctx(geometry, settings, parse_bytes(given["budget"])))
    if "lines" in given:
        yield "\n" + "\n".join(log_lines(planned))


def _reconciled(given: dict[str, Any]) -> Iterator[str]:
    """Every printed size of a log against the computed one."""
    others = [flag for flag, name in FLAGS.items() if name in given]
    if others:
        raise ParamError("options beside --log", joined(others), "--gguf, --config or --model to name its model")
    for found in reconcile(_bounded(given["log"], MAX_LOG_BYTES), _geometry(given)):
        yield from found.missing
        yield from (f"line {check.line}, {check.name}: {check.told}" for check in found.checks)


def _geometry(given: dict[str, Any]) -> Geometry | None:
    if "gguf" in given:
        return from_gguf(given["gguf"])
    if "config" in given:
        return from_config(_bounded(given["config"], MAX_CONFIG_BYTES))
    return find(given["model"]) if "model" in given else None


def _bounded(path: Path, most: int) -> bytes:
    """A file that is read whole, if it is no larger than allowed."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ParamError(str(path), f"over {most:,} bytes", f"{most:,} bytes at most")
    return data


def _parser() -> argparse.ArgumentParser:
    """What is not given is not there afterwards, so that a log can refuse what it has no use for."""
    parser = argparse.ArgumentParser("python -m kvmodel", description="An exact model of llama.cpp's KV caches.")
    commands = parser.add_subparsers(required=True, metavar="command")
    memory = commands.add_parser(
        "memory",
        help="how much memory the caches of a model take",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    model = memory.add_mutually_exclusive_group()
    model.add_argument("--gguf", type=Path, metavar="FILE", help="a GGUF file; only its header is read")
    model.add_argument("--config", type=Path, metavar="FILE", help="a config.json of Hugging Face")
    model.add_argument("--model", metavar="NAME", help="a well-known model")
    memory.add_argument("--log", type=Path, metavar="FILE", help="compute the memory lines of a start-up log again")
    _add_context(memory)
    memory.add_argument(
        "--budget", metavar="SIZE", help="name the longest context that fits, for instance in 8GiB, and whether the "
        "model was trained for one as long",
    )  # fmt: skip
    return parser


def _add_context(parser: argparse.ArgumentParser) -> None:
    usual = Settings()
    for flag, (name, told) in NUMBERS.items():
        words = f"{told} (default: {getattr(usual, name)})"
        parser.add_argument(flag, dest=name, type=int, metavar="N", help=words)
    for flag, (name, allowed, told) in CHOICES.items():
        words = f"{told} (default: {getattr(usual, name)})"
        parser.add_argument(flag, dest=name, choices=allowed, help=words)
    for flag, (name, told) in SWITCHES.items():
        parser.add_argument(flag, dest=name, action="store_true", help=told)


if __name__ == "__main__":
    sys.exit(main())
