"""The suite's own options: unexpected skips fail a run in CI, and the order may be shuffled."""

import re
from pathlib import Path

import pytest

from tests import runs

pytest_plugins = ["pytester"]

SKIPPING = """
    import pytest
    def test_passed(): pass
    @pytest.mark.parametrize("i", range(2))
    def test_gpu(i): pytest.skip("needs a GPU: none")
    def test_other(): pytest.importorskip("no_such_package")
"""
RELEASE = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("release/*.py"))
ONLY_GPU = SKIPPING.replace('pytest.importorskip("no_such_package")', "pass")


@pytest.fixture
def run(pytester, monkeypatch):
    def run(text, *options, ci="true"):
        monkeypatch.setenv("CI", ci)
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        pytester.makepyfile(**(text if isinstance(text, dict) else {"test_some": text}))
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *options, plugins=[runs])

    return run


def test_an_unexpected_skip_fails_in_ci(run):
    result = run(SKIPPING, "--may-skip=gpu,torch")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "3 skipped: needs a GPU: none x 2, could not import 'no_such_package':* x 1",
            "skipped unexpectedly, which fails the run: could not import 'no_such_package':*",
        ]
    )


def test_an_expected_skip_does_not(run):
    assert run(ONLY_GPU, "--may-skip=gpu").ret == pytest.ExitCode.OK
    assert run(ONLY_GPU, "--may-skip=torch").ret == pytest.ExitCode.TESTS_FAILED
    assert run(ONLY_GPU).ret == pytest.ExitCode.TESTS_FAILED


def test_a_workflow_adds_the_reasons_of_its_machines(run, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "--may-skip=torch,gpu")
    assert run(ONLY_GPU, "--may-skip=data").ret == pytest.ExitCode.OK


@pytest.mark.parametrize("reason", sorted(re.findall(r"skip\(\"(needs.*?)\"", RELEASE)))
def test_what_a_container_needs_is_not_skipped_unless_that_is_allowed(run, reason):
    text = ONLY_GPU.replace("needs a GPU: none", reason)
    assert run(text).ret == pytest.ExitCode.TESTS_FAILED
    assert run(text, "--may-skip=namespaces").ret == pytest.ExitCode.OK


def test_elsewhere_skips_are_only_counted(run):
    result = run(SKIPPING, ci="")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["3 skipped: needs a GPU: none x 2, *"])
    result.stdout.no_fnmatch_line("*unexpectedly*")


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "1")])
def test_a_file_that_is_skipped_counts(run, options):
    text = 'import pytest\npytest.importorskip("no_such_package")\ndef test_a(): pass'
    kept = "def test_b(): pass"
    result = run({"test_a": text, "test_b": kept}, *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["1 skipped: could not import 'no_such_package':* x 1"])


def test_a_misspelt_reason_is_refused(run):
    assert run(SKIPPING, "--may-skip=gpus").ret == pytest.ExitCode.USAGE_ERROR


def passed(result):
    return [line.split()[0] for line in result.outlines if "PASSED" in line]


def test_what_trains_comes_first_and_then_search(run):
    rooms = ("cli", "learn", "mac", "search")
    texts = {f"tests/{room}/test_{room}": "def test(): pass" for room in rooms}
    result = [name.split("/")[1] for name in passed(run(texts, "-v"))]
    assert result == ["learn", "mac", "search", "cli"]


def test_shuffled(run):
    text = "import pytest\n@pytest.mark.parametrize('i', range(9))\ndef test(i): pass"

    def order(*options):
        return passed(run(text, "-v", *options))

    plain = order()
    assert order("--shuffle", "1") == order("--shuffle", "1")
    assert order("--shuffle", "1") != plain
    assert order("--shuffle", "1") != order("--shuffle", "2")
    assert sorted(order("--shuffle", "1")) == plain
