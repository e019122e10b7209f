"""Exact search on a GPU: the codes stay in its memory, queries and results travel."""

from typing import Any

import numpy as np

from auxhash.codes import Packed, to_words
from auxhash.compute.device import Device
from auxhash.search.index import scan
from auxhash.search.index.scan import Distances, Planes, Positions

MAX_CANDIDATES = 4096  # per query, that are sorted together, as in scan.cu
CANDIDATES_PER_K = 4  # that a radius is estimated for
MIN_COUNTED = 8  # candidates in the sample of the codes that the estimate is made from
MAX_K = 512  # for which candidates are sorted together
MAX_BITS = 512  # of a code
QUERIES_PER_TILE, CODES_PER_THREAD = 64, 4  # as in scan.cu
QUERIES_PER_CALL = 16_384  # their candidates take 0.5 GB
MIN_SAMPLE = 4096  # codes that a radius is estimated from
BLOCKS_PER_QUERY = 8  # that count distances
SORTING_THREADS = 1024  # per block


def refusal(n_bits: int) -> str:
    """Return the reason why codes cannot be searched on a GPU, or "" if they can."""
    if n_bits <= MAX_BITS:
        return ""
    return f'on a GPU codes have at most {MAX_BITS} bits, got {n_bits}: search them on device="cpu"'


class DeviceCodes:
    """Codes of an index in the memory of a GPU."""

    def __init__(self, device: Device, planes: Planes, n: int) -> None:
        self.device, self.n = device, n
        device.check_room(8 * n * -(-len(planes) // 8), f"an index of {n:,} codes")
        self.words = device.put(to_words(np.ascontiguousarray(planes[:, :n].T)))

    def nearest(self, queries: Packed, k: int) -> tuple[Distances, Positions]:
        """Return the results of `scan.nearest`."""
        k = min(k, self.n)
        results = [
            self._nearest(self.device.put(to_words(queries[start : start + QUERIES_PER_CALL])), k)
            for start in range(0, len(queries), QUERIES_PER_CALL)
        ]
        if not results:
            return np.empty((0, k), np.int32), np.empty((0, k), np.int64)
        distances, positions = (np.concatenate(part) for part in zip(*results, strict=True))
        return distances, positions

    def _nearest(self, queries: Any, k: int) -> tuple[Distances, Positions]:
        """Return the k nearest of each query, by sorting the codes within a radius.

        The radius is estimated for each query, and counted exactly where the estimate holds too few
        codes, or too many. Where even that holds too many, as where thousands of codes are the
        same, all codes are sorted.
        """
        device, n = self.device, len(queries)
        distances, positions = np.empty((n, k), np.int32), np.empty((n, k), np.int64)
        left = np.arange(n)
        if k <= MAX_K:
            for wanted in (CANDIDATES_PER_K * k, 0):
                if len(left):
                    radius = self._radius(queries[device.put(left)], k, wanted)
                    done, *nearest = self._within(queries[device.put(left)], radius, k)
                    distances[left[done]], positions[left[done]] = nearest
                    left = left[~done]
        for q in left:
            distances[q], positions[q] = self._sorted(queries[int(q)], k)
        return distances, positions

    def _radius(self, queries: Any, k: int, wanted: int) -> Any:
        """Estimate, for each query, the radius of about `wanted` codes from a sample of them.

        For 0, return the exact distance of the k-th nearest.
        """
        device, widest = self.device, 64 * self.words.shape[1]
        stride = max(1, min(wanted // MIN_COUNTED, self.n // MIN_SAMPLE))
        bins = device.zeros((len(queries), widest + 1), np.uint32)
        n_words, parts = self.words.shape[1], BLOCKS_PER_QUERY
        arguments = self.words, self.n, queries, n_words, stride, parts, bins, widest
        device.kernels(scan.__file__)("histogram", len(queries) * parts, *arguments)
        enough = np.cumsum(bins, axis=1) >= (-(-wanted // stride) if wanted else k)
        return enough.argmax(axis=1).astype(np.int32)

    def _within(self, queries: Any, radius: Any, k: int) -> Any:
        """Return a mask of the queries with k codes or more within their radius, and not too many.

        With it, the distances and positions of the k nearest of these queries.
        """
        device, n = self.device, len(queries)
        keys, counts = self._candidates(queries, radius)
        distances, positions = device.empty((n, k), np.int32), device.empty((n, k), np.int64)
        arguments = keys, counts, MAX_CANDIDATES, k, distances, positions
        device.kernels(scan.__file__, SORTING_THREADS)("least", n, *arguments)
        done = device.fetch((counts >= k) & (counts <= MAX_CANDIDATES))
        return done, device.fetch(distances)[done], device.fetch(positions)[done]

    def _candidates(self, queries: Any, radius: Any) -> tuple[Any, Any]:
        """Return keys (n_queries, MAX_CANDIDATES) of codes within the radii, and their counts."""
        device, kernels = self.device, self.device.kernels(scan.__file__)
        keys = device.empty((len(queries), MAX_CANDIDATES), np.uint64)
        counts = device.zeros(len(queries), np.uint32)
        tiles = -(-len(queries) // QUERIES_PER_TILE)
        blocks = -(-self.n // (kernels.threads * CODES_PER_THREAD)) * tiles
        arguments = self.words, self.n, queries, len(queries), self.words.shape[1], radius
        kernels("gather", blocks, *arguments, keys, counts, MAX_CANDIDATES, tiles)
        return keys, counts

    def _sorted(self, query: Any, k: int) -> tuple[Distances, Positions]:
        """Return the k nearest of one query, by sorting the keys of all codes."""
        device = self.device
        keys = device.empty(self.n, np.uint64)
        arguments = self.words, self.n, query, self.words.shape[1], keys
        device.kernels(scan.__file__).over("all_keys", self.n, *arguments)
        least = device.fetch(np.sort(keys)[:k])
        distances, positions = least >> np.uint64(48), least & np.uint64((1 << 48) - 1)
        return distances.astype(np.int32), positions.astype(np.int64)
