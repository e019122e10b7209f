"""The record of a cell of the matrix, and the table in the documentation."""

import pytest

from benchmarks.records import RESULTS, TABLES, read
from tests.release import matrix

CELL = {
    "sources": "0123",
    "machine": "Linux x86_64",
    "python": "3.13.0",
    "dependencies": "lowest",
    "part": "face",
}
PACKAGES = {"numpy": "2.1.0", "click": "8.1.0"}


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        ("needs a GPU x 3\n12 passed, 3 skipped in 4.2s", (12, 0, 3, 0)),
        ("1 failed, 2 passed, 1 warning, 1 error in 3s", (2, 1, 0, 1)),
        ("2 errors in 1.00s", (0, 0, 0, 2)),
        ("make: *** [test] Error 2", (0, 0, 0, 0)),
    ],
)
def test_a_record_has_the_counts_of_pytest(output, counts):
    made = matrix.record(CELL, 1, output, PACKAGES, 2.6)
    assert tuple(made[key] for key in ("passed", "failed", "skipped", "errors")) == counts
    assert made["packages"] == {"numpy": "2.1.0"}
    assert made["seconds"] == 3


def test_the_table_has_the_last_record_of_each_cell():
    first = matrix.record(CELL, 1, "1 failed, 1 passed in 1s", PACKAGES, 1)
    last = matrix.record(CELL, 0, "2 passed in 1s", PACKAGES, 1)
    rows = matrix.table([first, last]).splitlines()
    assert len(rows) == 3
    assert "2 passed, 0 failed" in rows[2]
    assert "numpy 2.1.0" in rows[2]


def test_the_table_has_a_row_for_each_machine_and_says_which_cells_stopped():
    arm = matrix.record({**CELL, "machine": "Linux aarch64"}, 2, "Error 2", {}, 1)
    x86 = matrix.record(CELL, 0, "2 passed in 1s", PACKAGES, 1)
    rows = matrix.table([x86, arm]).splitlines()[2:]
    assert "aarch64" in rows[0]
    assert "0 failed, 0 skipped, stopped" in rows[0]
    assert "x86_64" in rows[1]
    assert "stopped" not in rows[1]


def test_a_part_has_no_row_where_all_tests_have_one():
    part = matrix.record(CELL, 0, "2 passed in 1s", PACKAGES, 1)
    every = matrix.record({**CELL, "python": "3.13.1", "part": "all"}, 1, "1 failed", PACKAGES, 1)
    other = matrix.record({**CELL, "python": "3.12.1"}, 0, "2 passed in 1s", PACKAGES, 1)
    rows = matrix.table([part, every, other]).splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| 3.12.1", "| 3.13.1"]


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Ask for a cell of Python 3.13.0 on a made machine; the cells that are run, which pass."""
    ran = []

    def run(python, cell):
        ran.append(cell)
        return matrix.record(cell, ask.status, "2 passed in 1s", PACKAGES, 1)

    def ask(*pythons, ci="", status=0, **changed):
        ran.clear()
        ask.status = status
        monkeypatch.setenv("CI", ci)
        for name, value in changed.items():
            monkeypatch.setattr(matrix, name, value)
        matrix.main(["--python", *pythons, "--dependencies", "lowest"])
        return len(ran)

    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho Python 3.13.0\n")
    python.chmod(0o755)
    monkeypatch.setattr(matrix, "FILE", tmp_path / "matrix.jsonl")
    monkeypatch.setattr(matrix, "write_tables", lambda texts: None)
    monkeypatch.setattr(matrix, "run", run)
    monkeypatch.setattr(matrix, "interpreter", {"3.13": str(python)}.get)
    return ask


def test_only_what_passed_here_with_these_sources_is_not_run_again(asked):
    with pytest.raises(SystemExit, match="some cells failed"):
        asked("3.13", status=1)
    assert asked("3.13") == 1
    assert asked("3.13") == 0
    assert asked("3.13", ci="true") == 1
    assert asked("3.13", MACHINE="Linux aarch64") == 1
    assert asked("3.13", sources=lambda: "others") == 1
    assert asked("3.13") == 0


def test_a_python_that_cannot_be_had_is_said_and_fails_in_ci(asked, capsys):
    assert asked("3.99", "3.13") == 1
    assert "Python 3.99: none on the PATH" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="could not be run"):
        asked("3.99", ci="true")


def test_sources_are_the_package_and_the_bounds(monkeypatch, tmp_path):
    monkeypatch.setattr(matrix, "ROOT", tmp_path)
    (tmp_path / "src/auxhash/__pycache__").mkdir(parents=True)
    bounds, module = tmp_path / "pyproject.toml", tmp_path / "src/auxhash/module.py"
    seen = set()
    for path in (bounds, module, tmp_path / "src/auxhash/kernel.cu", bounds, module):
        path.write_text(f"project.name = '{len(seen)}'")
        seen.add(matrix.sources())
    assert len(seen) == 5
    with bounds.open("a") as file:
        file.write("\ntool.ruff.line-length = 100")
    (tmp_path / "src/auxhash/__pycache__/module.pyc").write_text("compiled")
    assert matrix.sources() in seen


def test_the_documentation_shows_the_records():
    assert (TABLES / matrix.TABLE).read_text("utf-8") == matrix.table(read(matrix.FILE))
    assert matrix.FILE.parent == RESULTS
