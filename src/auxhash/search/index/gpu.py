"""Exact search on a GPU: the codes stay in its memory, queries and results travel."""

from typing import Any

import numpy as np

from auxhash.codes import Packed, to_words
from auxhash.compute.device import Device
from auxhash.search.index import scan
from auxhash.search.index.scan import Distances, Planes, Positions

ROOM = 4096  # candidates per query that are sorted together, as in scan.cu
GUESS = 4  # times k: candidates that a radius is guessed for
COUNTED = 8  # of these in the part of the codes that the guess is made from
MOST = 512  # k, for which candidates can be sorted together
LONGEST = 512  # bits of a code
TILE, HELD = 64, 4  # queries and codes, as in scan.cu
QUERIES = 16_384  # at a time: their candidates take 0.5 GB
LEAST = 4096  # codes that a radius is found from, at least
PARTS = 8  # blocks per query that count distances
SORTING = 1024  # threads per block


def refusal(n_bits: int) -> str:
    """Why codes cannot be searched on a GPU, if they are too long; else empty."""
    if n_bits <= LONGEST:
        return ""
    return f'on a GPU codes have at most {LONGEST} bits, got {n_bits}: search them on device="cpu"'


class DeviceCodes:
    """The codes of an index in the memory of a GPU."""

    def __init__(self, device: Device, planes: Planes, n: int) -> None:
        self.device, self.n = device, n
        device.check_room(8 * n * -(-len(planes) // 8), f"an index of {n:,} codes")
        self.words = device.put(to_words(np.ascontiguousarray(planes[:, :n].T)))

    def nearest(self, queries: Packed, k: int) -> tuple[Distances, Positions]:
        """As `scan.nearest`."""
        k = min(k, self.n)
        found = [
            self._nearest(self.device.put(to_words(queries[start : start + QUERIES])), k)
            for start in range(0, len(queries), QUERIES)
        ]
        if not found:
            return np.empty((0, k), np.int32), np.empty((0, k), np.int64)
        distances, positions = (np.concatenate(part) for part in zip(*found, strict=True))
        return distances, positions

    def _nearest(self, queries: Any, k: int) -> tuple[Distances, Positions]:
        """A radius is guessed for each query; where it holds too few codes, or too many, counted.

        What holds too many even then, as where thousands of codes are the same, is sorted whole.
        """
        device, n = self.device, len(queries)
        distances, positions = np.empty((n, k), np.int32), np.empty((n, k), np.int64)
        left = np.arange(n)
        if k <= MOST:
            for share in (GUESS * k, 0):
                if len(left):
                    radius = self._radius(queries[device.put(left)], k, share)
                    fine, *found = self._within(queries[device.put(left)], radius, k)
                    distances[left[fine]], positions[left[fine]] = found
                    left = left[~fine]
        for q in left:
            distances[q], positions[q] = self._sorted(queries[int(q)], k)
        return distances, positions

    def _radius(self, queries: Any, k: int, wanted: int) -> Any:
        """For each query, one that holds about `wanted` codes by a part of them; or, for 0, the
        distance of the k-th nearest."""
        device, widest = self.device, 64 * self.words.shape[1]
        stride = max(1, min(wanted // COUNTED, self.n // LEAST))
        bins = device.zeros((len(queries), widest + 1), np.uint32)
        given = self.words, self.n, queries, self.words.shape[1], stride, PARTS, bins, widest
        device.kernels(scan.__file__)("histogram", len(queries) * PARTS, *given)
        enough = np.cumsum(bins, axis=1) >= (-(-wanted // stride) if wanted else k)
        return enough.argmax(axis=1).astype(np.int32)

    def _within(self, queries: Any, radius: Any, k: int) -> Any:
        """Which queries have at least k codes within their radius, and not too many; and of these
        the k nearest."""
        device, n = self.device, len(queries)
        keys, found = self._candidates(queries, radius)
        distances, positions = device.empty((n, k), np.int32), device.empty((n, k), np.int64)
        out = keys, found, ROOM, k, distances, positions
        device.kernels(scan.__file__, SORTING)("least", n, *out)
        fine = device.fetch((found >= k) & (found <= ROOM))
        return fine, device.fetch(distances)[fine], device.fetch(positions)[fine]

    def _candidates(self, queries: Any, radius: Any) -> tuple[Any, Any]:
        """Keys (queries, ROOM) of the codes within the radii, unordered, and their numbers."""
        device, kernels = self.device, self.device.kernels(scan.__file__)
        keys = device.empty((len(queries), ROOM), np.uint64)
        found = device.zeros(len(queries), np.uint32)
        tiles = -(-len(queries) // TILE)
        blocks = -(-self.n // (kernels.threads * HELD)) * tiles
        given = self.words, self.n, queries, len(queries), self.words.shape[1], radius
        kernels("gather", blocks, *given, keys, found, ROOM, tiles)
        return keys, found

    def _sorted(self, query: Any, k: int) -> tuple[Distances, Positions]:
        """The k nearest of one query, by sorting the keys of all codes."""
        device = self.device
        keys = device.empty(self.n, np.uint64)
        given = self.words, self.n, query, self.words.shape[1], keys
        device.kernels(scan.__file__).over("all_keys", self.n, *given)
        least = device.fetch(np.sort(keys)[:k])
        return (least >> np.uint64(48)).astype(np.int32), (least & np.uint64((1 << 48) - 1)).astype(
            np.int64
        )
