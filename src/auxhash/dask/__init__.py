"""Training, encoding and search on a Dask cluster: the data stays, the model travels.

part        on a worker: one partition, which trains together with the others
rounds      on the client: requests of the partitions, and recovery of lost ones
learning    the program of a partition in the training of a `MACHash`
blocks      dask collections as partitions, checked before anything is trained
machash     `DaskMACHash`
neighborhash   `DaskNeighborHash`: a sample of all partitions, learnt from on one worker
distribution   the base class of both
lazy        outputs of a fitted model for dask collections
index       `DaskIndex`, exact search over partitions
watching    the progress bar, and Ctrl-C
"""

from importlib import import_module
from typing import Any

from auxhash.compute.extras import install

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"auxhash.dask needs dask and distributed ({error}): {install('cluster')}"
    ) from None

from auxhash.compute.cluster import ClusterError
from auxhash.dask.index import DaskIndex
from auxhash.dask.machash import DaskMACHash
from auxhash.dask.neighborhash import DaskNeighborHash
from auxhash.dask.rounds import Traffic

__all__ = [
    "ClusterError",
    "DaskIndex",
    "DaskMACHash",
    "DaskNeighborHash",
    "Traffic",
    "infinite_mnist",
]


def __getattr__(name: str) -> Any:
    if name == "infinite_mnist":  # a data set on a cluster; it lives with the other data sets
        return import_module("auxhash.experiments.datasets.dask_mnist").infinite_mnist
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
