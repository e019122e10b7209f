"""Hits: what queries have found, checked against the points read after the search."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Packed
from auxhash.compute.arrays import Array
from auxhash.search.index.rerank import by_vectors
from auxhash.search.index.state import Ids
from auxhash.serve.refused import RefusedError, wrong
from auxhash.serve.schemas import id_told
from auxhash.stores import Having, Point
from auxhash.stores.store import Among

MEASURED = 4 << 20  # bytes of vectors whose distances are computed at once


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Distances and ids that a query found, nearest first, and whether more were left out."""

    distances: NDArray[Any]
    ids: Ids
    cut: bool = False


@dataclass(frozen=True, eq=False)
class Pairs:
    """All hits of all queries as arrays, in the order of the ids: parts of the ids are slices."""

    ids: Ids
    queries: NDArray[np.int64]  # rows
    distances: NDArray[Any]  # of the codes

    @classmethod
    def of(cls, near: Sequence[Neighbours]) -> "Pairs":
        ids = np.concatenate([each.ids for each in near])
        queries = np.repeat(np.arange(len(near)), [len(each.ids) for each in near])
        order = np.argsort(ids, kind="stable")
        distances = np.concatenate([each.distances for each in near])
        return cls(ids[order], queries[order], distances[order])

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, which: Any) -> "Pairs":
        """Some of them, in their order."""
        return Pairs(self.ids[which], self.queries[which], self.distances[which])

    def within(self, part: Ids) -> slice:
        """Where the hits are whose ids lie between the first and the last of rising ids."""
        start = np.searchsorted(self.ids, part[0])
        return slice(int(start), int(np.searchsorted(self.ids, part[-1], "right")))

    def fit(self, points: Mapping[int, Point], queries: Packed) -> bool:
        """Whether the points are there, with the codes that the search has seen."""
        names, rows = np.unique(self.ids, return_inverse=True)
        if not all(name in points for name in names.tolist()):
            return False
        codes = np.stack([points[name].code for name in names.tolist()])
        far = np.bitwise_count(codes[rows] ^ queries[self.queries]).sum(axis=1)
        return bool((far == self.distances).all())

    def measured(
        self,
        points: Mapping[int, Point],
        queries: Array,
        metric: Literal["euclidean", "cosine"],
    ) -> NDArray[np.float64]:
        """Distances (n,) of the vectors of queries (n_queries, D) and points."""
        names, rows = np.unique(self.ids, return_inverse=True)
        vectors = np.array([_vector(name, points, queries.shape[1]) for name in names.tolist()])
        found = np.empty(len(self))
        size = max(1, MEASURED // (8 * queries.shape[1]))
        for start in range(0, len(self), size):
            some = slice(start, start + size)
            asked = queries[self.queries[some]]
            found[some] = by_vectors(rows[some, None], asked, vectors, None, metric)[0][:, 0]
        return found

    def nearest(self, distances: NDArray[np.float64], k: int) -> NDArray[np.int64]:
        """Which are the k nearest of each query by these distances: by query, distance and id."""
        order = np.lexsort((self.ids, distances, self.queries))
        rank = np.arange(len(order)) - np.searchsorted(self.queries[order], self.queries[order])
        return order[rank < k]

    def apart(self, distances: NDArray[np.float64], n_queries: int) -> list[Neighbours]:
        """The hits of each query, which come one query after the other."""
        stops = np.searchsorted(self.queries, np.arange(1, n_queries))
        both = zip(np.split(distances, stops), np.split(self.ids, stops), strict=True)
        return [Neighbours(far, ids) for far, ids in both]


class Payloads:
    """Payloads of hits as JSON by id, up to so many bytes in the answer."""

    def __init__(self, among: Among, most: int) -> None:
        self._among, self._most = among, most
        self.texts: dict[int, bytes] = {}
        self._size = 0

    def add(self, points: Mapping[int, Point]) -> bool:
        """Take those of points; False if a point is no longer one that the filter chooses."""
        for name, point in points.items():
            if isinstance(self._among, Having) and not self._among.holds(point.payload):
                return False
            self.texts[name] = json.dumps(point.payload, allow_nan=False).encode()
            self._size += len(self.texts[name])
            self._check(self._size)
        return True

    def check(self, near: Sequence[Neighbours]) -> None:
        """Refuse an answer that would be too large: a point may be a hit of many queries."""
        self._check(sum(len(self.texts[name]) for each in near for name in each.ids.tolist()))

    def _check(self, size: int) -> None:
        if size > self._most:
            raise wrong(
                f"the payloads must be at most {self._most:,} bytes in an answer: ask for fewer, "
                "or in several requests"
            )


def _vector(name: int, points: Mapping[int, Point], n: int) -> Array:
    vector = points[name].vector
    if vector is None:
        raise RefusedError(409, f"point {name} was put in as a code: it has no vector")
    if len(vector) != n:
        raise RefusedError(
            409, f"point {name} has a vector of {len(vector)} numbers, and the queries' are of {n}"
        )
    return vector


def written(by: str, near: Sequence[Neighbours], payloads: Mapping[int, bytes] | None) -> bytes:
    """The answer as JSON; payloads by id are JSON already."""
    results = (_result(each, payloads) for each in near)
    return b'{"by": %b, "results": [%b]}' % (json.dumps(by).encode(), b", ".join(results))


def _result(near: Neighbours, payloads: Mapping[int, bytes] | None) -> bytes:
    both = zip(near.ids.tolist(), near.distances.tolist(), strict=True)
    hits = []
    for name, far in both:
        hit = json.dumps({"id": id_told(name), "distance": far}, allow_nan=False).encode()
        hits.append(hit if payloads is None else b'%b, "payload": %b}' % (hit[:-1], payloads[name]))
    return b'{"hits": [%b], "cut": %b}' % (b", ".join(hits), json.dumps(near.cut).encode())
