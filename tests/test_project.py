"""Files of a project beside its program: workflows, citation, changelog, templates, versions."""

import re
import tomllib
from pathlib import Path

import pytest

from auxhash.compute.version import __version__

yaml = pytest.importorskip("yaml")  # Dask brings it

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = set(re.findall(r"^([a-z][\w-]*):.*##", MAKEFILE, re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
# Of a user, not of a check: what makes numbers, and what is part of another target.
NOT_CHECKED = {"demo", "bench", "figures", "report", "coverage", "test-alone"}


def read(path):
    return yaml.safe_load(path.read_text("utf-8"))


def commands(workflow):
    """Yield what the steps of a workflow run, with the values of its matrix in their places."""
    for job in workflow["jobs"].values():
        targets = job.get("strategy", {}).get("matrix", {}).get("target", [""])
        for step in job["steps"]:
            if "run" in step:
                for target in targets:
                    yield step["run"].replace("${{ matrix.target }}", target)


def run_by_ci():
    text = (ROOT / ".ci/run").read_text("utf-8")
    [listed] = re.findall(r"^for target in (.*); do$", text, re.MULTILINE)
    return set(listed.split())


def test_workflows_call_targets_of_make_and_nothing_else():
    called = {command for path in WORKFLOWS for command in commands(read(path))}
    assert called
    for command in called:
        assert re.fullmatch(r"make [\w-]+", command), command
    assert {command.removeprefix("make ") for command in called} >= run_by_ci()
    assert {command.removeprefix("make ") for command in called} == TARGETS - NOT_CHECKED


def test_workflows_run_on_every_python_and_on_three_platforms():
    with (ROOT / "pyproject.toml").open("rb") as file:
        classifiers = tomllib.load(file)["project"]["classifiers"]
    known = [each.rpartition(" ")[2] for each in classifiers if re.search(r":: 3\.\d+$", each)]
    matrix = read(ROOT / ".github/workflows/test.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == known
    machines = {*matrix["machine"], *(each["machine"] for each in matrix["include"])}
    assert {name.partition("-")[0] for name in machines} == {"ubuntu", "macos"}
    assert any("arm" in name for name in machines)


def test_ci_runs_targets_that_are_there():
    assert run_by_ci() <= TARGETS
    assert {"test", "docs", "dist", "test-torch"} <= run_by_ci()


def test_contributing_has_a_line_for_every_target():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for target in TARGETS - {"demo"}:
        assert re.search(rf"make {target}\b", text), target


def test_the_version_is_the_same_everywhere():
    citation = read(ROOT / "CITATION.cff")
    assert citation["version"] == __version__
    assert {"cff-version", "message", "title", "authors", "license"} <= citation.keys()
    [paper] = citation["references"]
    assert paper["title"].lower() in (ROOT / "README.md").read_text("utf-8").lower()
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    dated = re.findall(r"^## \[(.*)\] - \d{4}-\d\d-\d\d$", changes, re.MULTILINE)
    assert dated[0] == __version__  # the newest comes first


def test_the_page_on_versions_says_what_is_supported():
    text = (ROOT / "docs/versions.md").read_text("utf-8")
    with (ROOT / "pyproject.toml").open("rb") as file:
        classifiers = tomllib.load(file)["project"]["classifiers"]
    minor = [each.rpartition(".")[2] for each in classifiers if re.search(r":: 3\.\d+$", each)]
    assert f"Python 3.{minor[0]} to 3.{minor[-1]} on Linux, x86_64 and aarch64" in text
    assert minor == [str(n) for n in range(int(minor[0]), int(minor[-1]) + 1)]
    assert "`FutureWarning`" in text.partition("## What goes, and how")[2]


def test_issue_templates_ask_something():
    templates = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
    forms = [read(path) for path in templates if path.stem != "config"]
    assert len(forms) == 3
    for form in forms:
        assert {"name", "description", "body"} <= form.keys()
        assert any(part.get("validations", {}).get("required") for part in form["body"])


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md"])
def test_paths_that_promises_name_are_there(name):
    text = (ROOT / name).read_text("utf-8")
    for path in re.findall(r"`(tests/[\w/]+\.py|tests/probes)`|\]\(([\w/.]+)\)", text):
        assert (ROOT / "".join(path)).exists(), path
