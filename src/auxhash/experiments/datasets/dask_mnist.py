"""Infinite MNIST as dask arrays: every block is made by the worker that needs it."""

from functools import cache
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from auxhash.compute import checks
from auxhash.experiments.datasets import infinite_mnist as digits
from auxhash.experiments.datasets.infinite_mnist import SIDE, InfiniteMNIST


def infinite_mnist(n: int, rows: int = 10_000, seed: int = 0) -> tuple[da.Array, da.Array]:
    """Images 0..n-1 of infinite MNIST, uint8 (n, 784), and their labels, in blocks of `rows`.

    They are those of `datasets.load("infinite-mnist", n_base=n, seed=seed).base`. Nothing of them
    passes through the client: a worker makes a block when it needs it, from MNIST's files, which it
    fetches where they are not on its machine (AUXHASH_DATA says where).
    """
    n, rows = checks.integer("n", n, 1), checks.integer("rows", rows, 1)
    seed = checks.integer("seed", seed, 0)
    sizes = tuple(min(rows, n - first) for first in range(0, n, rows))
    X = da.map_blocks(
        *(_pixels, seed),
        chunks=(sizes, (SIDE**2,)),
        dtype=np.uint8,
        meta=np.empty((0, 0), np.uint8),
    )
    y = da.map_blocks(*(_labels, seed), chunks=(sizes,), dtype=np.int64, meta=np.empty(0, np.int64))
    return X, y


@cache
def _source(seed: int) -> InfiniteMNIST:
    return digits.training_images(seed, n_jobs=1)


def _numbers(block: Any) -> NDArray[np.int64]:
    """The numbers of the images of a block, by what dask says of it."""
    first, last = block[None]["array-location"][0]
    return np.arange(first, last)


def _pixels(seed: int, block_info: Any) -> NDArray[np.uint8]:
    return _source(seed).images(_numbers(block_info)).reshape(-1, SIDE**2)


def _labels(seed: int, block_info: Any) -> NDArray[np.int64]:
    return _source(seed).label(_numbers(block_info))
