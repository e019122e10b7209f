"""One pass over the base per query, which counts points and relevant points at each distance.

All retrieval measures are computed from these counts. Only where ties are to be kept in the order
of the base are they not enough: then the pass also walks down each ranking.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auxhash.compute import checks
from auxhash.codes import MOST_BITS, as_packed, common_bits
from auxhash.compute import device as devices
from auxhash.compute import threads
from auxhash.compute.arrays import Array
from auxhash.compute.kernels import kernel
from auxhash.search.index import scan

Ties = Literal["expected", "index"]
Counts = NDArray[np.int64]

CHUNK = 16  # queries
BATCH = 16  # chunks whose rankings are added up together
CHECKED = 512  # queries whose lists of neighbours are checked at once

# Kinds of labels, by NumPy's letter for a type; labels of the same kind can be compared.
_KINDS = {
    **dict.fromkeys("biuf", "numbers"),
    "U": "text",
    "S": "bytes",
    "M": "dates",
}


class Truth:
    """Which base points are relevant to which query: by label, or as lists of neighbours."""

    def __init__(
        self,
        query_labels: ArrayLike | None,
        base_labels: ArrayLike | None,
        neighbors: ArrayLike | None,
        n_queries: int,
        n_base: int,
    ) -> None:
        self.n_base = n_base
        labels = query_labels is not None, base_labels is not None
        if labels != ((neighbors is None,) * 2):
            raise ValueError("give query_labels and base_labels, or neighbors, and not both")
        self.neighbors = None if neighbors is None else _neighbors(neighbors, n_base)
        if self.neighbors is not None:
            self.rule = f"{self.neighbors.shape[1]} nearest neighbours"
            _same_length("query_codes", n_queries, "neighbors", len(self.neighbors))
            return
        query = checks.labels("query_labels", query_labels)
        base = checks.labels("base_labels", base_labels)
        _same_length("query_codes", n_queries, "query_labels", len(query))
        _same_length("base_codes", n_base, "base_labels", len(base))
        if query.ndim != base.ndim:
            raise ValueError("query_labels and base_labels must both be (n,) or both (n, n_labels)")
        if query.ndim == 1:
            self.rule = "same label"
            number = _numbered(query, base)
            # In a type as small as possible: bytes are compared sixteen and more at once.
            number = number.astype(np.min_scalar_type(int(number.max(initial=0))))
            self.query, self.base = number[:n_queries], number[n_queries:]
        else:
            self.rule = "a shared label"
            if query.shape[1] != base.shape[1]:
                raise ValueError(
                    f"query_labels have {query.shape[1]} columns, base_labels {base.shape[1]}"
                )
            self.query, self.base = _label_sets(query), _label_sets(base)

    def relevant(self, rows: slice) -> NDArray[np.uint8]:
        """1 where a base point is relevant to a query, else 0: (rows, n_base)."""
        if self.neighbors is not None:
            found = np.asarray(self.neighbors[rows], np.int64)
            mask = np.zeros((len(found), self.n_base), np.uint8)
            np.put_along_axis(mask, found, 1, axis=1)
            return mask
        query = self.query[rows]
        if query.ndim == 1:
            same: NDArray[np.bool_] = query[:, None] == self.base
            return same.view(np.uint8)
        shared = np.zeros((len(query), self.n_base), bool)
        for w in range(query.shape[1]):
            shared |= (query[:, w, None] & self.base[:, w]) != 0
        return shared.view(np.uint8)


@dataclass(frozen=True, eq=False)
class Walk:
    """Sums over rankings with ties in index order, as the measures need them."""

    hits: Counts  # (n_base,) relevant points at each rank, over all queries
    gains: Array  # (n_base,) the same, each divided by its query's number of relevant points
    precisions: Array  # (n_queries, n_cuts) sum of the precisions at relevant ranks up to each cut
    seen: Counts  # (n_queries, n_cuts) relevant points up to each cut


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts (n_queries, n_bits + 1) of points at each distance from each query."""

    found: Counts  # all points
    hits: Counts  # relevant points
    n_base: int
    rule: str  # what makes a point relevant
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
        return np.cumsum(self.found, axis=1) - self.found


