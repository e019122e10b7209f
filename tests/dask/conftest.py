"""Clusters of this machine, and points to learn from."""

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

FEW_PAIRS = {"n_bits": 8, "n_similar": 10, "n_dissimilar": 20, "max_iter": 3, "random_state": 0}


def cluster_of(n_workers, processes, n_threads=1):
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=n_threads,
        processes=processes,
        dashboard_address=":0",
    )


@pytest.fixture(scope="session")
def client():
    """Two workers in this process."""
    with cluster_of(2, processes=False) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="session")
def points():
    """500 points of three classes, in random order."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 500)
    return rng.normal(size=(500, 6)) + 2 * np.eye(3, 6)[y], y


def cut(X, y, n_parts):
    """X and y as dask arrays of so many partitions."""
    size = -(-len(X) // n_parts)
    return da.from_array(X, chunks=(size, -1)), da.from_array(np.asarray(y), chunks=size)


def lazily(blocks):
    """A dask array that takes all blocks for ones like the first, which they need not be."""
    first = np.asarray(blocks[0])
    made = [
        da.from_delayed(dask.delayed(np.array)(block), (np.nan, *first.shape[1:]), first.dtype)
        for block in blocks
    ]
    return da.concatenate(made, allow_unknown_chunksizes=True)
