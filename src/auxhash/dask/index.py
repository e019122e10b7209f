"""DaskIndex: exact search over codes in many partitions, each searched where it is."""

from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.typing import DaskCollection
from distributed import Client, Future
from numpy.typing import NDArray

from auxhash.codes import MAX_BITS, Packed, n_bytes
from auxhash.compute import checks
from auxhash.compute.arrays import AnyArray, ArrayLike
from auxhash.compute.checks import ArgumentError
from auxhash.compute.cluster import Cluster
from auxhash.compute.words import count
from auxhash.dask.blocks import is_lazy, rows_of
from auxhash.search.index import HammingIndex
from auxhash.search.index.hamming import as_queries


class DaskIndex:
    """Packed codes of a dask array (n, ceil(n_bits / 8)), as of `DaskMACHash.encode`.

    Every partition is an index of its own, in the memory of its worker; only queries and results
    travel. Results are those of one `HammingIndex` of all codes: nearest first, and at equal
    distance in the order of the rows.

    Args:
        codes: a dask array of uint8.
        n_bits: length of the codes.
        client: a `distributed.Client`; None takes the current one.
        timeout: of a partition for its index, and for one search, in seconds.
        ids: a dask array or series of whole numbers or text, one per code, which results have in
            place of row numbers; text in arrays of objects.
    """

    def __init__(
        self,
        codes: da.Array,
        n_bits: int,
        client: Client | None = None,
        timeout: float = 3600.0,
        ids: DaskCollection | None = None,
    ) -> None:
        self.n_bits = checks.integer("n_bits", n_bits, 1, MAX_BITS)
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
        names = [None] * len(blocks) if ids is None else self._names(ids, sizes)
        self._shards = [
            dask.submit(_indexed, block, self.n_bits, int(first), own, pure=False)
            for block, first, own, size in zip(blocks, firsts[:-1], names, sizes, strict=True)
            if size
        ]
        self._n = int(firsts[-1])

    def _names(self, ids: DaskCollection, sizes: list[int]) -> list[Future]:
        """Return the checked ids of each partition, as futures; ArgumentError if cut otherwise."""
        if not is_lazy(ids):
            raise ArgumentError("ids must be a dask array or series, cut as the codes are")
        if hasattr(ids, "chunks") and not np.isnan(ids.chunks[0]).any():
            ids = ids.rechunk({0: tuple(sizes)}) if sum(ids.chunks[0]) == sum(sizes) else ids
        dask = self._cluster.client
        blocks = dask.compute(rows_of(ids, "ids"))
        names = [dask.submit(checks.any_ids, "ids", block, pure=False) for block in blocks]
        kinds = self._results([dask.submit(_kind, each, pure=False) for each in names])
        if [n for n, _ in kinds] != list(sizes):
            raise ArgumentError(
                f"ids must be one per code, cut alike: partitions of {[n for n, _ in kinds]} ids "
                f"and {list(sizes)} codes"
            )
        if len({text for n, text in kinds if n}) > 1:
            raise ArgumentError("ids must be all whole numbers or all text, and are mixed")
        return names

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        shards = count(len(self._shards), "partition")
        return f"DaskIndex({count(len(self), 'code')} of {count(self.n_bits, 'bit')}, {shards})"

    def search(self, codes: ArrayLike, k: int) -> tuple[NDArray[np.int32], AnyArray]:
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

    def _results(self, futures: list[Future]) -> list[Any]:
        return [self._cluster.result(future, place) for place, future in enumerate(futures)]


class _Shard(NamedTuple):
    """Codes of a partition, numbered by their rows, and their ids."""

    codes: HammingIndex
    ids: AnyArray


def _indexed(codes: Packed, n_bits: int, first: int, ids: AnyArray | None) -> _Shard:
    names = np.arange(first, first + len(codes)) if ids is None else ids
    return _Shard(HammingIndex(n_bits).add(codes), names)


def _kind(ids: AnyArray) -> tuple[int, bool]:
    """Return the number of ids, and whether they are text."""
    return len(ids), ids.dtype == object


def _searched(shard: _Shard, queries: Packed, k: int) -> tuple[NDArray[np.int32], AnyArray]:
    distances, rows = shard.codes.search(queries, k)
    return distances, shard.ids[rows]
