"""Exact search on a GPU: the codes stay in its memory, queries and results travel."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed, to_words
from auxhash.compute.arrays import AnyArray
from auxhash.compute.device import Device
from auxhash.search.index import scan, tablescan
from auxhash.search.index.scan import Distances, Planes, Positions
from auxhash.search.index.tables import TableDistances, Tables

MAX_CANDIDATES = 4096  # per query, that are sorted together, as in scan.cu
CANDIDATES_PER_K = 4  # that a radius is estimated for
MIN_SAMPLED_CANDIDATES = 8  # in the sample of the codes that the estimate is made from
MAX_K = 512  # for which candidates are sorted together
MAX_GPU_BITS = 512  # of a code
QUERIES_PER_TILE, CODES_PER_THREAD = 64, 4  # as in scan.cu
QUERIES_PER_CALL = 16_384  # their candidates take 0.5 GB
MIN_SAMPLED_CODES = 4096  # that a radius is estimated from
BLOCKS_PER_QUERY = 8  # that count distances
SORTING_THREADS_PER_BLOCK = 1024
TABLES_PER_CALL = 1 << 18  # of single bytes, 1 kB each
TABLE_BINS, TABLE_CODES_PER_THREAD = 1024, 16  # as in tablescan.cu
MAX_TABLE_CODES = 1 << 32  # whose positions fit into a key


def refusal(n_bits: int) -> str:
    """Return the reason why codes cannot be searched on a GPU, or "" if they can."""
    if n_bits <= MAX_GPU_BITS:
        return ""
    return (
        f"on a GPU codes have at most {MAX_GPU_BITS} bits, got {n_bits}: search them on "
        'device="cpu"'
    )


class DeviceQueries(Protocol):
    """Queries on a GPU, with what compares them to codes.

    A key is a distance and a position in one number, so that keys rise as the results do. A bin is
    a whole number that never falls as the distance rises.
    """

    widest: int  # bin

    def __len__(self) -> int: ...

    def take(self, rows: slice | AnyArray) -> "DeviceQueries":
        """Return the queries of these rows."""
        ...

    def histogram(self, stride: int, bins: AnyArray) -> None:
        """Count every `stride`-th code in bins (n_queries, widest + 1)."""
        ...

    def gather(self, radius: AnyArray, keys: AnyArray, counts: AnyArray) -> None:
        """Append the keys of all codes whose bin is at most radius (n_queries,), and count them."""
        ...

    def all_keys(self, keys: AnyArray) -> None:
        """Write the keys (n,) of all codes, for a single query."""
        ...

    def unpack(self, keys: AnyArray) -> tuple[Distances | TableDistances, Positions]:
        """Return the distances and positions of keys, which are in the processor's memory."""
        ...


