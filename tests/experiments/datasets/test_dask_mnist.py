"""Infinite MNIST on workers: the images of one machine, which the client never sees."""

import pickle

import numpy as np
import pytest

from auxhash.dask import DaskMACHash, infinite_mnist
from auxhash.experiments.datasets import InfiniteMNIST
from auxhash.experiments.datasets import dask_mnist as digits
from tests.dask.conftest import FEW_PAIRS, client  # noqa: F401


@pytest.fixture
def source(monkeypatch):
    """Made of ten bars in place of MNIST's images."""
    y, x = np.mgrid[:28, :28] - 13.5
    angles = np.pi * np.arange(10) / 10
    bars = [np.abs(x * np.sin(a) - y * np.cos(a)) < 1.5 for a in angles]
    made = InfiniteMNIST(np.array([255 * bar for bar in bars], np.uint8), np.arange(10), 3, 1)
    digits._source.cache_clear()
    monkeypatch.setattr(digits.digits, "training_images", lambda seed, n_jobs: made)
    yield made
    digits._source.cache_clear()


def test_blocks_are_the_images_of_one_machine(client, source):  # noqa: F811
    X, y = infinite_mnist(250, rows=100)
    assert X.chunks == ((100, 100, 50), (784,))
    assert y.chunks == ((100, 100, 50),)
    assert len(pickle.dumps(dict(X.__dask_graph__()))) < 5000
    np.testing.assert_array_equal(X.compute(), source.images(np.arange(250)).reshape(250, -1))
    np.testing.assert_array_equal(y.compute(), np.arange(250) % 10)
    np.testing.assert_array_equal(X[240:].compute().ravel(), source.images(range(240, 250)).ravel())


def test_it_is_learnt_from(client, source):  # noqa: F811
    X, y = infinite_mnist(240, rows=120)
    model = DaskMACHash(**{**FEW_PAIRS, "max_iter": 1}, refine=None).fit(X, y)
    assert model.n_learnt_ == 240
    images = source.images(np.arange(1000, 1100)).reshape(100, -1)
    assert model.score(images, np.arange(1000, 1100) % 10, k=10) > 0.4


def test_what_is_no_number_is_refused():
    for arguments in ({"n": 0}, {"n": 10, "rows": 0}, {"n": 10, "seed": -1}):
        with pytest.raises(ValueError, match="must be a whole number"):
            infinite_mnist(**arguments)
