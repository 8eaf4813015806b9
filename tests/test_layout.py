"""Hygiene of the checkout: what no shipped file may hold, and what the README and CI must agree on."""

import ast
import re
from pathlib import Path

import pytest

from tests.sources import ROOT, parsed, python_files, shipped_files, shown

BINARY = {".bin", ".gguf", ".gz", ".npy", ".npz", ".png"}
TEXT_FILES = [path for path in shipped_files() if path.suffix not in BINARY]
CODE_FILES = python_files("kvmodel", "app", "tests")

# Character classes and pieces, so that this file does not hold the words it looks for.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:[w]ork|[t]mp|[r]oot|[h]ome|[U]sers)/")
OUTSIDE_PATH = re.compile(r"\.\./[s]hared")
REGISTRY = re.compile(r"[p]ypi\.org|[p]ythonhosted\.org|[r]egistry\.npmjs|[d]eb\.debian\.org")
UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X])\b")
FORBIDDEN_TEXT = {
    "a path of one machine": MACHINE_PATH,
    "a folder outside the checkout": OUTSIDE_PATH,
    "the host of a package registry": REGISTRY,
    "a mark of unfinished work": UNFINISHED,
}
FORBIDDEN_IMPORTS = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
PACED = {"app/views/stepper.py"}
"""Waits a moment between two pictures it sends; nothing depends on how long."""
COMMANDS = ("pip install -e '.[app]' && streamlit run app/main.py", "pip install -e '.[test]' && pytest")


def forbidden_text(text: str) -> list[str]:
    """What a text holds that no shipped file may hold."""
    return [f"{what}: {found.group()}" for what, pattern in FORBIDDEN_TEXT.items() for found in pattern.finditer(text)]


def forbidden_code(tree: ast.Module) -> list[str]:
    """Uses of what turns data into code, user text into HTML, or time into a condition."""
    return [f"line {node.lineno}: {what}" for node in ast.walk(tree) if (what := forbidden_node(node))]


def forbidden_node(node: ast.AST) -> str | None:
    match node:
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            modules = {alias.name.partition(".")[0] for alias in aliases} | {getattr(node, "module", None)}
            if modules & FORBIDDEN_IMPORTS:
                return "imports a serialiser that runs code"
            if "sleep" in modules:
                return "imports sleep"
        case ast.Call(func=ast.Name(id="eval" | "exec" | "__import__" as name)):
            return f"calls {name}"
        case ast.keyword(arg="unsafe_allow_html" | "unsafe_allow_javascript" | "allow_pickle" as name):
            return f"passes {name}"
        case ast.Attribute(value=ast.Name(id="time"), attr="sleep"):
            return "sleeps"
    return None


@pytest.mark.parametrize("path", TEXT_FILES, ids=shown)
def test_text_is_clean(path):
    assert forbidden_text(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", TEXT_FILES, ids=shown)
def test_text_ends_with_one_newline_and_has_unix_line_ends(path):
    data = path.read_bytes()
    assert data == b"" or (data.endswith(b"\n") and not data.endswith(b"\n\n"))
    assert b"\r" not in data


@pytest.mark.parametrize("path", CODE_FILES, ids=shown)
def test_code_is_safe(path):
    allowed = ["imports sleep"] if shown(path) in PACED else []
    assert [what.partition(": ")[2] for what in forbidden_code(parsed(path))] == allowed


def test_the_readme_gives_two_complete_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [command for command in COMMANDS if command not in readme] == []


def test_ci_runs_the_test_command_of_the_readme():
    lines = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    install, run = COMMANDS[1].split(" && ")
    assert install in lines
    assert any(line.split()[-1:] == [run] for line in lines[lines.index(install) + 1 :])


@pytest.mark.parametrize(
    "pieces",
    [
        ("see ", "/wo", "rk/main"),
        ("open('", "/tm", "p/a.bin')"),
        ("../sha", "red/seeds"),
        ("https://pyp", "i.org/simple"),
        ("# TO", "DO later"),
    ],
)
def test_forbidden_text_is_seen(pieces):
    assert len(forbidden_text("".join(pieces))) == 1


def test_plain_text_passes():
    assert forbidden_text("https://example.com/tmp/ and src/work/ and TODOS") == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import os, marshal",
        "eval('1')",
        "exec('a = 1')",
        "st.markdown(text, unsafe_allow_html=True)",
        "np.load(path, allow_pickle=True)",
        "time.sleep(1)",
        "from time import sleep",
    ],
)
def test_forbidden_code_is_seen(source):
    assert len(forbidden_code(ast.parse(source))) == 1


def test_plain_code_passes():
    assert forbidden_code(ast.parse("import json, time\nmodel.eval()\nst.markdown(text)\nnp.load(path)")) == []


def test_shipped_files_include_hidden_ones():
    assert {ROOT / ".ci/run", ROOT / ".gitignore", Path(__file__)} <= set(shipped_files())
