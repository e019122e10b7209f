"""Metrics against a naive ranking by sorting, over all or many orders of the ties."""

import itertools
import json
import math
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxhash.codes import hamming, pack
from auxhash.compute.extras import install
from auxhash.search import metrics
from auxhash.search.metrics import tally

MEASURES = ("precision", "recall", "possible", "relevant", "found")


def by_label(query_labels, base_labels):
    """Relevance (n_queries, n_base) by brute force."""
    if np.ndim(query_labels) == 1:
        return np.asarray(query_labels)[:, None] == np.asarray(base_labels)
    return (np.asarray(query_labels)[:, None] & np.asarray(base_labels)).any(axis=2)


def measure_one(relevant, k):
    """All MEASURES at k of one ranking, given the relevance of its points in order."""
    top, total = relevant[:k], relevant.sum()
    precisions = np.cumsum(relevant) / np.arange(1, len(relevant) + 1)
    summed = precisions[:k][top].sum()
    counts = (k, total, min(k, total), total, top.sum())
    parts = (top.sum(), top.sum(), summed, summed, summed)
    return [part / count if count else 0.0 for part, count in zip(parts, counts, strict=True)]


def ours(codes, truth, k, ties="expected"):
    mean = metrics.mean_average_precision
    return [
        metrics.precision_at_k(*codes, k=k, ties=ties, **truth),
        metrics.recall_at_k(*codes, k=k, ties=ties, **truth),
        *(mean(*codes, k=k, ties=ties, divide_by=over, **truth) for over in MEASURES[2:]),
    ]


def tied_data(seed, n_queries, n_base, n_bits, n_classes=3):
    rng = np.random.default_rng(seed)
    codes = [rng.choice([-1, 1], (n, n_bits)) for n in (n_queries, n_base)]
    labels = [rng.integers(0, n_classes, n) for n in (n_queries, n_base)]
    return codes, labels


@pytest.mark.parametrize("seed", range(3))
def test_exact_over_all_orders_of_the_ties(seed):
    codes, labels = tied_data(seed, n_queries=3, n_base=6, n_bits=2, n_classes=2)
    distance, relevant = hamming(*codes), by_label(*labels)
    truth = {"query_labels": labels[0], "base_labels": labels[1]}
    for k in range(1, 7):
        expected = []
        for q in range(3):
            orders = itertools.permutations(range(6))
            ranked = {o for o in orders if (np.diff(distance[q][list(o)]) >= 0).all()}
            expected.append(np.mean([measure_one(relevant[q][list(o)], k) for o in ranked], axis=0))
        np.testing.assert_allclose(ours(codes, truth, k), np.mean(expected, axis=0), atol=1e-12)


def test_expected_over_many_random_orders():
    codes, labels = tied_data(0, n_queries=10, n_base=300, n_bits=6)
    distance, relevant = hamming(*codes), by_label(*labels)
    truth = {"query_labels": labels[0], "base_labels": labels[1]}
    rng = np.random.default_rng(1)
    for k in (1, 20, 137, 300):
        sample = []
        for _ in range(200):
            order = np.argsort(distance + rng.random(distance.shape), axis=1)
            ranked = np.take_along_axis(relevant, order, axis=1)
            sample.append(np.mean([measure_one(row, k) for row in ranked], axis=0))
        error = np.std(sample, axis=0) / np.sqrt(len(sample))
        gap = np.abs(ours(codes, truth, k) - np.mean(sample, axis=0))
        assert (gap <= 4 * error + 1e-12).all()


TRUTHS = ("single", "multi", "neighbors")


def make_truth(kind, labels, rng):
    """Ground truth as arguments of the metrics, and as a matrix (n_queries, n_base)."""
    n_queries, n_base = len(labels[0]), len(labels[1])
    if kind == "single":
        return {"query_labels": labels[0], "base_labels": labels[1]}, by_label(*labels)
    if kind == "multi":
        sets = [rng.random((n, 11)) < 0.1 for n in (n_queries, n_base)]
        return {"query_labels": sets[0], "base_labels": sets[1]}, by_label(*sets)
    columns = np.argsort(rng.random((n_queries, n_base)), axis=1)[:, :17]
    matrix = np.zeros((n_queries, n_base), bool)
    np.put_along_axis(matrix, columns, True, axis=1)
    return {"neighbors": columns}, matrix


