"""evaluate."""

import numpy as np
import pytest

import auxhash
from auxhash.compute.neighbors import nearest
from auxhash.model import modelfile
from auxhash.search import metrics


def test_evaluate_against_the_training_points(here, run, model):
    arguments = ("evaluate", "queries.npy", "--labels", "query-labels.npy", "--model", model)
    result = run(*arguments, "-k", "7", "--json")
    hasher = auxhash.load(model)
    expected = hasher.score(np.load("queries.npy"), np.load("query-labels.npy"), k=7)
    assert result["precision"] == [pytest.approx(expected)]
    assert result["protocol"]["n_bits"] == 12
    assert 0 < result["mean_average_precision"] <= 1
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
    precision = metrics.precision_at_k(
        np.load("q.npy"), np.load("b.npy"), np.load("query-labels.npy"), np.load("labels.npy"), 5
    )
    assert by_codes["precision"] == [pytest.approx(precision)]


def test_queries_that_are_the_base_are_told(here, run, model):
    labels = ("--labels", "labels.npy", "--base-labels", "labels.npy")
    same = ("evaluate", "features.npy", "features.npy", "--model", model, *labels)
    result = run(*same, "-k", "1", "--json")
    assert result["protocol"]["overlap"] == "the base is the queries"
    assert "QUERIES and BASE are the same: each finds itself" in run(*same).output
    own = run("evaluate", "features.npy", "--labels", "labels.npy", "--model", model)
    assert f"QUERIES and the training points of {model} are the same" in own.output
    other = ("evaluate", "queries.npy", "features.npy", "--model", model)
    asked = run(*other, "--labels", "query-labels.npy", "--base-labels", "labels.npy")
    assert "finds itself" not in asked.output


def test_labels_of_which_none_are_the_same_are_told(here, run, model):
    np.save("others.npy", np.load("query-labels.npy") + 10)
    ask = ("evaluate", "queries.npy", "--model", model, "-k", "1")
    said = "no label of the queries is one of the base's"
    assert said in run(*ask, "--labels", "others.npy").output
    assert said not in run(*ask, "--labels", "query-labels.npy").output


def test_ranks_beyond_the_base_are_told(here, run, model):
    ask = ("evaluate", "queries.npy", "--labels", "query-labels.npy", "--model", model)
    said = run(*ask, "-k", "5", "-k", "5000").output
    assert "not measured: k = 5000: the base has" in said
    assert "not measured" not in run(*ask).output
    alone = run(*ask, "-k", "5000", code=1).output
    assert "no k is left to measure: the base has" in alone
    assert "not measured" not in alone


def test_codes_need_base_and_labels(here, run, model):
    run("encode", model, "queries.npy", "-o", "q.npy")
    assert "BASE, or a --model" in run("evaluate", "q.npy", code=2).output
    assert "give --labels" in run("evaluate", "q.npy", "q.npy", code=2).output


def test_codes_of_different_bits_are_not_compared(here, run):
    """10 and 12 bits are two bytes both, once they are packed."""
    codes = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (20, 12))
    np.save("ten.npy", codes[:, :10])
    np.save("twelve.npy", codes)
    np.save("y.npy", np.arange(20) % 2)
    labels = ("--labels", "y.npy", "--base-labels", "y.npy")
    output = run("evaluate", "ten.npy", "twelve.npy", *labels, code=1).output
    assert "ten.npy holds codes of 10 bits, and twelve.npy of 12" in output


def test_neighbours_of_points_without_labels(here, run, model):
    result = run("evaluate", "queries.npy", "features.npy", "--model", model, "--json")
    hasher = auxhash.load(model)
    base, queries = np.load("features.npy"), np.load("queries.npy")
    near = nearest(base, queries, 10, "cosine")[0]
    codes = hasher.encode(queries), hasher.encode(base)
    by_hamming, by_outputs = result["rows"]
    recall = metrics.recall_at_k(*codes, neighbors=near, k=[10, 100])
    assert [by_hamming["10@10"], by_hamming["10@100"]] == pytest.approx(list(recall))
    assert by_outputs["by"] == "outputs"
    assert by_hamming["10@1000"] is None
    shown = run("evaluate", "queries.npy", "features.npy", "--model", model).output
    assert "120 are searched for 40 queries (of 40 given); 12 bits, cosine neighbours" in shown


def test_neighbours_of_codes(here, run, model):
    run("encode", model, "features.npy", "-o", "b.npy")
    run("encode", model, "queries.npy", "-o", "q.npy")
    vectors = ("--vectors", "queries.npy", "--base-vectors", "features.npy", "--bits", "12")
    [row] = run("evaluate", "q.npy", "b.npy", *vectors, "--json")["rows"]
    by_model = run("evaluate", "queries.npy", "features.npy", "--model", model, "--json")["rows"]
    times = "encode 1M s", "ms per query"
    assert all(
        row[name] == by_model[0][name] for name in row if name not in ("model bytes", *times)
    )
    # The same figures as compare has, where there are any.
    compared = auxhash.compare(np.load("features.npy"), ["LSH"], n_bytes=2, verbose=0).rows[0]
    assert {*row, "method", "distance", "best"} == {*compared, "by"}
    assert (row["bytes"], row["code bytes"]) == (2, 2 * 120)
    assert row["model bytes"] is row["encode 1M s"] is row["learn s"] is None
    file_bytes = len(modelfile.to_bytes(auxhash.Model.load(model).stored()))
    for of_model in by_model:
        assert (of_model["model bytes"], of_model["learn s"]) == (file_bytes, None)
        assert min(of_model[name] for name in times) > 0
    assert row["ms per query"] > 0
    shown = run("evaluate", "q.npy", "b.npy", *vectors).output
    assert "codes   ms" in shown  # nothing of a model
    shown = run("evaluate", "queries.npy", "features.npy", "--model", model).output
    assert "model 1M s   ms" in shown
    alone = run("evaluate", "b.npy", "--vectors", "features.npy", "--bits", "12", "--json")
    assert "108 are searched for 12 queries (drawn from it" in alone["protocol"]["data"]
    lacking = run("evaluate", "q.npy", "b.npy", *vectors[:2], code=2)
    assert "give --base-vectors" in lacking.output


def test_points_that_the_model_knows_are_said(here, run):
    X = np.load("features.npy")
    auxhash.baselines.ITQ(n_bits=8, random_state=0).fit(X).save("itq.safetensors")
    said = "the model was learnt from these points"
    assert said in run("evaluate", "features.npy", "--model", "itq.safetensors").output
    new = run("evaluate", "queries.npy", "features.npy", "--model", "itq.safetensors")
    assert said not in new.output
