"""Service: a model and a store, and what a client can ask of them.

It knows nothing of HTTP. What cannot be answered raises RefusedError with the reason.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from auxhash.codes import Packed, as_packed, n_bytes
from auxhash.compute.arrays import Array
from auxhash.compute.version import __version__
from auxhash.search.index.held import first_twice
from auxhash.search.index.rerank import by_vectors
from auxhash.serve.limits import Limits
from auxhash.serve.refused import RefusedError, later, wrong
from auxhash.serve.schemas import Filter, GivenPoint, Queries, id_told
from auxhash.stores import Having, Point, Store
from auxhash.stores.store import Among

if TYPE_CHECKING:
    from auxhash.learn.encoder import Encoder
    from auxhash.learn.hasher import Hasher
    from auxhash.serve.pictures import Pictures

K = 10


@dataclass(frozen=True)
class Wanted:
    """Queries as codes, with their vectors where they have any."""

    codes: Packed
    vectors: Array | None


@dataclass(frozen=True)
class Neighbours:
    """Distances and ids that a query found, nearest first, and whether more were left out."""

    distances: list[int] | list[float]
    ids: list[int]
    cut: bool = False


class Service:
    """Answers from a store of codes; any thread may ask.

    Args:
        encoder: makes codes of vectors; without, there are only codes.
        pictures: makes vectors of images, for the encoder.
    """

    def __init__(
        self,
        store: Store,
        encoder: "Encoder | Hasher | None" = None,
        pictures: "Pictures | None" = None,
        limits: Limits | None = None,
    ) -> None:
        if encoder is not None and encoder.n_bits != store.n_bits:
            raise ValueError(
                f"the model makes codes of {encoder.n_bits} bits, and {store.url} holds codes of "
                f"{store.n_bits}"
            )
        self.store, self.limits = store, limits or Limits()
        self._encoder, self._pictures = encoder, pictures

    def close(self) -> None:
        self.store.close()

    def info(self) -> dict[str, Any]:
        return {
            "name": "auxhash",
            "version": __version__,
            "store": self.store.url.partition(":")[0],
            "points": self.store.count(),
            "n_bits": self.store.n_bits,
            "n_features": self._n_features,
            "images": self._pictures is not None,
            "keeps_points": self.store.keeps_points,
            "limits": self.limits.told(),
        }

    def upsert(self, points: Sequence[GivenPoint]) -> int:
        """Put points in, all or none; when it returns, they are committed."""
        self._check_batch("points", points)
        ids = np.array([point.id for point in points], np.int64)
        twice = first_twice(ids)
        if twice is not None:
            raise wrong(f"points must not name an id twice, {twice} does")
        vectors = [point.vector for point in points]
        payloads = [point.payload for point in points]
        codes = self._codes_of(points)
        if self.store.keeps_points:
            self.store.upsert(ids, codes, vectors, payloads)
        elif any(payload is not None for payload in payloads):
            raise wrong(f"a store of {self._engine} holds codes only, and no payloads")
        else:
            self.store.upsert(ids, codes)
        return len(ids)

    def delete(self, ids: Sequence[int]) -> int:
        self._check_batch("ids", ids)
        return self.store.delete(np.array(ids, np.int64))

    def point(self, name: int) -> Point:
        found = self.store.read([name])
        if name not in found:
            raise RefusedError(404, f"there is no point {name}")
        return found[name]

    def query(self, asked: Queries) -> dict[str, Any]:
        """The neighbours of each query."""
        self._check_asked(asked)
        wanted, among = self._wanted(asked), self._among(asked.filter)
        found = None
        for hold in (False, True):  # points are read after the search: none may change between
            with self.store.still() if hold else nullcontext():
                found = self._found(asked, wanted, among)
            if found is not None:
                break
        if found is None:
            raise later("other programs changed the points during the query: ask again")
        near, points = found
        results = [
            {"hits": self._hits(each, points, asked.with_payload), "cut": each.cut} for each in near
        ]
        return {
            "by": "hamming" if asked.rerank is None else self._metric(asked),
            "results": results,
        }

    def _metric(self, asked: Queries) -> Literal["euclidean", "cosine"]:
        """Of re-ranking: as asked for, or else the one that the model was learnt for."""
        learnt = getattr(self._encoder, "metric", None)
        return asked.metric or (learnt if learnt in ("euclidean", "cosine") else "euclidean")

    def _hits(
        self, near: Neighbours, points: dict[int, Point], with_payload: bool
    ) -> list[dict[str, Any]]:
        both = zip(near.ids, near.distances, strict=True)
        hits: list[dict[str, Any]] = [{"id": id_told(name), "distance": far} for name, far in both]
        if with_payload:
            for hit, name in zip(hits, near.ids, strict=True):
                hit["payload"] = points[name].payload
        return hits

    def _found(
        self, asked: Queries, wanted: Wanted, among: Among
    ) -> tuple[list[Neighbours], dict[int, Point]] | None:
        """What each query finds, and the points found; None if these have changed meanwhile."""
        if asked.radius is None:
            k = K if asked.k is None else asked.k
            found = list(zip(*self._nearest(asked, wanted, among, k), strict=True))
            near = [Neighbours(far.tolist(), ids.tolist()) for far, ids in found]
        else:
            limit = self.limits.k if asked.limit is None else asked.limit
            both = self.store.search_radius(wanted.codes, asked.radius, among)
            near = [
                Neighbours(far[:limit].tolist(), ids[:limit].tolist(), len(ids) > limit)
                for far, ids in zip(*both, strict=True)
            ]
        if asked.rerank is None and not asked.with_payload:
            return near, {}
        every = sorted({name for each in near for name in each.ids})
        points = self.store.read(
            np.array(every, np.int64), asked.rerank is not None, asked.with_payload
        )
        if not self._unchanged(near, wanted.codes, points, among, asked.with_payload):
            return None
        if asked.rerank is not None:
            near = self._reranked(asked, wanted, near, points)
        return near, points

    def _nearest(self, asked: Queries, wanted: Wanted, among: Among, k: int) -> tuple[Any, Any]:
        candidates = k if asked.rerank is None else max(k, asked.rerank)
        return self.store.search(wanted.codes, candidates, among)

    def _unchanged(
        self,
        near: list[Neighbours],
        queries: Packed,
        points: dict[int, Point],
        among: Among,
        with_payload: bool,
    ) -> bool:
        """Whether the points are still those that the search has seen."""
        for each, query in zip(near, queries, strict=True):
            if not all(name in points for name in each.ids):
                return False
            if each.ids:
                codes = np.stack([points[name].code for name in each.ids])
                if np.bitwise_count(codes ^ query).sum(axis=1).tolist() != each.distances:
                    return False
        if with_payload and isinstance(among, Having):
            return all(among.holds(points[name].payload) for each in near for name in each.ids)
        return True

    def _reranked(
        self, asked: Queries, wanted: Wanted, near: list[Neighbours], points: dict[int, Point]
    ) -> list[Neighbours]:
        k = K if asked.k is None else asked.k
        if not near[0].ids:
            return near
        assert wanted.vectors is not None
        names = sorted(points)
        vectors = [points[name].vector for name in names]
        for name, vector in zip(names, vectors, strict=True):
            if vector is None:
                raise RefusedError(409, f"point {name} was put in as a code: it has no vector")
            if len(vector) != wanted.vectors.shape[1]:
                raise RefusedError(
                    409,
                    f"point {name} has a vector of {len(vector)} numbers, and the queries' are of "
                    f"{wanted.vectors.shape[1]}",
                )
        rows = np.searchsorted(names, np.array([each.ids for each in near], np.int64))
        # Candidates come by id, so that vectors at equal distance do.
        rows.sort(axis=1)
        distances, order = by_vectors(
            rows, wanted.vectors, np.array(vectors), k, self._metric(asked)
        )
        ids = np.array(names, np.int64)[order]
        return [
            Neighbours(far.tolist(), which.tolist())
            for far, which in zip(distances, ids, strict=True)
        ]

    def _check_asked(self, asked: Queries) -> None:
        """Refuse what would be too much work."""
        given = asked.vectors or asked.codes or asked.images or asked.ids or []
        self._check_batch("queries", given)
        most = self.limits
        k = K if asked.k is None else asked.k
        if asked.k is not None and k > most.k:
            raise wrong(f"k must be at most {most.k:,}, got {k:,}")
        if asked.limit is not None and asked.limit > most.k:
            raise wrong(f"limit must be at most {most.k:,}, got {asked.limit:,}")
        if asked.rerank is not None and asked.rerank > most.candidates:
            raise wrong(f"rerank must be at most {most.candidates:,}, got {asked.rerank:,}")
        if asked.rerank is not None and not self.store.keeps_points:
            raise wrong(f"a store of {self._engine} holds codes only: it cannot re-rank")
        each = max(k, asked.rerank or 0)
        if asked.radius is not None:
            each = most.k if asked.limit is None else asked.limit
        if len(given) > 1 and len(given) * each > most.found:
            raise wrong(
                f"{len(given):,} queries for {each:,} each are too many, at most {most.found:,} "
                "together: ask for fewer, or in several requests"
            )
        if asked.filter is not None and asked.filter.ids is not None:
            self._check_batch("filter.ids", asked.filter.ids, 100)

    def _check_batch(self, name: str, given: Sequence[Any], times: int = 1) -> None:
        most = times * self.limits.batch
        if len(given) > most:
            raise wrong(f"{name} must be at most {most:,} in one request, got {len(given):,}")

    def _among(self, chosen: Filter | None) -> Among:
        if chosen is None:
            return None
        if chosen.ids is not None:
            return np.array(chosen.ids, np.int64)
        assert chosen.field is not None
        values = chosen.values if chosen.value is None else [chosen.value]
        assert values is not None
        return Having(chosen.field, tuple(values))

    def _wanted(self, asked: Queries) -> Wanted:
        if asked.codes is not None:
            return Wanted(self._packed("codes", asked.codes), None)
        if asked.ids is not None:
            return self._wanted_of_points(asked.ids, vectors=asked.rerank is not None)
        if asked.images is not None:
            if self._pictures is None or self._encoder is None:
                raise wrong("images cannot be queries: the model was not learnt from pictures")
            X = self._pictures.vectors(asked.images, self.limits)
        else:
            assert asked.vectors is not None
            X = self._matrix("vectors", asked.vectors)
        if self._encoder is None:
            raise wrong("vectors cannot be queries: the service has no model; give codes")
        return Wanted(self._encoder.encode(X), X)

    def _wanted_of_points(self, ids: Sequence[int], vectors: bool) -> Wanted:
        points = self.store.read(np.array(ids, np.int64), vectors, payloads=False)
        for name in ids:
            if name not in points:
                raise RefusedError(404, f"there is no point {name}")
            if vectors and points[name].vector is None:
                raise RefusedError(409, f"point {name} was put in as a code: it has no vector")
        codes = np.stack([points[name].code for name in ids])
        given = [vector for name in ids if (vector := points[name].vector) is not None]
        if len({len(vector) for vector in given}) > 1:
            raise RefusedError(409, "the points have vectors of different lengths")
        return Wanted(codes, np.stack(given) if vectors else None)

    def _codes_of(self, points: Sequence[GivenPoint]) -> Packed:
        """The given codes, and those that the model makes of vectors."""
        codes = np.zeros((len(points), n_bytes(self.store.n_bits)), np.uint8)
        given = [i for i, point in enumerate(points) if point.code is not None]
        made = [i for i, point in enumerate(points) if point.code is None]
        if given:
            codes[given] = self._packed("code", [points[i].code or "" for i in given])
        for point in points:
            self._check_length("vector", point.vector)
        if made:
            if self._encoder is None:
                raise wrong("a point needs a code: the service has no model that makes one")
            codes[made] = self._encoder.encode(
                np.array([points[i].vector for i in made], np.float64)
            )
        return codes

    def _matrix(self, name: str, vectors: Sequence[Sequence[float]]) -> Array:
        for vector in vectors:
            self._check_length(name, vector)
        if len({len(vector) for vector in vectors}) > 1:
            raise wrong(f"{name} must be of the same length")
        return np.array(vectors, np.float64)

    def _check_length(self, name: str, vector: Sequence[float] | None) -> None:
        n, most = self._n_features, self.limits.dimensions
        if vector is None:
            return
        if n is not None and len(vector) != n:
            raise wrong(f"{name} must be {n:,} numbers, as the model takes, got {len(vector):,}")
        if n is None and len(vector) > most:
            raise wrong(f"{name} must be at most {most:,} numbers, got {len(vector):,}")

    def _packed(self, name: str, texts: Sequence[str]) -> Packed:
        width = n_bytes(self.store.n_bits)
        for text in texts:
            if len(text) != 2 * width:
                raise wrong(
                    f"{name} of {self.store.n_bits} bits must be {2 * width} hexadecimal digits, "
                    f"got {len(text)}"
                )
        rows = np.frombuffer(bytes.fromhex("".join(texts)), np.uint8).reshape(len(texts), width)
        try:
            return as_packed(rows, name, self.store.n_bits)
        except ValueError as error:
            raise wrong(str(error)) from error

    @property
    def _n_features(self) -> int | None:
        return None if self._encoder is None else int(self._encoder.n_features_in_)

    @property
    def _engine(self) -> str:
        return self.store.url.partition(":")[0]
