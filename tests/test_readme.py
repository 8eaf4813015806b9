"""The README's Python runs as it stands, and the files that it names exist."""

import re
import subprocess
import sys

import pytest

from tests.sources import ROOT

README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
FILES = sorted(set(re.findall(r"`((?:tests|kvmodel|app|notebooks)/[\w./]*)`", README)))


@pytest.mark.parametrize("source", EXAMPLES)
def test_an_example_runs(source: str) -> None:
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("name", FILES)
def test_a_named_file_exists(name: str) -> None:
    assert (ROOT / name).exists()


def test_pictures_exist() -> None:
    pictures = re.findall(r"!\[[^]]*\]\(([^)]*)\)", README)
    assert pictures
    assert all((ROOT / picture).exists() for picture in pictures)
