"""CIFAR-10 in GIST features: 320 numbers per grey image, computed once and kept on disk."""

from pathlib import Path

import numpy as np

from auxhash.compute.arrays import AnyArray
from auxhash.experiments.datasets import cifar10
from auxhash.experiments.datasets.dataset import Dataset, Points, describe, split, within
from auxhash.experiments.datasets.fetch import cache
from auxhash.files.gist import gist

FILES = cifar10.FILES
FEATURES = "gist-320-v1.npy"  # raise the version when the numbers change


def load(
    n_train: int | None = 10_000, n_base: int | None = None, n_query: int = 2_000, seed: int = 0
) -> Dataset:
    """The split of `cifar10` for the same seed, in GIST features and with the images."""
    pixels, labels = cifar10.read()
    X = features()
    rows = split(len(pixels), n_train, n_base, n_query, seed)
    train, base, query = (
        Points(X[part], labels[part], cifar10.as_images(pixels[part])) for part in rows
    )
    about = "GIST of grey images (8 + 8 + 4 orientations, 4 x 4 grid), queries drawn at random"
    protocol = describe("cifar10-gist", about, train, base, query, within(train, base), seed)
    return Dataset("cifar10-gist", train, base, query, protocol)


def features() -> AnyArray:
    """GIST (60,000, 320) of all images in the order of `cifar10.read`; computed if missing."""
    pixels, _ = cifar10.read()

    def make(path: Path) -> None:
        with path.open("wb") as out:
            np.save(out, gist(cifar10.as_grey(pixels)))

    stored = cache.obtain(cache.folder() / "cifar10-gist" / FEATURES, make)
    if stored.shape != (len(pixels), 320):
        raise ValueError(f"{FEATURES} in the cache has shape {stored.shape}; delete it")
    return stored