def take(
    query_codes: ArrayLike,
    base_codes: ArrayLike,
    query_labels: ArrayLike | None = None,
    base_labels: ArrayLike | None = None,
    neighbors: ArrayLike | None = None,
    n_bits: int | None = None,
    ties: Ties = "expected",
    cuts: Sequence[int] | Counts = (),
    n_jobs: int | None = None,
    device: devices.DeviceName = "cpu",
) -> Tally:
    """Count points and relevant points at each distance from each query.

    Codes are packed uint8 or +-1; labels (n,) or indicators (n, n_labels). `cuts` are the rising
    ranks at which the walk (with ties in index order) records its sums.
    """
    query_codes, base_codes = devices.fetched(query_codes), devices.fetched(base_codes)
    query_labels, base_labels = devices.fetched(query_labels), devices.fetched(base_labels)
    if n_bits is None:
        n_bits = common_bits(query_codes=query_codes, base_codes=base_codes)
    n_bits = checks.whole("n_bits", n_bits, 1, MOST_BITS)
    query = scan.read_only(as_packed(query_codes, "query_codes", n_bits))
    base = as_packed(base_codes, "base_codes", n_bits)
    if not (len(query) and len(base)):
        raise ValueError("query_codes and base_codes must hold at least one code each")
    if ties not in ("expected", "index"):
        raise ValueError(f'ties must be "expected" or "index", got {ties!r}')
    truth = Truth(query_labels, base_labels, neighbors, len(query), len(base))
    stops = np.asarray(cuts, np.int64)
    from auxhash.search.metrics import gpu  # it imports this module

    on = devices.get(device, gpu.bytes_of(base), gpu.refusal(n_bits, ties))
    if on is not devices.CPU:
        counted = gpu.counts(on, query, base, truth, n_bits)
        return Tally(*counted, len(base), truth.rule, None, stops)
    planes = scan.to_planes(base)
    found, hits = (np.zeros((len(query), n_bits + 1), np.int64) for _ in range(2))
    precisions = np.zeros((len(query), len(stops)))
    seen = np.zeros((len(query), len(stops)), np.int64)

    def count(rows: slice) -> None:
        block, _ = scan.scratch(n_bits)
        _count(planes, query[rows], truth.relevant(rows), block, found[rows], hits[rows])

    def walk(rows: slice) -> tuple[Counts, Array]:
        block, _ = scan.scratch(n_bits)
        return _walk(  # type: ignore[no-any-return]
            planes,
            query[rows],
            truth.relevant(rows),
            np.empty(len(base), block.dtype),
            found[rows],
            hits[rows],
            stops,
            precisions[rows],
            seen[rows],
        )

    chunks = threads.chunks(len(query), CHUNK)
    walked = None
    with threads.pool(n_jobs) as run:
        if ties == "expected":
            run(count, chunks)
        else:
            rank_hits, gains = np.zeros(len(base), np.int64), np.zeros(len(base))
            for batch in threads.chunks(len(chunks), BATCH):
                for part_hits, part_gains in run(walk, chunks[batch]):
                    rank_hits += part_hits
                    gains += part_gains
            walked = Walk(rank_hits, gains, precisions, seen)
    return Tally(found, hits, len(base), truth.rule, walked, stops)


def _neighbors(neighbors: ArrayLike, n_base: int) -> NDArray[Any]:
    """The lists of neighbours, checked, in the array that they came in: it may be large."""
    array = np.asarray(neighbors)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError("neighbors must be positions in the base, of shape (n_queries, K)")
    if array.size and not (array.min() >= 0 and array.max() < n_base):
        raise ValueError(f"neighbors must lie in 0..{n_base - 1}")
    for rows in threads.chunks(len(array), CHECKED):
        rising = np.sort(array[rows], axis=1)
        twice = (rising[:, 1:] == rising[:, :-1]).any(axis=1)
        if twice.any():
            row = rows.start + int(np.flatnonzero(twice)[0])
            raise ValueError(f"neighbors must not name a point twice in one row, row {row} does")
    return array


