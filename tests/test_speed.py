"""Rows with ratios and verdicts, the file they are kept in, and the tables made of it."""

import json
import re

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import speed, stated
from benchmarks.rows import Row, short, turns

BESIDE = Row("search", (1.0, 2.0, 1.0), 2, "faiss", (3.0, 3.0, 2.5))
ALONE = Row("a sweep", (0.05, 0.06, 0.07), 0.06)


def test_a_ratio_is_the_median_over_the_runs_with_its_spread():
    assert BESIDE.ratios == [3.0, 1.5, 2.5]
    assert BESIDE.spread == "2.5 (1.5 to 3)"
    assert BESIDE.cells() == ("search", "1 s", "3 s, faiss", "2.5 (1.5 to 3)", "2 or more", "held")


@pytest.mark.parametrize(
    ("row", "met"),
    [
        (BESIDE, True),
        (Row("search", (1.0,), 2, "faiss", (1.9,)), False),
        (ALONE, True),
        (Row("a sweep", (0.07,), 0.06), False),
        (Row("a sweep", (0.07,)), None),
    ],
)
def test_verdicts_fall_both_ways(row, met):
    assert row.met is met
    assert row.verdict == {True: "held", False: "missed", None: ""}[met]


def test_amounts():
    assert ALONE.amount(ALONE.ours) == "60 ms"
    assert [short(x) for x in (0.012345, 12.345, 1234.5, 3.98e6)] == [
        "0.0123",
        "12.3",
        "1,230",
        "3.98e+06",
    ]


def test_sides_take_turns():
    calls = []
    taken = turns(lambda: calls.append("a"), lambda: calls.append("b"), runs=2)
    assert calls == ["a", "b"] * 3  # the first of each does not count
    assert [len(seconds) for seconds in taken] == [2, 2]


def test_results_are_kept_with_the_machine_and_read_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(speed, "measured", lambda form: iter([BESIDE, ALONE]))
    benchmarks.main(["speed", "--quick", "--results", str(tmp_path)])
    assert "0 of 2 aims missed" in capsys.readouterr().out
    (about, rows), *others = speed.read(tmp_path)
    assert not others
    assert rows == [BESIDE, ALONE]
    assert about["form"] == "quick"
    assert re.fullmatch(r"[0-9a-f]{12}( with changes)?|unknown commit", about["commit"])
    assert set(about["machine"]["libraries"]) == set(speed.LIBRARIES)
    assert all(rate > 0 for rate in about["rates"].values())
    (path,) = tmp_path.iterdir()
    assert path.stem.startswith(about["machine"]["architecture"])
    text = path.read_text()
    for private in (speed.platform.node(), str(speed.ROOT), str(speed.Path.home()) + "/"):
        assert f'"{private}' not in text
    assert json.loads(text)["rows"][0]["ours"] == [1.0, 2.0, 1.0]


def test_tables_made_of_results(monkeypatch):
    about = {"form": "full", "commit": "0" * 12, "rates": {"memory, GB/s": 9.5}}
    about["machine"] = {
        **{"architecture": "x86_64", "processor": "Some", "cores": 2, "load": 0.1},
        **{"python": "3.11", "libraries": {"numpy": "2"}, "blas": ["openblas 1"]},
    }
    records = [(about, [BESIDE])]
    page = stated.page(records)
    assert "| search | 1 s | 3 s, faiss | 2.5 (1.5 to 3) | 2 or more | held |" in page
    assert "One core, memory, GB/s: 9.5." in page
    text = f"before\n{stated.BEGIN}\nold\n{stated.END}\nafter\n"
    monkeypatch.setattr(stated, "IN_README", (ALONE.what,))
    made = stated.readme([(about, [BESIDE]), (about, [BESIDE, ALONE])], text)
    records = [(about, [BESIDE, ALONE])]
    assert "old" not in made
    assert "| a sweep | 60 ms |" in made
    assert "| search |" not in made
    assert made.startswith("before\n")
    assert made.endswith("after\n")
    assert stated.readme(records, made) == made
    assert stated.readme([], text) == text


def test_readme_and_documentation_state_what_is_stored():
    records = speed.read()
    assert stated.TABLE.read_text("utf-8") == stated.page(records)
    assert stated.FLOOR.read_text("utf-8") == stated.floor(records)
    text = stated.README.read_text("utf-8")
    assert stated.readme(records, text) == text
    assert all(about["form"] == "full" for about, _ in records)
