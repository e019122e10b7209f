"""mAP of the usual deep-hashing scripts, against a direct transcription of what they do."""

import numpy as np
import pytest

from auxhash.codes import pack
from auxhash.search import metrics


def transcribed(query, base, query_labels, base_labels, k):
    """With +-1 codes and indicators, k = -1 for all, line by line."""
    total = 0.0
    for code, labels in zip(query, query_labels, strict=True):
        relevant = (np.dot(labels, base_labels.transpose()) > 0).astype(np.float32)
        distance = 0.5 * (base.shape[1] - np.dot(code, base.transpose()))
        relevant = relevant[np.argsort(distance)]
        top = relevant[0:k]
        n_hits = np.sum(top).astype(int)
        if n_hits == 0:
            continue
        count = np.linspace(1, n_hits, n_hits)
        places = np.asarray(np.where(top == 1)) + 1.0
        total = total + np.mean(count / places)
    return total / len(query)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    codes = [rng.choice([-1.0, 1.0], (n, 12)).astype(np.float32) for n in (30, 500)]
    labels = [rng.integers(0, 4, n) for n in (30, 500)]
    return codes, labels


@pytest.mark.parametrize("k", [None, 1, 10, 499, 500])
def test_it_is_what_the_scripts_compute(data, k):
    codes, labels = data
    indicators = [np.eye(4)[some] for some in labels]
    expected = transcribed(*codes, *indicators, -1 if k is None else k)
    assert metrics.map_by_sort(*codes, *labels, k) == pytest.approx(expected, rel=1e-12)
    packed, several = [pack(some) for some in codes], [some.astype(int) for some in indicators]
    for arguments in ((*packed, *labels), (*codes, *several)):
        assert metrics.map_by_sort(*arguments, k) == pytest.approx(expected, rel=1e-12)


def test_points_with_several_labels(data):
    codes, _ = data
    rng = np.random.default_rng(1)
    labels = [rng.integers(0, 2, (len(some), 3)) for some in codes]
    expected = transcribed(*codes, *labels, 50)
    assert metrics.map_by_sort(*codes, *labels, 50) == pytest.approx(expected, rel=1e-12)


def test_without_ties_only_the_last_point_and_the_divisor_tell_it_from_ours():
    base = np.where(np.arange(9)[:, None] > np.arange(8), 1, -1)  # at distances 8, 7, ..., 0
    query, labels = np.ones((1, 8)), np.array([0, 1, 0, 1, 1, 0, 0, 1, 0])
    ours = metrics.mean_average_precision(query, base, [0], labels, k=8, divide_by="found")
    assert metrics.map_by_sort(query, base, [0], labels) == pytest.approx(ours)
    assert metrics.map_by_sort(query, base, [0], labels, k=9) == pytest.approx(
        metrics.mean_average_precision(query, base, [0], labels)
    )


def test_a_shuffle_of_the_base_moves_it(data):
    """Codes of 2 bits have many ties; ours, which takes all their orders, stays as it is."""
    rng = np.random.default_rng(2)
    (query, base), (query_labels, base_labels) = data
    query, base = query[:, :2], base[:, :2]
    theirs, ours = [], []
    for order in (rng.permutation(len(base)) for _ in range(20)):
        side = query, base[order], query_labels, base_labels[order]
        theirs.append(metrics.map_by_sort(*side, 100))
        ours.append(metrics.mean_average_precision(*side, 100, divide_by="found"))
    assert np.ptp(theirs) > 0.01
    assert np.ptp(ours) < 1e-9
    assert np.mean(theirs) == pytest.approx(np.mean(ours), abs=0.01)


def test_no_relevant_point_counts_as_zero():
    codes = np.ones((2, 8))
    assert metrics.map_by_sort(codes, codes, [0, 0], [1, 1]) == 0.0


@pytest.mark.parametrize("k", [0, 501, 2.5])
def test_wrong_k(data, k):
    codes, labels = data
    with pytest.raises(ValueError, match="k must be a whole number from 1 to 500"):
        metrics.map_by_sort(*codes, *labels, k)
