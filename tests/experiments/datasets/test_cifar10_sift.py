import re
import sys

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from auxhash.compute import context, neighbors
from auxhash.compute.extras import install
from auxhash.experiments import datasets
from auxhash.experiments.datasets import cifar10_sift

cv2 = pytest.importorskip("cv2")


def pictures(n, seed=0):
    noise = gaussian_filter(np.random.default_rng(seed).normal(size=(n, 32, 32)), (0, 1, 1))
    return np.clip(127 + 200 * noise, 0, 255).astype(np.uint8)


def test_a_fixed_number_an_image_always_the_same():
    images = pictures(12)
    result = cifar10_sift.sift(images, 20)
    assert result.shape == (12, 20, 128)
    assert result.dtype == np.uint8
    with context.using(n_jobs=1):
        np.testing.assert_array_equal(result, cifar10_sift.sift(images, 20))
    np.testing.assert_array_equal(result[5:6], cifar10_sift.sift(images[5:6], 20))
    norms = np.linalg.norm(result.astype(float), axis=2)
    assert ((norms > 450) & (norms < 560)).all()  # SIFT's usual length of 512
    assert len(np.unique(result.reshape(-1, 128), axis=0)) > 230


def test_where_keypoints_run_out_a_grid_steps_in():
    flat = np.full((1, 32, 32), 90, np.uint8)
    assert cifar10_sift.sift(flat, 20).shape == (1, 20, 128)
    with pytest.raises(ValueError, match="per_image must be from 1 to 25"):
        cifar10_sift.sift(flat, 26)


def test_opencv_keeps_its_threads():
    before = cv2.getNumThreads()
    cifar10_sift.sift(pictures(1), 5)
    assert cv2.getNumThreads() == before


def test_without_opencv_it_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError, match=re.escape(install("sift"))):
        datasets.load("cifar10-sift")


def test_protocol(folder, monkeypatch):
    monkeypatch.setattr(cifar10_sift, "TRAINING_IMAGES", 30)
    home = folder / "cifar10-sift"
    home.mkdir(parents=True)
    made = cifar10_sift.sift(pictures(40), 20).reshape(-1, 128)
    np.save(home / "sift-20-v1.npy", made)
    data = datasets.load("cifar10-sift", n_train=50, n_query=8, n_neighbors=5)
    assert [len(part) for part in (data.train, data.base, data.query)] == [50, 600, 8]
    truth = neighbors.nearest(made[:600], data.query.X, 5)[0]
    np.testing.assert_array_equal(data.query.neighbors, truth)
    # No two queries come from one image.
    rows = [np.flatnonzero((made[600:] == q).all(axis=1))[0] // 20 for q in data.query.X]
    assert len(set(rows)) == 8
    bare = datasets.load("cifar10-sift", n_train=5, n_base=100, n_query=8, n_neighbors=0)
    assert bare.query.neighbors is None
    assert len(bare.base) == 100
    assert datasets.load("cifar10-sift", n_train=5, n_query=2, cosine=True).base.X.dtype == "f4"
