"""compare and bench; the examples run demo."""

import numpy as np


def test_compare_own_data(here, run):
    arguments = ("compare", "features.npy", "labels.npy", "-m", "ITQ", "-m", "LSH", "--bits", "8")
    told = run(*arguments, "--bits", "4", "-k", "5", "--jobs", "1", "--json")
    assert [(row["method"], row["bits"]) for row in told["rows"]] == [
        ("ITQ", 8),
        ("LSH", 8),
        ("ITQ", 4),
        ("LSH", 4),
    ]
    assert all(0 < row["p@5"] <= 1 for row in told["rows"])
    assert "12 queries" in told["protocol"]["split"]


def test_compare_keeps_runs(here, run):
    arguments = ("compare", "digits", "-m", "LSH", "--bits", "8", "--train", "50", "--json")
    first, second = (run(*arguments, "--folder", "kept")["rows"][0] for _ in range(2))
    assert first == second  # the time included
    assert list((here / "kept").glob("*.npz"))


def test_compare_with_ranks_beyond_the_base(here, run):
    arguments = ("compare", "features.npy", "labels.npy", "-m", "LSH", "--bits", "8", "--jobs", "1")
    told = run(*arguments, "-k", "5", "-k", "500", "--json")
    [row] = told["rows"]
    assert row["p@500"] is None
    assert row["own"] == ""
    assert told["protocol"]["not measured"] == "p@500: the base has 108 points"
    shown = run(*arguments, "-k", "500").output
    assert "not measured: p@500: the base has 108 points" in shown
    [head] = [line for line in shown.splitlines() if "mAP" in line]
    assert "own" not in head  # names bring nothing of their own


def test_compare_where_all_fail(here, run):
    np.save("same.npy", np.zeros(120, int))
    result = run("compare", "features.npy", "same.npy", "-m", "SDH", "--jobs", "1", code=1)
    assert "every method failed" in result.output or "no dissimilar pairs" in result.output


def test_bench(run):
    rows = run("bench", "--points", "120", "--codes", "500", "--bits", "12", "--json")["rows"]
    assert [row["job"].split(",")[0] for row in rows] == [
        *("learn", "encode", "search", "search", "evaluate")
    ]
    assert all(row["seconds"] > 0 for row in rows)
