import numpy as np
import pytest
from scipy import ndimage

from auxhash.experiments import datasets
from auxhash.experiments.datasets import InfiniteMNIST, infinite_mnist


def strokes(n=6):
    """Plain strokes: a bar each, at different angles."""
    y, x = np.mgrid[:28, :28] - 13.5
    angles = np.pi * np.arange(n) / n
    bars = [np.abs(x * np.sin(a) - y * np.cos(a)) < 1.5 for a in angles]
    return np.array([255 * (bar & (np.hypot(x, y) < 9)) for bar in bars], np.uint8)


def endless(seed=0, n_jobs=None):
    return InfiniteMNIST(strokes(), np.arange(6), seed, n_jobs)


def test_an_image_is_always_the_same():
    numbers = np.array([5, 3, 10**12, 3, 2500, 0])
    many = endless().images(np.arange(3000))
    some = endless(n_jobs=1).images(numbers)
    for at, number in enumerate(numbers):
        np.testing.assert_array_equal(some[at], endless().images(number))
        if number < 3000:
            np.testing.assert_array_equal(some[at], many[number])
    np.testing.assert_array_equal(endless().label(numbers), numbers % 6)


def test_images_and_seeds_differ():
    images = endless().images(np.arange(600))
    assert len(np.unique(images.reshape(600, -1), axis=0)) == 600
    other = endless(seed=1).images(np.arange(600))
    assert (images != other).any(axis=(1, 2)).all()


def test_deformations_are_small_and_smooth():
    source = strokes().astype(float)
    images = endless().images(np.arange(6000)).astype(float)
    ink = images.sum(axis=(1, 2)) / np.resize(source.sum(axis=(1, 2)), 6000)
    assert 0.95 < ink.mean() < 1.05
    assert ((ink > 0.4) & (ink < 2.2)).all()
    centres = np.array([ndimage.center_of_mass(image) for image in images]) - 13.5
    assert np.abs(centres.mean(axis=0)).max() < 0.1  # to no side on the whole
    assert np.abs(centres).max() < 6
    # A stroke stays one stroke.
    pieces = [ndimage.label(image > 100, np.ones((3, 3)))[1] for image in images[:600]]
    assert np.mean(np.array(pieces) == 1) > 0.97
    # The mean over many deformations is the source, blurred.
    mean = images[::6].mean(axis=0)
    assert np.corrcoef(mean.ravel(), ndimage.gaussian_filter(source[0], 2).ravel())[0, 1] > 0.9


def test_wrong_numbers_are_named():
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        endless().images([3, -1])
    with pytest.raises(ValueError, match="whole number"):
        endless().images(0.5)
    assert endless().images(np.array([], int)).shape == (0, 28, 28)


def test_wrong_digits_are_named():
    with pytest.raises(ValueError, match=r"digits must be uint8 \(n, 28, 28\), got float64"):
        InfiniteMNIST(strokes().astype(float), np.arange(6))
    with pytest.raises(ValueError, match="6 digits do not fit 5 labels"):
        InfiniteMNIST(strokes(), np.arange(5))
    with pytest.raises(ValueError, match="seed must not be negative"):
        endless(seed=-1)


def test_the_data_set_lies_on_disk(tiny_mnist, monkeypatch):
    monkeypatch.setattr(infinite_mnist, "FILES", tiny_mnist)
    data = datasets.load("infinite-mnist", n_base=2100, n_train=100, n_query=30)
    assert [len(part) for part in (data.train, data.base, data.query)] == [100, 2100, 30]
    assert isinstance(data.base.X, np.memmap)
    assert data.base.X.dtype == np.uint8
    np.testing.assert_array_equal(data.base.y, np.arange(2100) % 50 % 10)
    np.testing.assert_array_equal(data.base.images[7].ravel(), data.base.X[7])
    again = datasets.load("infinite-mnist", n_base=2100, n_train=100, n_query=30)
    np.testing.assert_array_equal(again.train.X, data.train.X)
    with pytest.raises(ValueError, match="must be positive"):
        datasets.load("infinite-mnist", n_base=0)
