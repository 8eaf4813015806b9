"""The arrows of the project: which module may import which, and what stays out of the model.

A module may import its own layer and every layer below it, never one above. An import counts wherever it stands,
inside a function too, and no chain of imports may close into a circle.
"""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.sources import ROOT, parsed, python_files, shown

LAYERS = (  # from the bottom up
    ("errors", "limits", "words", "ggml", "types", "quirks"),
    ("geometry",),
    ("hparams",),
    ("spans", "cells", "batch", "checks", "show", "markdown"),
    ("slots", "split", "split_legacy", "mask", "defrag", "tensors", "rope", "attention"),
    ("rotation", "kshift", "memory"),
    ("events", "events_recurrent"),
    ("caches",),
    ("context", "context_legacy", "decoder", "snapshot", "cellruns", "explain"),
    ("ops", "configs", "calls"),
    ("scenario", "scenarios", "library", "permalink"),
    ("generations",),
    ("formats",),
    ("models",),
    ("timeline", "player", "pending", "advice", "beats", "why", "compare", "script", "report"),
    ("tables",),
    ("figures",),
    ("__init__", "__main__"),
)
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}
LIBRARY_HOMES = {
    "plotly": {"figures"},
    "pandas": {"figures", "tables"},
    "streamlit": set(),
    "app": set(),
    "tests": set(),
}
SESSION_ONLY = {"session_state", "query_params"}
MAX_LINES = 300

MODEL_FILES = python_files("kvmodel")
APP_FILES = python_files("app")


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imports(module: str, tree: ast.Module) -> set[str]:
    """Dotted names that a module imports; of `from a import b` the name a.b."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*package, *filter(None, [node.module])])
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return found


def room(name: str) -> str:
    """The part of `kvmodel` that a dotted name belongs to; a name that is no room comes from the package itself."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in HEIGHT else "__init__"


def violations(module: str, tree: ast.Module) -> list[str]:
    """Every import of one module of `kvmodel` that goes the wrong way."""
    here = module.split(".")[1]
    if here not in HEIGHT:
        return [f"{module} has no place: add {here!r} to a layer of LAYERS in tests/test_architecture.py"]
    found = []
    for name in sorted(imports(module, tree)):
        top = name.partition(".")[0]
        if top == "kvmodel" and HEIGHT[room(name)] > HEIGHT[here]:
            found.append(f"{module} imports {name}, which stands above it")
        elif here not in LIBRARY_HOMES.get(top, {here}):
            homes = ", ".join(sorted(LIBRARY_HOMES[top])) or "no module"
            found.append(f"{module} imports {name}: of kvmodel, {top} is for {homes}")
    return found


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of one circle of imports, or none."""
    known = {module: {target_of(name, graph) for name in names} - {module, None} for module, names in graph.items()}
    try:
        TopologicalSorter(known).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def target_of(name: str, graph: dict[str, set[str]]) -> str | None:
    """The module of the graph that a dotted name comes from: kvmodel.a.b, or an attribute of it."""
    candidates = (name, f"{name}.__init__", name.rpartition(".")[0], f"{name.rpartition('.')[0]}.__init__")
    return next((candidate for candidate in candidates if candidate in graph), None)


def state_uses(tree: ast.Module) -> set[str]:
    """Names of Streamlit's per-user state that a module touches."""
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    return SESSION_ONLY & (attributes | names)


@pytest.mark.parametrize("path", MODEL_FILES, ids=shown)
def test_imports_go_down(path):
    assert violations(module_name(path), parsed(path)) == []


def test_each_module_has_one_place():
    assert len(HEIGHT) == sum(map(len, LAYERS))


def test_no_circle_of_imports():
    assert circle({module_name(path): imports(module_name(path), parsed(path)) for path in MODEL_FILES}) == []


@pytest.mark.parametrize("path", [*MODEL_FILES, *APP_FILES], ids=shown)
def test_a_file_is_one_small_room(path):
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= MAX_LINES


@pytest.mark.parametrize("path", APP_FILES, ids=shown)
def test_only_the_session_touches_state(path):
    assert path.name == "session.py" or state_uses(parsed(path)) == set()


def test_importing_the_model_loads_no_pictures_and_no_pages():
    code = "import sys, kvmodel; print(sorted({'plotly', 'streamlit'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("module", "source", "told"),
    [
        ("kvmodel.cells", "from kvmodel.slots import find_slot", "stands above"),
        ("kvmodel.cells", "def late():\n    from kvmodel import slots", "stands above"),
        ("kvmodel.cells", "from kvmodel import Timeline", "stands above"),
        ("kvmodel.cells", "import kvmodel.context as c", "stands above"),
        ("kvmodel.caches.unified", "from ..context import decode", "stands above"),
        ("kvmodel.scenario", "from kvmodel.formats.log import read", "stands above"),
        ("kvmodel.caches.iswa", "import pandas as pd", "pandas is for figures, tables"),
        ("kvmodel.tables", "from plotly import graph_objects", "plotly is for figures"),
        ("kvmodel.figures.cells", "import streamlit", "streamlit is for no module"),
        ("kvmodel.attic", "", "add 'attic' to a layer"),
    ],
)
def test_a_wrong_import_is_told(module, source, told):
    [message] = violations(module, ast.parse(source))
    assert told in message


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("kvmodel.caches.iswa", "from .base import Cache\nfrom kvmodel.caches.unified import A\nimport numpy"),
        ("kvmodel.formats.state", "from kvmodel import caches, scenario"),
        ("kvmodel.figures.cells", "import pandas, plotly.graph_objects\nfrom kvmodel.timeline import Timeline"),
        ("kvmodel.__init__", "from kvmodel.timeline import Timeline"),
    ],
)
def test_a_right_import_passes(module, source):
    assert violations(module, ast.parse(source)) == []


def test_a_circle_is_told():
    graph = {"kvmodel.a": {"kvmodel.b.name"}, "kvmodel.b": {"kvmodel.c"}, "kvmodel.c.__init__": {"kvmodel.a.name"}}
    assert set(circle(graph)) == set(graph)
    graph["kvmodel.c.__init__"] = {"numpy"}
    assert circle(graph) == []


@pytest.mark.parametrize("source", ["st.session_state['a'] = 1", "from streamlit import query_params"])
def test_state_is_seen(source):
    assert state_uses(ast.parse(source)) != set()
