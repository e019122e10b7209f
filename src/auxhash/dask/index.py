"""DaskIndex: exact search over codes in many partitions, each searched where it is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import MOST_BITS, Packed, n_bytes
from auxhash.compute import checks
from auxhash.compute.arrays import ArrayLike
from auxhash.compute.checks import ArgumentError
from auxhash.compute.cluster import Cluster
from auxhash.compute.words import count
from auxhash.dask.blocks import is_lazy, rows_of
from auxhash.search.index import HammingIndex
from auxhash.search.index.hamming import as_queries


class DaskIndex:
    """Packed codes of a dask array (n, ceil(n_bits / 8)), as of `DaskMACHash.encode`.

    Every partition is an index of its own, in the memory of its worker; only queries and results
    travel. Ids are row numbers. Results are those of one `HammingIndex` of all codes: nearest
    first, and at equal distance in the order of the rows.

    Args:
        codes: a dask array of uint8.
        n_bits: length of the codes.
        client: a `distributed.Client`; None takes the current one.
        timeout: of a partition for its index, and for one search, in seconds.
    """

    def __init__(
        self, codes: Any, n_bits: int, client: Any = None, timeout: float = 3600.0
    ) -> None:
        self.n_bits = checks.integer("n_bits", n_bits, 1, MOST_BITS)
        if not is_lazy(codes) or getattr(codes, "dtype", None) != np.uint8 or codes.ndim != 2:
            raise ArgumentError("codes must be a dask array of packed codes, uint8 of two axes")
        if codes.shape[1] != n_bytes(self.n_bits):
            raise ArgumentError(
                f"codes of {count(self.n_bits, 'bit')} have {n_bytes(self.n_bits)} bytes, got "
                f"shape {codes.shape}"
            )
        self._cluster = Cluster(client, checks.number("timeout", timeout, 0, strict=True))
        dask = self._cluster.client
        blocks = dask.compute(rows_of(codes, "codes"))
        sizes = self._results([dask.submit(len, block, pure=False) for block in blocks])
        firsts = np.cumsum([0, *sizes])
        self._shards = [
            dask.submit(_indexed, block, self.n_bits, int(first), pure=False)
            for block, first, size in zip(blocks, firsts, sizes, strict=False)
            if size
        ]
        self._n = int(firsts[-1])

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        shards = count(len(self._shards), "partition")
        return f"DaskIndex({count(len(self), 'code')} of {count(self.n_bits, 'bit')}, {shards})"

    def search(self, codes: ArrayLike, k: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return distances and ids of the k nearest codes, as `HammingIndex.search` does."""
        if not self._n:
            raise ValueError("the index is empty: its dask array holds no codes")
        queries, k = as_queries(codes, self.n_bits), checks.integer("k", k, 1)
        # A task, not `scatter`: Dask can compute it again if the worker that has it is lost.
        sent = self._cluster.client.submit(np.asarray, queries, pure=False)
        futures = [
            self._cluster.client.submit(_searched, shard, sent, k, pure=False)
            for shard in self._shards
        ]
        results = self._results(futures)
        distances, ids = (np.concatenate(part, axis=1) for part in zip(*results, strict=True))
        # Stable: ties stay in the order of the partitions, and so of the rows.
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(distances, nearest, 1), np.take_along_axis(ids, nearest, 1)

    def _results(self, futures: list[Any]) -> list[Any]:
        return [self._cluster.result(future, place) for place, future in enumerate(futures)]


def _indexed(codes: Packed, n_bits: int, first: int) -> HammingIndex:
    return HammingIndex(n_bits).add(codes, np.arange(first, first + len(codes)))


def _searched(
    index: HammingIndex, queries: Packed, k: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    return index.search(queries, k)