class DeviceCodes:
    """Codes of an index in the memory of a GPU."""

    def __init__(self, device: Device, planes: Planes, n: int) -> None:
        self.device, self.n, self.n_bytes = device, n, len(planes)
        device.check_room(8 * n * -(-len(planes) // 8), f"an index of {n:,} codes")
        self.words = device.put(to_words(np.ascontiguousarray(planes[:, :n].T)))

    def nearest(self, queries: Packed, k: int) -> tuple[Distances, Positions]:
        """Return the results of `scan.nearest`."""
        k = min(k, self.n)
        distances = np.empty((len(queries), k), np.int32)
        positions = np.empty((len(queries), k), np.int64)
        for start in range(0, len(queries), QUERIES_PER_CALL):
            rows = slice(start, start + QUERIES_PER_CALL)
            asked = HammingQueries(self, self.device.put(to_words(queries[rows])))
            self._nearest(asked, distances[rows], positions[rows])
        return distances, positions

    def nearest_by_tables(self, tables: Tables, k: int) -> tuple[TableDistances, Positions]:
        """Return the results of `tablescan.nearest`."""
        if self.n > MAX_TABLE_CODES:
            raise ValueError(
                f"on a GPU at most {MAX_TABLE_CODES:,} codes are searched by tables, got {self.n:,}"
            )
        k = min(k, self.n)
        distances = np.empty((len(tables), k), np.float32)
        positions = np.empty((len(tables), k), np.int64)
        size = min(QUERIES_PER_CALL, TABLES_PER_CALL // self.n_bytes)
        for start in range(0, len(tables), size):
            rows = slice(start, start + size)
            asked = TableQueries(self, self.device.put(tables[rows]))
            self._nearest(asked, distances[rows], positions[rows])
        return distances, positions

    def _nearest(self, asked: DeviceQueries, distances: AnyArray, positions: AnyArray) -> None:
        """Write the k nearest (n_queries, k) of each query, by sorting the codes within a radius.

        The radius is estimated for each query, and counted exactly where the estimate holds too few
        codes, or too many. Where even that holds too many, as where thousands of codes are the
        same, all codes are sorted.
        """
        left, k = np.arange(len(asked)), distances.shape[1]
        if k <= MAX_K:
            for wanted in (CANDIDATES_PER_K * k, 0):
                if len(left):
                    some = asked.take(self.device.put(left))
                    done, keys = self._within(some, self._radius(some, k, wanted), k)
                    distances[left[done]], positions[left[done]] = asked.unpack(keys)
                    left = left[~done]
        for q in left:
            keys = self._sorted(asked.take(slice(q, q + 1)), k)
            distances[q], positions[q] = asked.unpack(keys)

    def _radius(self, asked: DeviceQueries, k: int, wanted: int) -> Any:
        """Estimate, for each query, the radius of about `wanted` codes from a sample of them.

        For 0, return the exact bin of the k-th nearest.
        """
        stride = max(1, min(wanted // MIN_SAMPLED_CANDIDATES, self.n // MIN_SAMPLED_CODES))
        bins = self.device.zeros((len(asked), asked.widest + 1), np.uint32)
        asked.histogram(stride, bins)
        enough = np.cumsum(bins, axis=1) >= (-(-wanted // stride) if wanted else k)
        return enough.argmax(axis=1).astype(np.int32)

    def _within(
        self, asked: DeviceQueries, radius: AnyArray, k: int
    ) -> tuple[NDArray[np.bool_], AnyArray]:
        """Return a mask of the queries with k codes or more within their radius, and not too many.

        With it, the keys of the k nearest of these queries.
        """
        device, n = self.device, len(asked)
        keys, least = device.empty((n, MAX_CANDIDATES), np.uint64), device.empty((n, k), np.uint64)
        counts = device.zeros(n, np.uint32)
        asked.gather(radius, keys, counts)
        arguments = keys, counts, MAX_CANDIDATES, k, least
        device.kernels(scan.__file__, SORTING_THREADS_PER_BLOCK)("least", n, *arguments)
        done = device.fetch((counts >= k) & (counts <= MAX_CANDIDATES))
        return done, device.fetch(least)[done]

    def _sorted(self, asked: DeviceQueries, k: int) -> Any:
        """Return the keys of the k nearest of one query, by sorting those of all codes."""
        keys = self.device.empty(self.n, np.uint64)
        asked.all_keys(keys)
        return self.device.fetch(np.sort(keys)[:k])


class HammingQueries:
    """Packed queries, as words (n_queries, n_words), compared by Hamming distance."""

    def __init__(self, codes: DeviceCodes, queries: AnyArray) -> None:
        self.codes, self.queries = codes, queries
        self.widest = 64 * codes.words.shape[1]
        self.kernels = codes.device.kernels(scan.__file__)

    def __len__(self) -> int:
        return len(self.queries)

    def take(self, rows: slice | AnyArray) -> "HammingQueries":
        return HammingQueries(self.codes, self.queries[rows])

    def histogram(self, stride: int, bins: AnyArray) -> None:
        parts = BLOCKS_PER_QUERY
        arguments = self.queries, self._n_words, stride, parts, bins, self.widest
        self.kernels("histogram", len(self) * parts, *self._base, *arguments)

    def gather(self, radius: AnyArray, keys: AnyArray, counts: AnyArray) -> None:
        tiles = -(-len(self) // QUERIES_PER_TILE)
        blocks = -(-self.codes.n // (self.kernels.threads * CODES_PER_THREAD)) * tiles
        arguments = self.queries, len(self), self._n_words, radius, keys, counts
        self.kernels("gather", blocks, *self._base, *arguments, keys.shape[1], tiles)

    def all_keys(self, keys: AnyArray) -> None:
        arguments = *self._base, self.queries, self._n_words, keys
        self.kernels.over("all_keys", self.codes.n, *arguments)

    def unpack(self, keys: AnyArray) -> tuple[Distances, Positions]:
        distances, positions = keys >> np.uint64(48), keys & np.uint64((1 << 48) - 1)
        return distances.astype(np.int32), positions.astype(np.int64)

    @property
    def _base(self) -> tuple[AnyArray, int]:
        return self.codes.words, self.codes.n

    @property
    def _n_words(self) -> int:
        return int(self.codes.words.shape[1])


class TableQueries:
    """Tables of distances (n_queries, n_bytes, 256)."""

    widest = TABLE_BINS - 1

    def __init__(self, codes: DeviceCodes, tables: AnyArray) -> None:
        self.codes, self.tables = codes, tables
        self.kernels = codes.device.kernels(tablescan.__file__)
        # Bins are of equal width, from the least sum that the tables allow to the largest.
        least, largest = tables.min(axis=2).sum(axis=1), tables.max(axis=2).sum(axis=1)
        width = (largest - least) / np.float32(TABLE_BINS)
        per_width = 1 / np.maximum(width, np.float32(1e-30))
        self.bins = least, np.where(width > 0, per_width, np.float32(0))

    def __len__(self) -> int:
        return len(self.tables)

    def take(self, rows: slice | AnyArray) -> "TableQueries":
        return TableQueries(self.codes, self.tables[rows])

    def histogram(self, stride: int, bins: AnyArray) -> None:
        parts = BLOCKS_PER_QUERY
        self.kernels("histogram", len(self) * parts, *self._arguments, stride, parts, bins)

    def gather(self, radius: AnyArray, keys: AnyArray, counts: AnyArray) -> None:
        parts = -(-self.codes.n // (self.kernels.threads * TABLE_CODES_PER_THREAD))
        arguments = *self._arguments, radius, keys, counts, keys.shape[1], parts
        self.kernels("gather", len(self) * parts, *arguments)

    def all_keys(self, keys: AnyArray) -> None:
        each = self.kernels.threads * TABLE_CODES_PER_THREAD
        self.kernels("all_keys", -(-self.codes.n // each), *self._arguments, keys)

    def unpack(self, keys: AnyArray) -> tuple[TableDistances, Positions]:
        high = (keys >> np.uint64(32)).astype(np.uint32)
        sign = np.uint32(1 << 31)
        bits = np.where(high & sign, high ^ sign, ~high)  # the reverse of `key` in tablescan.cu
        return bits.view(np.float32), (keys & np.uint64((1 << 32) - 1)).astype(np.int64)

    @property
    def _arguments(self) -> tuple[object, ...]:
        codes = self.codes
        return codes.words, codes.n, codes.words.shape[1], self.tables, codes.n_bytes, *self.bins
