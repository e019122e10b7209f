"""One pass over the base per query, which counts points and relevant points at each distance.

All retrieval measures are computed from these counts. Only where ties are to be kept in the order
of the base are they not enough: then the pass also walks down each ranking.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from auxhash.codes import MAX_BITS, as_packed, common_bits
from auxhash.compute import checks, threads
from auxhash.compute import device as devices
from auxhash.compute.arrays import AnyArray, Array, ArrayLike
from auxhash.compute.kernels import kernel
from auxhash.search.index import scan
from auxhash.search.metrics import gpu
from auxhash.search.metrics.truth import Counts, Truth

Ties = Literal["expected", "index"]

QUERIES_PER_TASK = 16
TASKS_PER_BATCH = 16  # whose rankings are added up together


@dataclass(frozen=True, eq=False)
class Walk:
    """Sums over rankings with ties in index order, as the measures need them."""

    hits: Counts  # (n_base,) relevant points at each rank, over all queries
    gains: Array  # (n_base,) these hits, each divided by its query's number of relevant points
    precisions: Array  # (n_queries, n_cuts) sum of the precisions at relevant ranks up to each cut
    seen: Counts  # (n_queries, n_cuts) relevant points up to each cut


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts (n_queries, n_bits + 1) of points at each distance from each query."""

    points: Counts  # all points
    hits: Counts  # relevant points
    n_base: int
    rule: str  # that makes a point relevant
    walk: Walk | None  # only for ties in index order
    cuts: Counts  # ranks at which the walk records its sums

    @property
    def relevant(self) -> Counts:
        """Number of relevant points of each query."""
        total: Counts = self.hits.sum(axis=1)
        return total

    @property
    def before(self) -> Counts:
        """Number of points nearer than each distance."""
        return np.cumsum(self.points, axis=1) - self.points


def take(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    neighbors: ArrayLike | None = None,
    device: devices.DeviceName = "cpu",
    n_bits: int | None = None,
    ties: Ties = "expected",
    cuts: Sequence[int] | Counts = (),
) -> Tally:
    """Count points and relevant points at each distance from each query.

    Codes are packed uint8 or +-1; labels (n,) or indicators (n, n_labels). `cuts` are the rising
    ranks at which the walk (with ties in index order) records its sums.
    """
    query_codes, base_codes = devices.fetched(query_codes), devices.fetched(base_codes)
    query_labels, base_labels = devices.fetched(query_labels), devices.fetched(base_labels)
    if n_bits is None:
        n_bits = common_bits(query_codes=query_codes, base_codes=base_codes)
    n_bits = checks.integer("n_bits", n_bits, 1, MAX_BITS)
    query = scan.read_only(as_packed(query_codes, "query_codes", n_bits))
    base = as_packed(base_codes, "base_codes", n_bits)
    if not (len(query) and len(base)):
        raise ValueError("query_codes and base_codes must hold at least one code each")
    checks.one_of("ties", ties, get_args(Ties))
    truth = Truth(query_labels, base_labels, neighbors, len(query), len(base))
    stops = np.asarray(cuts, np.int64)
    on = devices.get(device, gpu.bytes_of(base), gpu.refusal(n_bits, ties))
    if on is not devices.CPU:
        counted = gpu.counts(on, query, base, truth, n_bits)
        return Tally(*counted, len(base), truth.rule, None, stops)
    planes = scan.to_planes(base)
    points, hits = (np.zeros((len(query), n_bits + 1), np.int64) for _ in range(2))
    precisions = np.zeros((len(query), len(stops)))
    seen = np.zeros((len(query), len(stops)), np.int64)

    def count(rows: slice) -> None:
        block, _ = scan.scratch(n_bits)
        _count(planes, query[rows], truth.relevant(rows), block, points[rows], hits[rows])

    def walk(rows: slice) -> tuple[Counts, Array]:
        block, _ = scan.scratch(n_bits)
        distance, out = np.empty(len(base), block.dtype), (points[rows], hits[rows])
        at_cuts = stops, precisions[rows], seen[rows]
        own: tuple[Counts, Array] = _walk(
            planes, query[rows], truth.relevant(rows), distance, *out, *at_cuts
        )
        return own

    chunks = threads.chunks(len(query), QUERIES_PER_TASK)
    walked = None
    with threads.pool() as run:
        if ties == "expected":
            run(count, chunks)
        else:
            rank_hits, gains = np.zeros(len(base), np.int64), np.zeros(len(base))
            for batch in threads.chunks(len(chunks), TASKS_PER_BATCH):
                for part_hits, part_gains in run(walk, chunks[batch]):
                    rank_hits += part_hits
                    gains += part_gains
            walked = Walk(rank_hits, gains, precisions, seen)
    return Tally(points, hits, len(base), truth.rule, walked, stops)


