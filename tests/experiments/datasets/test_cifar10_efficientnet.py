import numpy as np
import pytest

from auxhash.experiments import datasets
from auxhash.experiments.datasets import cifar10, cifar10_efficientnet, efficientnet, embedded
from auxhash.experiments.datasets.fetch.sources import Collection

N = 60


@pytest.fixture
def tiny(folder, monkeypatch):
    """Sixty pictures, each of its number's brightness, and a network that sees its mean."""
    pixels = np.repeat(np.arange(N, dtype=np.uint8)[:, None], cifar10.PIXELS, 1)
    monkeypatch.setattr(cifar10, "read", lambda: (pixels, np.arange(N) % 10))
    monkeypatch.setattr(embedded, "check_installed", lambda: None)
    monkeypatch.setattr(embedded, "best_device", lambda: "abacus")
    monkeypatch.setattr(cifar10_efficientnet, "MODEL", Collection("network", (), ()))
    monkeypatch.setattr(cifar10_efficientnet, "SMALL_ROWS", 40)
    monkeypatch.setattr(efficientnet, "DIMENSION", 1)
    monkeypatch.setattr(
        efficientnet,
        "EfficientNet",
        lambda home, device: lambda images: images.mean((1, 2, 3))[:, None],
    )


@pytest.mark.parametrize(("name", "n"), [("", N), ("-small", 40)])
def test_features_labels_and_images_belong_together(tiny, name, n):
    data = datasets.load(f"cifar10-efficientnet{name}", n_train=20, n_query=10)
    numbers = np.concatenate([data.base.X, data.query.X])[:, 0]
    assert sorted(numbers) == list(range(n))
    for part in (data.train, data.base, data.query):
        np.testing.assert_array_equal(part.y, part.X[:, 0] % 10)
        np.testing.assert_array_equal(part.images[:, 5, 5, 0], part.X[:, 0])


def test_the_split_is_that_of_cifar10(tiny):
    features = datasets.load("cifar10-efficientnet", n_train=20, n_query=10)
    pixels = datasets.load("cifar10", n_train=20, n_query=10)
    np.testing.assert_array_equal(features.query.images, pixels.query.images)


def test_real_features_tell_the_classes_apart(real):
    real("cifar10-efficientnet-small", made=True)
    data = datasets.load("cifar10-efficientnet-small")
    unit = data.cosine()
    nearest = (unit.query.X @ unit.base.X.T).argmax(1)
    assert (data.base.y[nearest] == data.query.y).mean() > 0.6
