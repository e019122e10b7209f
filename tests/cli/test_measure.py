"""evaluate, compare, bench and demo."""

import numpy as np
import pytest

import auxhash
from auxhash import metrics


def test_evaluate_against_the_training_points(here, run, model):
    arguments = ("evaluate", "queries.npy", "--labels", "query-labels.npy", "--model", model)
    told = run(*arguments, "-k", "7", "--json")
    hasher = auxhash.load(model)
    expected = hasher.score(np.load("queries.npy"), np.load("query-labels.npy"), k=7)
    assert told["precision"] == [pytest.approx(expected)]
    assert told["protocol"]["n_bits"] == 12
    assert 0 < told["mean_average_precision"] <= 1
    shown = run(*arguments).output
    assert "effective bits" in shown
    assert "ties by their expected value" in shown


def test_codes_and_features_agree(here, run, model):
    run("encode", model, "features.npy", "-o", "b.npy")
    run("encode", model, "queries.npy", "-o", "q.npy")
    labels = ("--labels", "query-labels.npy", "--base-labels", "labels.npy", "-k", "5", "--json")
    by_codes = run("evaluate", "q.npy", "b.npy", "--bits", "12", *labels)
    by_model = run("evaluate", "queries.npy", "features.npy", "--model", model, *labels)
    for part in ("precision", "recall", "mean_average_precision", "utilization", "balance"):
        assert by_codes[part] == by_model[part]
    found = metrics.precision_at_k(
        np.load("q.npy"), np.load("b.npy"), np.load("query-labels.npy"), np.load("labels.npy"), 5
    )
    assert by_codes["precision"] == [pytest.approx(found)]


def test_codes_need_base_and_labels(here, run, model):
    run("encode", model, "queries.npy", "-o", "q.npy")
    assert "BASE, or a --model" in run("evaluate", "q.npy", code=2).output
    assert "give --labels" in run("evaluate", "q.npy", "q.npy", code=2).output


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
