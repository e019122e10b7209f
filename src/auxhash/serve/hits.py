"""Hits of queries, checked against the points that are read after the search."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed
from auxhash.compute.arrays import AnyArray, Array
from auxhash.search.index.rerank import by_vectors
from auxhash.search.index.tables import Tables, table_distances
from auxhash.serve.refused import RefusedError, invalid
from auxhash.serve.schemas import json_id
from auxhash.stores import Having, Point
from auxhash.stores.ids import AnyIds, Id, order_of, rising
from auxhash.stores.store import Among

BYTES_PER_STEP = 4 << 20  # of vectors whose distances are computed at once


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Distances and ids of the hits of one query, nearest first."""

    distances: AnyArray  # int32 of codes, float32 by tables, float64 of vectors
    ids: AnyIds
    cut: bool = False  # whether the limit left out more


@dataclass(frozen=True, eq=False)
class QueryCodes:
    """Codes of queries, with their vectors where they have any, and tables to search by."""

    codes: Packed
    vectors: Array | None = None
    tables: Tables | None = None  # in place of Hamming distances

    def distances(self, rows: NDArray[np.int64], codes: Packed) -> AnyArray:
        """Return the distances (n,) of codes (n, n_bytes) to the queries of rows (n,)."""
        if self.tables is not None:
            return table_distances(self.tables, rows, codes)
        return np.asarray(np.bitwise_count(codes ^ self.codes[rows]).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Hits of all queries as arrays, in the order of the ids: a range of ids is a slice."""

    ids: AnyIds
    queries: NDArray[np.int64]  # rows
    distances: AnyArray  # of the codes

    @classmethod
    def of(cls, near: Sequence[Neighbours]) -> "Pairs":
        ids = np.concatenate([each.ids for each in near])
        queries = np.repeat(np.arange(len(near)), [len(each.ids) for each in near])
        order = order_of(ids)
        distances = np.concatenate([each.distances for each in near])
        return cls(ids[order], queries[order], distances[order])

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, which: slice | NDArray[np.int64]) -> "Pairs":
        """Return the pairs of these positions, in their order."""
        return Pairs(self.ids[which], self.queries[which], self.distances[which])

    def within(self, part: AnyIds) -> slice:
        """Return the slice of hits whose ids lie between the first and the last of rising ids."""
        start = np.searchsorted(self.ids, part[0])
        return slice(int(start), int(np.searchsorted(self.ids, part[-1], "right")))

    def fit(self, points: Mapping[Id, Point], queries: QueryCodes) -> bool:
        """Return True if the points are present, with the codes that the search has seen."""
        names = rising(self.ids)
        rows = np.searchsorted(names, self.ids)
        if not all(name in points for name in names.tolist()):
            return False
        codes = np.stack([points[name].code for name in names.tolist()])
        return bool((queries.distances(self.queries, codes[rows]) == self.distances).all())

    def measured(
        self,
        points: Mapping[Id, Point],
        queries: Array,
        metric: Literal["euclidean", "cosine"],
    ) -> NDArray[np.float64]:
        """Return the distances (n,) between the vectors of queries (n_queries, D) and points."""
        names = rising(self.ids)
        rows = np.searchsorted(names, self.ids)
        vectors = np.array([_vector(name, points, queries.shape[1]) for name in names.tolist()])
        distances = np.empty(len(self))
        size = max(1, BYTES_PER_STEP // (8 * queries.shape[1]))
        for start in range(0, len(self), size):
            step = slice(start, start + size)
            own = queries[self.queries[step]]
            distances[step] = by_vectors(rows[step, None], own, vectors, None, metric)[0][:, 0]
        return distances

    def nearest(self, distances: NDArray[np.float64], k: int) -> NDArray[np.int64]:
        """Return the positions of the k nearest of each query, by query, distance and id."""
        order = np.lexsort((distances, self.queries))  # stable: ties stay in the order of the ids
        rank = np.arange(len(order)) - np.searchsorted(self.queries[order], self.queries[order])
        return order[rank < k]

    def apart(self, distances: NDArray[np.float64], n_queries: int) -> list[Neighbours]:
        """Split the hits, which come one query after the other, by query."""
        stops = np.searchsorted(self.queries, np.arange(1, n_queries))
        both = zip(np.split(distances, stops), np.split(self.ids, stops), strict=True)
        return [Neighbours(own, ids) for own, ids in both]


class Payloads:
    """Payloads of hits as JSON by id, up to `max_bytes` in the response."""

    def __init__(self, among: Among, max_bytes: int) -> None:
        self._among, self._max_bytes = among, max_bytes
        self.texts: dict[Id, bytes] = {}
        self._size = 0

    def add(self, points: Mapping[Id, Point]) -> bool:
        """Add the payloads of points; return False if the filter no longer chooses a point."""
        for name, point in points.items():
            if isinstance(self._among, Having) and not self._among.holds(point.payload):
                return False
            self.texts[name] = json.dumps(point.payload, allow_nan=False).encode()
            self._size += len(self.texts[name])
            self._check(self._size)
        return True

    def check(self, near: Sequence[Neighbours]) -> None:
        """Refuse a response that would be too large: a point may be a hit of many queries."""
        self._check(sum(len(self.texts[name]) for each in near for name in each.ids.tolist()))

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            raise invalid(
                f"the payloads must be at most {self._max_bytes:,} bytes in an answer: ask for "
                "fewer, or in several requests"
            )


def _vector(name: Id, points: Mapping[Id, Point], n: int) -> Array:
    vector = points[name].vector
    if vector is None:
        raise RefusedError(409, f"point {name} was put in as a code: it has no vector")
    if len(vector) != n:
        raise RefusedError(
            409, f"point {name} has a vector of {len(vector)} numbers, and the queries' are of {n}"
        )
    return vector


def to_json(
    about: Mapping[str, object], near: Sequence[Neighbours], payloads: Mapping[Id, bytes] | None
) -> bytes:
    """Return the response as JSON, `about` before the results; payloads by id are JSON already."""
    results = (_result(each, payloads) for each in near)
    return b'%b, "results": [%b]}' % (json.dumps(about).encode()[:-1], b", ".join(results))


def _result(near: Neighbours, payloads: Mapping[Id, bytes] | None) -> bytes:
    hits = []
    for name, distance in zip(near.ids.tolist(), near.distances.tolist(), strict=True):
        hit = json.dumps({"id": json_id(name), "distance": distance}, allow_nan=False).encode()
        hits.append(hit if payloads is None else b'%b, "payload": %b}' % (hit[:-1], payloads[name]))
    return b'{"hits": [%b], "cut": %b}' % (b", ".join(hits), json.dumps(near.cut).encode())
