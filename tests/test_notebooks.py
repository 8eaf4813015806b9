"""Every notebook runs without an error or a warning, is committed as it runs, and stays small."""

import copy
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tests.sources import ROOT, shown

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_BYTES = 300_000
STRICT = "import warnings\nwarnings.simplefilter('error')"
LENIENT = "warnings.simplefilter('default')"
"""For the kernel's own shutdown, which is not the notebook's business."""


def texts(notebook: Any) -> list[tuple[str, str]]:
    """(cell, text) of all that a cell prints and shows as text; how a kernel cuts what is printed does not count."""
    found = []
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        said = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
        found.append((cell.id, "".join(said)))
    return found


def run(notebook: Any, folder: Path) -> Any:
    """A copy that was executed with warnings as errors, without the cells that switch them."""
    strict = copy.deepcopy(notebook)
    strict.cells = [nbformat.v4.new_code_cell(STRICT), *strict.cells, nbformat.v4.new_code_cell(LENIENT)]
    place = {"metadata": {"path": str(folder)}}
    client = NotebookClient(strict, kernel_name="python3", timeout=300, coalesce_streams=True, resources=place)
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    strict.cells = strict.cells[1:-1]
    return strict


def test_there_is_a_quickstart() -> None:
    assert "quickstart.ipynb" in {path.name for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=shown)
def test_a_notebook_runs_and_is_committed_as_it_runs(path: Path) -> None:
    committed = nbformat.read(path, as_version=4)
    assert texts(run(committed, path.parent)) == texts(committed)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=shown)
def test_a_notebook_is_whole_and_small(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.stat().st_size <= MOST_BYTES
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
    kinds = {output.output_type for cell in code for output in cell.outputs}
    assert kinds <= {"display_data", "execute_result", "stream"}
    assert "<script" not in path.read_text(encoding="utf-8")


def test_a_warning_fails_a_notebook(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import warnings\nwarnings.warn('odd')")])
    with pytest.raises(CellExecutionError) as told:
        run(notebook, tmp_path)
    assert (told.value.ename, told.value.evalue) == ("UserWarning", "odd")