def _numbered(query: NDArray[Any], base: NDArray[Any]) -> Counts:
    """Labels of queries, then base, as numbers 0, 1, ...: equal exactly where the labels are."""
    kinds = [_KINDS[labels.dtype.kind] for labels in (query, base)]
    if kinds[0] != kinds[1]:
        raise ValueError(f"query_labels are {kinds[0]} and base_labels {kinds[1]}: none are alike")
    common = np.result_type(query, base)
    wide = [a.dtype.kind in "iu" and a.dtype.itemsize == 8 for a in (query, base)]
    if common.kind != "f" or not any(wide):
        joined = np.concatenate([query, base])
        return np.asarray(np.unique(joined, return_inverse=True)[1])
    # As a common float type, 64-bit whole numbers would be rounded; Python compares exactly.
    number: dict[Any, int] = {}
    parts = []
    for labels in (query, base):
        values, inverse = np.unique(labels, return_inverse=True)
        some = [number.setdefault(value, len(number)) for value in values.tolist()]
        parts.append(np.array(some, np.int64)[inverse])
    return np.concatenate(parts)


def _label_sets(labels: NDArray[Any]) -> NDArray[Any]:
    """Sets of labels as bits, in words as narrow as possible: (n, n_words)."""
    packed = np.packbits(labels.astype(bool), axis=1)
    width = min(8, 1 << max(0, packed.shape[1] - 1).bit_length())  # bytes per word
    padded = np.zeros((len(packed), -(-packed.shape[1] // width) * width), np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(f"u{width}")


def _same_length(name: str, n: int, other: str, m: int) -> None:
    if n != m:
        raise ValueError(f"{n} {name} do not fit {m} {other}")


@kernel
def _add(block: Any, relevant: Any, key: Any, bins: Any, found: Any, hits: Any) -> None:
    """Add a block of distances to the counts.

    Points are counted in four tables in turn: neighbouring points often share a distance, and in
    one table each addition would wait for the last. Four keys are read as one word. A key is at
    most 2 * n_bits + 1, which MOST_BITS keeps to 16 bits.
    """
    n, width = len(relevant), len(found)
    for i in range(n):
        key[i] = np.uint16(block[i]) + np.uint16(width) * np.uint16(relevant[i])
    bins[:] = 0
    b0, b1, b2, b3 = bins[0], bins[1], bins[2], bins[3]
    whole = n - n % 4
    fours = key[:whole].view(np.uint64)
    low, one = np.uint64(0xFFFF), np.int32(1)
    for i in range(len(fours)):
        four = fours[i]
        b0[four & low] += one
        b1[(four >> np.uint64(16)) & low] += one
        b2[(four >> np.uint64(32)) & low] += one
        b3[four >> np.uint64(48)] += one
    for i in range(whole, n):
        b0[key[i]] += one
    for d in range(width):
        good = b0[width + d] + b1[width + d] + b2[width + d] + b3[width + d]
        found[d] += good + b0[d] + b1[d] + b2[d] + b3[d]
        hits[d] += good


@kernel
def _count(planes: Any, queries: Any, relevant: Any, block: Any, found: Any, hits: Any) -> None:
    n = planes.shape[1]
    key, bins = np.empty(len(block), np.uint16), np.empty((4, 2 * found.shape[1]), np.int32)
    for start in range(0, n, len(block)):
        stop = min(n, start + len(block))
        for q in range(len(queries)):
            scan.measure(planes, start, stop, queries[q], block)
            _add(block, relevant[q, start:stop], key, bins, found[q], hits[q])


@kernel
def _walk(
    planes: Any,
    queries: Any,
    relevant: Any,
    distance: Any,
    found: Any,
    hits: Any,
    cuts: Any,
    precisions: Any,
    seen: Any,
) -> Any:
    """Count, then walk down each ranking; `cuts` must rise."""
    n = planes.shape[1]
    rank_hits, gains = np.zeros(n, np.int64), np.zeros(n)
    ranked = np.empty(n, np.uint8)
    key, bins = np.empty(n, np.uint16), np.empty((4, 2 * found.shape[1]), np.int32)
    for q in range(len(queries)):
        scan.measure(planes, 0, n, queries[q], distance)
        _add(distance, relevant[q], key, bins, found[q], hits[q])
        place = np.cumsum(found[q]) - found[q]
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
