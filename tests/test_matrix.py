"""The record of a cell of the matrix, and the table in the documentation."""

import pytest

from benchmarks.records import RESULTS, TABLES, read
from tests.release import matrix

CELL = ("3.13.0", "lowest", "core")
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


def test_the_documentation_shows_the_records():
    assert (TABLES / matrix.TABLE).read_text("utf-8") == matrix.table(read(matrix.FILE))
    assert matrix.FILE.parent == RESULTS