@kernel
def _add(
    block: AnyArray, relevant: AnyArray, key: AnyArray, bins: AnyArray, points: Counts, hits: Counts
) -> None:
    """Add a block of distances to the counts.

    Points are counted in four tables in turn: neighbouring points often share a distance, and in
    one table each addition would wait for the last. Four keys are read as one word. A key is at
    most 2 * n_bits + 1, which MAX_BITS keeps to 16 bits.
    """
    n, width = len(relevant), len(points)
    for i in range(n):
        key[i] = np.uint16(block[i]) + np.uint16(width) * np.uint16(relevant[i])
    bins[:] = 0
    b0, b1, b2, b3 = bins[0], bins[1], bins[2], bins[3]
    stop = n - n % 4
    fours = key[:stop].view(np.uint64)
    low, one = np.uint64(0xFFFF), np.int32(1)
    for i in range(len(fours)):
        four = fours[i]
        b0[four & low] += one
        b1[(four >> np.uint64(16)) & low] += one
        b2[(four >> np.uint64(32)) & low] += one
        b3[four >> np.uint64(48)] += one
    for i in range(stop, n):
        b0[key[i]] += one
    for d in range(width):
        good = b0[width + d] + b1[width + d] + b2[width + d] + b3[width + d]
        points[d] += good + b0[d] + b1[d] + b2[d] + b3[d]
        hits[d] += good


@kernel
def _count(
    planes: scan.Planes,
    queries: AnyArray,
    relevant: AnyArray,
    block: AnyArray,
    points: Counts,
    hits: Counts,
) -> None:
    n = planes.shape[1]
    key, bins = np.empty(len(block), np.uint16), np.empty((4, 2 * points.shape[1]), np.int32)
    for start in range(0, n, len(block)):
        stop = min(n, start + len(block))
        for q in range(len(queries)):
            scan.measure(planes, start, stop, queries[q], block)
            _add(block, relevant[q, start:stop], key, bins, points[q], hits[q])


@kernel
def _walk(
    planes: scan.Planes,
    queries: AnyArray,
    relevant: AnyArray,
    distance: AnyArray,
    points: Counts,
    hits: Counts,
    cuts: AnyArray,
    precisions: AnyArray,
    seen: AnyArray,
) -> tuple[Counts, Array]:
    """Count, then walk down each ranking; `cuts` must rise."""
    n = planes.shape[1]
    rank_hits, gains = np.zeros(n, np.int64), np.zeros(n)
    ranked = np.empty(n, np.uint8)
    key, bins = np.empty(n, np.uint16), np.empty((4, 2 * points.shape[1]), np.int32)
    for q in range(len(queries)):
        scan.measure(planes, 0, n, queries[q], distance)
        _add(distance, relevant[q], key, bins, points[q], hits[q])
        place = np.cumsum(points[q]) - points[q]
        for i in range(n):
            ranked[place[distance[i]]] = relevant[q, i]
            place[distance[i]] += 1
        total, so_far, precision, c = hits[q].sum(), 0, 0.0, 0
        for at in range(n):
            if ranked[at]:
                so_far += 1
                precision += so_far / (at + 1)
                rank_hits[at] += 1
                gains[at] += 1 / total
            while c < len(cuts) and cuts[c] == at + 1:
                precisions[q, c], seen[q, c] = precision, so_far
                c += 1
    return rank_hits, gains