@pytest.mark.parametrize("kind", TRUTHS)
@pytest.mark.parametrize("n_bits", [3, 64, 300])
def test_index_order_equals_a_stable_sort(kind, n_bits):
    codes, labels = tied_data(2, n_queries=13, n_base=203, n_bits=n_bits)
    truth, relevant = make_truth(kind, labels, np.random.default_rng(3))
    order = np.argsort(hamming(*codes), axis=1, kind="stable")
    ranked = np.take_along_axis(relevant, order, axis=1)
    for k in (1, 50, 203):
        expected = np.mean([measure_one(row, k) for row in ranked], axis=0)
        np.testing.assert_allclose(ours(codes, truth, k, ties="index"), expected, atol=1e-12)


@pytest.mark.parametrize("kind", TRUTHS)
@pytest.mark.parametrize("n_bits", [1, 9, 64, 254, 255, 300])
def test_histogram_and_radius_curves(kind, n_bits):
    codes, labels = tied_data(4, n_queries=21, n_base=999, n_bits=n_bits)
    truth, relevant = make_truth(kind, labels, np.random.default_rng(5))
    distance = hamming(*codes)
    counts, hits = metrics.distance_histogram(*codes, **truth)
    assert counts.shape == hits.shape == (21, n_bits + 1)
    precision, recall = metrics.precision_recall_by_radius(*codes, **truth)
    for r in range(0, n_bits + 1, max(1, n_bits // 50)):
        at, inside = distance == r, distance <= r
        np.testing.assert_array_equal(counts[:, r], at.sum(axis=1))
        np.testing.assert_array_equal(hits[:, r], (at & relevant).sum(axis=1))
        good, total = (inside & relevant).sum(axis=1), relevant.sum(axis=1)
        retrieved = inside.sum(axis=1)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(
                precision[r], np.where(retrieved > 0, good / retrieved, 0).mean()
            )
            np.testing.assert_allclose(recall[r], np.where(total > 0, good / total, 0).mean())


def test_nothing_retrieved_is_zero_precision():
    precision, recall = metrics.precision_recall_by_radius([[1, 1]], [[-1, -1]], [0], [0])
    assert precision.tolist() == recall.tolist() == [0, 0, 1]


@given(
    seed=st.integers(0, 2**32),
    n_base=st.integers(1, 300),
    n_bits=st.integers(1, 12),
    ties=st.sampled_from(["expected", "index"]),
)
def test_curves_over_all_k(seed, n_base, n_bits, ties):
    codes, labels = tied_data(seed, 5, n_base, n_bits)
    args = (*codes, *labels)
    precision = metrics.precision_at_k(*args, k=None, ties=ties)
    recall = metrics.recall_at_k(*args, k=None, ties=ties)
    assert precision.shape == recall.shape == (n_base,)
    for k in {1, n_base // 2 + 1, n_base}:
        one = metrics.precision_at_k(*args, k=k, ties=ties)
        np.testing.assert_allclose(precision[k - 1], one, atol=1e-10)
        one = metrics.recall_at_k(*args, k=[k], ties=ties)
        np.testing.assert_allclose(recall[k - 1 : k], one, atol=1e-10)
    assert (np.diff(recall) >= -1e-12).all()
    some = np.isin(labels[0], labels[1]).mean()
    np.testing.assert_allclose(recall[-1], some, atol=1e-12)
    share = by_label(*labels).mean()
    np.testing.assert_allclose(precision[-1], share, atol=1e-10)


def test_perfect_codes_score_one():
    labels = np.repeat([0, 1], 49)
    codes = np.where(labels[:, None] == [0, 1, 1], 1, -1)
    args = (codes[::7], codes, labels[::7], labels)
    assert metrics.precision_at_k(*args, k=49) == 1.0
    assert metrics.recall_at_k(*args, k=49) == pytest.approx(1, abs=1e-14)
    assert metrics.mean_average_precision(*args) == pytest.approx(1, abs=1e-14)
    assert metrics.mean_average_precision(*args, k=10, divide_by="found") == pytest.approx(1)
    assert metrics.mean_average_precision(*args, k=10, divide_by="relevant") < 0.3


@pytest.mark.parametrize("ties", ["expected", "index"])
def test_number_of_threads_changes_nothing(ties):
    codes, labels = tied_data(6, n_queries=300, n_base=500, n_bits=16)
    results = []
    for n_jobs in (1, 2, 4):
        result = metrics.evaluate(*codes, *labels, k=None, ties=ties, n_jobs=n_jobs)
        results.append(result.to_json())
    assert results[0] == results[1] == results[2]


def test_packed_and_plain_codes_agree():
    codes, labels = tied_data(7, 20, 100, 13)
    packed = [pack(c) for c in codes]
    plain = metrics.evaluate(*codes, *labels, k=5).to_dict()
    assert metrics.evaluate(*packed, *labels, k=5, n_bits=13).to_dict() == plain
    assert metrics.distance_histogram(*packed, *labels)[0].shape == (20, 17)
    first = [p[:, :1] for p in packed]  # a code of its own
    plain = metrics.evaluate(*(c[:, :8] for c in codes), *labels, k=5).to_dict()
    assert metrics.evaluate(*first, *labels, k=5).to_dict() == plain


def test_code_utilization():
    all_codes = np.array(list(itertools.product([-1, 1], repeat=5)))
    assert metrics.code_utilization(all_codes) == pytest.approx(5)
    assert metrics.code_utilization(np.ones((9, 70))) == 0
    assert metrics.code_utilization(all_codes[[0, 0, 1, 2]]) == pytest.approx(1.5)
    assert metrics.utilization_bound(5, 1000) == 5
    assert metrics.utilization_bound(64, 1024) == 10
    many = np.random.default_rng(0).choice([-1, 1], (1000, 40))
    assert metrics.code_utilization(many) == pytest.approx(math.log2(1000))


def test_balance_and_correlation():
    codes = np.random.default_rng(0).choice([-1, 1], (200, 9))
    codes[:, 3], codes[:, 4], codes[:, 5] = 1, codes[:, 0], -codes[:, 0]
    np.testing.assert_allclose(metrics.bit_balance(codes), (codes > 0).mean(axis=0))
    correlation = metrics.bit_correlation(pack(codes), n_bits=9)
    kept = [0, 1, 2, 4, 5, 6, 7, 8]
    np.testing.assert_allclose(
        correlation[np.ix_(kept, kept)], np.corrcoef(codes[:, kept].T), atol=1e-12
    )
    assert correlation[3].tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 0]


@pytest.fixture(scope="module")
def result():
    codes, labels = tied_data(8, 30, 400, 10)
    protocol = {"data_set": "noise", "seed": np.int64(8), "split": "30 queries / 400 base"}
    return metrics.evaluate(*codes, *labels, k=(1, 10, 5000), protocol=protocol)


def test_evaluation_equals_the_single_measures(result):
    codes, labels = tied_data(8, 30, 400, 10)
    args = (*codes, *labels)
    assert result.k.tolist() == [1, 10]
    np.testing.assert_allclose(result.precision, metrics.precision_at_k(*args, k=[1, 10]))
    np.testing.assert_allclose(result.recall, metrics.recall_at_k(*args, k=[1, 10]))
    assert result.mean_average_precision == metrics.mean_average_precision(*args)
    assert result.average_precision[1] == metrics.mean_average_precision(*args, k=10)
    np.testing.assert_array_equal(
        [result.radius_precision, result.radius_recall],
        metrics.precision_recall_by_radius(*args),
    )
    assert result.retrieved[-1] == 400


def test_evaluation_prints_its_protocol(result):
    text = str(result)
    for part in ("data set: noise", "seed: 8", "overlap: not given", "ties: expected", "mAP"):
        assert part in text
    assert "ground truth: same label" in text


def test_evaluation_exports(result):
    loaded = json.loads(result.to_json())
    assert loaded["protocol"]["seed"] == 8
    assert loaded["precision"] == result.precision.tolist()
    frame = result.to_frame()
    assert frame.attrs["data_set"] == "noise"
    row = frame[(frame["measure"] == "precision at k") & (frame["at"] == 10)]
    assert row["value"].item() == result.precision[1]
    figure = result.plot()
    assert len(figure.axes) == 3
    bits = result.protocol["n_bits"]
    title = f"Codes of {bits} bits on noise: mAP {result.mean_average_precision:.3f}"
    assert figure.get_suptitle().strip() == title
    [protocol] = [text.get_text() for text in figure.texts if text.get_text().startswith("data")]
    assert "seed: 8" in protocol
    assert "not given" not in protocol
    by_k, _, _ = figure.axes
    figure.draw_without_rendering()
    assert "10" in [text.get_text() for text in by_k.get_xticklabels()]
    assert all(axes.get_title() for axes in figure.axes)


def test_radii_are_whole_numbers():
    codes, labels = tied_data(8, 30, 400, 3)
    _, by_radius, _ = metrics.evaluate(*codes, *labels, k=10).plot().axes
    assert {0, 1, 2, 3} <= set(by_radius.get_xticks())
    assert all(tick == round(tick) for tick in by_radius.get_xticks())


def test_evaluation_of_all_k():
    codes, labels = tied_data(8, 30, 400, 10)
    result = metrics.evaluate(*codes, *labels, k=None)
    np.testing.assert_allclose(result.precision, metrics.precision_at_k(*codes, *labels, k=None))
    assert len(str(result).splitlines()) < 60
    assert result.average_precision is None
    assert "mAP at k" not in set(result.to_frame()["measure"])
    assert len(result.plot().axes[0].lines) == 2


def test_missing_extras_are_named(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=re.escape(install("frame"))):
        result.to_frame()
    with pytest.raises(ImportError, match=re.escape(install("plot"))):
        result.plot()


def test_wrong_arguments_are_named():
    (query, base), (query_labels, base_labels) = tied_data(9, 4, 20, 12)
    codes, labels = (query, base), (query_labels, base_labels)
    at_k, mean = metrics.precision_at_k, metrics.mean_average_precision
    wrong = [
        (lambda: at_k(*codes, *labels, k=0), "k must be between 1 and 20"),
        (lambda: at_k(*codes, *labels, k=[1, 21]), "k must be between 1 and 20"),
        (lambda: at_k(*codes, *labels, k=1.5), "k must be a whole number"),
        (lambda: at_k(*codes, k=1), "give query_labels and base_labels, or neighbors"),
        (lambda: at_k(*codes, *labels, k=1, neighbors=[[1]] * 4), "and not both"),
        (lambda: at_k(*codes, k=1, neighbors=[[20]] * 4), "neighbors must lie in 0..19"),
        (lambda: at_k(*codes, k=1, neighbors=[[2]] * 3), "do not fit 3 neighbors"),
        (lambda: at_k(*codes, query_labels[:3], base_labels, k=1), "do not fit 3 query_labels"),
        (lambda: at_k(*codes, query_labels, base_labels[:3], k=1), "do not fit 3 base_labels"),
        (
            lambda: at_k(query[:, :3], base, *labels, k=1),
            "query_codes of 3 bits and base_codes of 12",
        ),
        (lambda: at_k(*codes, *labels, k=1, ties="random"), "ties must be"),
        (lambda: at_k(*codes, query_labels, k=1, neighbors=[[1]] * 4), "and not both"),
        (lambda: mean(*codes, *labels, divide_by="k"), "divide_by must be"),
        (lambda: metrics.evaluate(*codes, *labels, divide_by="k"), "divide_by must be"),
        (lambda: metrics.evaluate(*codes, *labels, n_bits=20), "query_codes of 20 bits must be"),
        (lambda: tally.take(query[:0], base, [], base_labels), "at least one"),
    ]
    for call, message in wrong:
        with pytest.raises(ValueError, match=message):
            call()
