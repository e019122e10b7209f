"""Approximate neighbours against exact ones."""

import numpy as np
import pytest

from auxhash import NeighborHash
from auxhash.affinity.neighbors import nearest
from auxhash.index import vectors
from auxhash.training import ranking

pytest.importorskip("faiss")


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_most_of_the_nearest_are_found(metric, monkeypatch):
    monkeypatch.setattr(vectors, "PER_LIST", 50)
    monkeypatch.setattr(vectors, "PROBED", 8)
    X = np.random.default_rng(0).normal(size=(1500, 6)) * 1e6 + 3
    exact = nearest(X, k=5, metric=metric)[0]
    found = vectors.nearest_approximately(X, 5, metric)
    assert found.shape == exact.shape
    assert not (found == np.arange(1500)[:, None]).any()
    assert found.min() >= 0
    shared = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(found, exact, strict=True)])
    assert shared > 0.9
    again = vectors.nearest_approximately(X, 5, metric, n_jobs=1)
    np.testing.assert_array_equal(again, found)


def test_points_that_are_all_the_same_have_neighbours():
    found = vectors.nearest_approximately(np.ones((40, 3)), 5, "euclidean")
    assert not (found == np.arange(40)[:, None]).any()
    assert found.min() >= 0


def test_it_is_taken_for_many_points(monkeypatch):
    monkeypatch.setattr(ranking, "MOST_EXACT", 100)
    called = []

    def counted(X, k, metric, n_jobs):
        called.append(len(X))
        return vectors.nearest_approximately(X, k, metric, n_jobs)

    monkeypatch.setattr(ranking, "nearest_approximately", counted)
    X = np.random.default_rng(0).normal(size=(150, 4))
    settings = {"hash_function": "linear", "n_steps": 3, "random_state": 0}
    NeighborHash(8, **settings, max_points=100).fit(X)
    assert not called
    NeighborHash(8, **settings, max_points=None).fit(X)
    assert called == [150]
