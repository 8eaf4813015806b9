"""The rule of the whole run: in CI a skip is a failure, elsewhere it is a skip."""

from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py").read_text(encoding="utf-8")

SKIPS = """
import pytest

@pytest.mark.skip(reason="no browser here")
def test_marked():
    pass

def test_called():
    pytest.skip("no browser there")

@pytest.mark.xfail(reason="known", strict=True)
def test_expected_failure():
    assert False

def test_plain():
    pass
"""
SKIPPED_MODULE = "import pytest\npytest.skip('no module', allow_module_level=True)\n"


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Run pytest of its own on one file with this project's conftest."""
    pytester.makeconftest(CONFTEST)

    def run(source: str, ci: str) -> pytest.RunResult:
        monkeypatch.setenv("CI", ci)
        monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
        pytester.makepyfile(source)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider")

    return run


def test_ci_fails_on_skipped_tests_and_says_which(run):
    result = run(SKIPS, ci="true")
    result.assert_outcomes(passed=1, failed=1, errors=1, xfailed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    told = ["*test_marked: skipped, *no browser here*", "*test_called: skipped, *no browser there*"]
    result.stdout.fnmatch_lines_random(told)


def test_ci_fails_on_a_skipped_module(run):
    result = run(SKIPPED_MODULE, ci="true")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*skipped, which counts as a failure in CI (*no module*"])


def test_a_skip_elsewhere_is_a_skip(run):
    result = run(SKIPS, ci="")
    result.assert_outcomes(passed=1, skipped=2, xfailed=1)
    assert result.ret == pytest.ExitCode.OK
