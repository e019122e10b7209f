"""Handwritten digits of 8 x 8 pixels, which come with scikit-learn: no download at all."""

import numpy as np

from auxhash.experiments.datasets.dataset import Dataset, Points, describe, split, within


def load(
    n_train: int | None = None, n_base: int | None = None, n_query: int = 297, seed: int = 0
) -> Dataset:
    """1,797 digits: queries are drawn at random, the others are base and training set."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    images = loaded.images.astype(np.uint8)  # 0..16
    points = Points(images.reshape(len(images), -1), loaded.target.astype(np.int64), images)
    rows = split(len(points), n_train, n_base, n_query, seed)
    train, base, query = (points.take(part) for part in rows)
    about = "handwritten digits of 8 x 8 pixels, queries drawn at random"
    protocol = describe("digits", about, train, base, query, within(train, base), seed)
    return Dataset("digits", train, base, query, protocol)
