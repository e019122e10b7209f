"""Multi-index hashing: radius search by table look-up instead of a scan, for small radii.

Cut a code into m parts of 16 bits. Two codes at distance r or less differ in at most r // m bits
of some part, so one table per part finds all of them: one bucket per part for r < m, and also the
16 buckets one bit away for r < 2m. The distances of the codes in these buckets are then computed.
A query whose buckets hold too many codes (learned codes crowd) is scanned instead. The result is
always exact.
"""

import numpy as np

from auxhash.codes import Packed, popcount
from auxhash.compute import threads
from auxhash.compute.arrays import AnyArray
from auxhash.compute.kernels import kernel
from auxhash.search.index import scan

PART_BITS = 16
BUCKETS = 1 << PART_BITS
MIN_CODES = 1 << 17  # with fewer, a scan is as quick
SCANS_PER_TABLE = 40  # that take as long as making one table
SCANNED_PER_LOOKUP = 512  # codes that are scanned in the time of looking up one
QUERIES_PER_TASK = 64


class MultiIndex:
    """Tables over the first n codes of `planes` (n_bytes, capacity)."""

    def __init__(self, planes: scan.Planes, n: int) -> None:
        m = n_parts(len(planes))
        self.planes, self.n = planes, n
        self.start = np.zeros((m, BUCKETS + 1), np.int64)
        self.order = np.empty((m, n), np.uint32)
        with threads.pool() as run:
            run(self._build, range(m))

    def _build(self, part: int) -> None:
        low, high = self.planes[2 * part], self.planes[2 * part + 1]
        _table(low, high, self.n, self.start[part], self.order[part])

    @property
    def farthest(self) -> int:
        """Largest radius that the tables can answer."""
        return 2 * len(self.start) - 1

    @staticmethod
    def pays(n: int, n_queries: int, radius: int, n_bytes: int) -> bool:
        """Return True if making the tables and looking up `n_queries` is quicker than scanning."""
        m = n_parts(n_bytes)
        enough = MIN_CODES <= n < 1 << 32 and n_queries >= SCANS_PER_TABLE * m
        return enough and radius < 2 * m

    def within(
        self, queries: Packed, radius: int
    ) -> tuple[list[scan.Distances], list[scan.Positions]]:
        """Return the results of `scan.within`."""
        cost = np.empty(len(queries), np.int64)
        reach = radius // len(self.start)

        def search(rows: slice) -> tuple[scan.Positions, scan.Distances, scan.Positions]:
            return _look_up(
                self.planes, queries[rows], radius, reach, self.start, self.order, cost[rows]
            )

        parts = threads.run_kernels(search, threads.chunks(len(queries), QUERIES_PER_TASK))
        distances: list[scan.Distances] = []
        positions: list[scan.Positions] = []
        for stops, near, where in parts:
            distances += np.split(near, stops[:-1])
            positions += np.split(where, stops[:-1])
        crowded = np.flatnonzero(cost < 0)
        if len(crowded):
            scanned = scan.within(self.planes, self.n, queries[crowded], radius)
            for q, near, where in zip(crowded, *scanned, strict=True):
                distances[q], positions[q] = near, where
        return distances, positions


def n_parts(n_bytes: int) -> int:
    """Return the number of parts of 16 bits; results are exact without an odd last byte."""
    return n_bytes // 2


@kernel
def _table(low: AnyArray, high: AnyArray, n: int, start: AnyArray, order: AnyArray) -> None:
    """Sort codes by their keys into `order`: those of key v are order[start[v]:start[v + 1]]."""
    for i in range(n):
        start[np.int64(low[i]) + 256 * np.int64(high[i]) + 1] += 1
    for v in range(BUCKETS):
        start[v + 1] += start[v]
    place = start[:-1].copy()
    for i in range(n):
        key = np.int64(low[i]) + 256 * np.int64(high[i])
        order[place[key]] = i
        place[key] += 1


@kernel
def _distance(
    planes: AnyArray, code: int, query: AnyArray, first: int, last: int, most: int
) -> np.int64:
    """Return the distance over the bytes first..last-1, or, above `most`, any larger number."""
    d = np.uint64(0)
    for p in range(first, last):
        d += popcount(np.uint64(planes[p, code] ^ query[p]))
        if np.int64(d) > most:
            break
    return np.int64(d)


@kernel
def _bucket(query: AnyArray, part: int, probe: int) -> np.int64:
    """Return the query's own bucket for probe 0, and those one bit away for probes 1..16."""
    key = np.int64(query[2 * part]) + 256 * np.int64(query[2 * part + 1])
    return key if probe == 0 else key ^ (1 << (probe - 1))


@kernel
def _look_up(
    planes: AnyArray,
    queries: AnyArray,
    radius: int,
    reach: int,
    start: AnyArray,
    order: AnyArray,
    cost: AnyArray,
) -> tuple[scan.Positions, scan.Distances, scan.Positions]:
    """Return the stops of each query's results, distances, positions; cost -1 asks for a scan."""
    m, n, n_bytes = len(start), order.shape[1], len(planes)
    probes = 1 + PART_BITS * reach
    stops = np.zeros(len(queries), np.int64)
    keys = np.empty(1024, np.int64)  # distance * n + position
    count = 0
    for q in range(len(queries)):
        query, first = queries[q], count
        cost[q] = 0
        for part in range(m):
            for probe in range(probes):
                v = _bucket(query, part, probe)
                cost[q] += start[part, v + 1] - start[part, v]
        if cost[q] * SCANNED_PER_LOOKUP > n:
            cost[q] = -1
            stops[q] = count
            continue
        while count + cost[q] > len(keys):
            keys = scan.grown(keys)
        for part in range(m):
            for probe in range(probes):
                v = _bucket(query, part, probe)
                for at in range(start[part, v], start[part, v + 1]):
                    code = order[part, at]
                    seen = False  # an earlier part has found it
                    for e in range(part):
                        if _distance(planes, code, query, 2 * e, 2 * e + 2, PART_BITS) <= reach:
                            seen = True
                    if seen:
                        continue
                    d = _distance(planes, code, query, 0, n_bytes, radius)
                    if d <= radius:
                        keys[count] = d * n + code
                        count += 1
        keys[first:count].sort()
        stops[q] = count
    distances, positions = np.empty(count, np.int32), np.empty(count, np.int64)
    for i in range(count):
        distances[i] = keys[i] // n
        positions[i] = keys[i] % n
    return stops, distances, positions
