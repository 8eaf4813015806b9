"""The files that the project ships, and the Python ones parsed."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("kvmodel", "app", "tests", "notebooks", ".ci", ".streamlit")
GENERATED = {"__pycache__", ".ipynb_checkpoints"}


def shipped_files() -> Iterator[Path]:
    """Every file of a checkout, without what tools leave behind."""
    for pattern in ("*.md", "*.toml", "LICENSE", ".gitignore"):
        yield from sorted(ROOT.glob(pattern))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and not GENERATED.intersection(path.parts):
                yield path


def python_files(*folders: str) -> list[Path]:
    """The Python files below the named folders of the checkout."""
    return [path for path in shipped_files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders]


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of one file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def shown(path: Path) -> str:
    """The path as a message names it: from the root of the checkout."""
    return path.relative_to(ROOT).as_posix()
