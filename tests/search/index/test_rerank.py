"""Re-ranking against brute force."""

import numpy as np
import pandas
import pytest

from auxhash.codes import sign, unpack
from auxhash.search.index import ApproximateIndex, HammingIndex, rerank


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, queries = rng.standard_normal((500, 12)), rng.standard_normal((70, 12))
    W = rng.standard_normal((12, 20))
    index = HammingIndex(20).add(sign(X @ W), ids=np.arange(500)[::-1])
    return X[::-1], queries, queries @ W, index


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_by_vectors(data, metric):
    X, queries, outputs, index = data
    _, ids = index.search(sign(outputs), 100)
    distances, order = rerank.by_vectors(ids, queries, X, k=7, metric=metric)
    for q in range(len(queries)):
        gap = np.linalg.norm(X[ids[q]] - queries[q], axis=1)
        if metric == "cosine":
            norms = np.linalg.norm(X[ids[q]], axis=1) * np.linalg.norm(queries[q])
            gap = 1 - X[ids[q]] @ queries[q] / norms
        best = np.argsort(gap)[:7]
        np.testing.assert_array_equal(order[q], ids[q][best])
        np.testing.assert_allclose(distances[q], gap[best], atol=1e-12)


def test_no_distance_is_below_zero(data):
    """Not even by rounding, which would be shown as -0.0."""
    X, _, _, index = data
    asked = np.arange(len(X))[:, None]
    distances, _ = rerank.by_vectors(asked, X, X[:, :], metric="cosine")
    assert (distances >= 0).all()
    assert not np.signbit(distances).any()
    outputs = np.random.default_rng(0).normal(size=(len(X), 20))
    outputs = np.abs(outputs) * unpack(index.codes(asked[:, 0]), 20)
    distances, _ = rerank.by_outputs(asked, outputs, index)
    assert not np.signbit(distances).any()


def test_by_vectors_over_all_candidates_is_exact_search(data):
    X, queries, outputs, index = data
    _, ids = index.search(sign(outputs), len(index))
    _, order = rerank.by_vectors(ids, queries, X, k=3)
    exact = np.linalg.norm(X - queries[:, None], axis=2).argsort(axis=1)[:, :3]
    np.testing.assert_array_equal(order, exact)


def test_by_outputs(data):
    _, _, outputs, index = data
    hamming, ids = index.search(sign(outputs), 100)
    distances, order = rerank.by_outputs(ids, outputs, index, k=9)
    for q in range(len(outputs)):
        bits = np.unpackbits(index.codes(ids[q]), axis=1, count=20, bitorder="little")
        differ = (2.0 * bits - 1) != sign(outputs[q])
        cost = (differ * np.abs(outputs[q])).sum(axis=1)
        best = np.argsort(cost, kind="stable")[:9]
        np.testing.assert_array_equal(order[q], ids[q][best])
        np.testing.assert_allclose(distances[q], cost[best], atol=1e-12)
    unit, same = rerank.by_outputs(ids, sign(outputs).astype(float), index)
    np.testing.assert_allclose(unit, hamming)
    np.testing.assert_array_equal(same, ids)


def test_missing_candidates_come_last(data):
    X, queries, *_ = data
    distances, ids = rerank.by_vectors([[-1, 4, -1, 2], [-1, -1, -1, -1]], queries[:2], X)
    assert sorted(ids[0, :2].tolist()) == [2, 4]
    assert ids[0, 2:].tolist() == [-1, -1]
    assert np.isinf(distances[0, 2:]).all()
    assert ids[1].tolist() == [-1] * 4


def test_infinite_distances_come_before_what_is_missing():
    huge = np.array([[1.7e308], [0.0]])
    with np.errstate(over="ignore"):
        distances, ids = rerank.by_vectors([[-1, 0, 1]], [[-1.7e308]], huge)
    assert ids.tolist() == [[1, 0, -1]]
    assert distances[0].tolist() == [1.7e308, np.inf, np.inf]


@pytest.mark.parametrize("wrong", [-2, 500, 2**64 - 1])
def test_ids_that_no_search_gives(data, wrong):
    X, queries, outputs, index = data
    ids = np.array([[wrong]], np.uint64 if wrong > 2**63 else np.int64)
    for call in (
        lambda: rerank.by_vectors(ids, queries[:1], X),
        lambda: rerank.by_outputs(ids, outputs[:1], index),
    ):
        with pytest.raises(ValueError, match="ids must"):
            call()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_numbers_that_cannot_be_ordered(data, wrong):
    X, queries, outputs, index = (part.copy() if hasattr(part, "copy") else part for part in data)
    X[3], queries[0], outputs[0] = wrong, wrong, wrong
    calls = [
        (lambda: rerank.by_vectors([[0]], queries[:1], X), "queries must be finite"),
        (lambda: rerank.by_vectors([[3]], queries[1:2], X), "vectors must be finite"),
        (lambda: rerank.by_outputs([[0]], outputs[:1], index), "outputs must be finite"),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()


def test_wrong_arguments_are_named(data):
    X, queries, outputs, index = data
    ids = np.zeros((70, 3), int)
    wrong = [
        (lambda: rerank.by_vectors(ids[0], queries, X), "ids must be"),
        (lambda: rerank.by_vectors(ids, queries[:3], X), "queries must be"),
        (lambda: rerank.by_vectors(ids, queries, X[:, :3]), "vectors must be"),
        (lambda: rerank.by_vectors(ids, queries, X, metric="dot"), "metric must be"),
        (lambda: rerank.by_vectors(ids, queries, X, k=0), "k must be"),
        (lambda: rerank.by_outputs(ids, outputs[:, :5], index), "outputs must be"),
        (lambda: rerank.by_outputs(ids + 1000, outputs, index), "1000 is not"),
    ]
    for call, message in wrong:
        with pytest.raises(ValueError, match=message):
            call()


def test_a_single_query(data):
    X, queries, outputs, index = data
    _, ids = index.search(sign(outputs[:1])[0], 100)
    for ours, theirs in zip(
        (*rerank.by_vectors(ids, queries[0], X), *rerank.by_outputs(ids, outputs[0], index)),
        (*rerank.by_vectors(ids, queries[:1], X), *rerank.by_outputs(ids, outputs[:1], index)),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_by_outputs_of_an_approximate_index(data):
    _, _, outputs, index = data
    _, ids = index.search(sign(outputs), 30)
    rough = ApproximateIndex.from_exact(index)
    for ours, theirs in zip(
        rerank.by_outputs(ids, outputs, rough), rerank.by_outputs(ids, outputs, index), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_any_scale_of_vectors(data, scale):
    X, queries, _, index = data
    ids = index.search(index.packed[: len(queries)], 20)[1]
    expected = rerank.by_vectors(ids, queries, X)[1]
    np.testing.assert_array_equal(rerank.by_vectors(ids, queries * scale, X * scale)[1], expected)


def test_vectors_as_lists_and_frames(data):
    X, queries, _, index = data
    ids = index.search(index.packed[: len(queries)], 20)[1]
    expected = rerank.by_vectors(ids, queries, X)[1]
    for vectors in (X.tolist(), pandas.DataFrame(X)):
        np.testing.assert_array_equal(rerank.by_vectors(ids, queries, vectors)[1], expected)
