"""Service: a model and a store, and what a client can ask of them.

It knows nothing of HTTP. What cannot be answered raises RefusedError with the reason.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from auxhash.codes import Packed, as_packed, n_bytes
from auxhash.compute import deadline
from auxhash.compute.arrays import Array
from auxhash.compute.version import __version__
from auxhash.search.index.state import first_twice
from auxhash.serve.hits import Neighbours, Pairs, Payloads, written
from auxhash.serve.limits import Limits
from auxhash.serve.refused import RefusedError, later, wrong
from auxhash.serve.schemas import Filter, GivenPoint, Queries
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
        return self.store.delete(np.array(ids, np.int64))

    def point(self, name: int) -> Point:
        found = self.store.read([name])
        if name not in found:
            raise RefusedError(404, f"there is no point {name}")
        return found[name]

    def query(self, asked: Queries) -> bytes:
        """The neighbours of each query, as JSON."""
        self._check_asked(asked)
        wanted, among = self._wanted(asked), self._among(asked.filter)
        answer = None
        for hold in (False, True):  # points are read after the search: none may change between
            with self.store.still() if hold else nullcontext():
                answer = self._answer(asked, wanted, among, hold)
            if answer is not None:
                return answer
        raise later("other programs changed the points during the query: ask again")

    def _metric(self, asked: Queries) -> Literal["euclidean", "cosine"]:
        """Of re-ranking: as asked for, or else the one that the model was learnt for."""
        learnt = getattr(self._encoder, "metric", None)
        return asked.metric or (learnt if learnt in ("euclidean", "cosine") else "euclidean")

    def _answer(self, asked: Queries, wanted: Wanted, among: Among, held: bool) -> bytes | None:
        """The answer; None if points have changed meanwhile, or are too many to be read at once.

        Then `held` says that no other thread changes them, and they are read in parts.
        """
        near, rerank = self._near(asked, wanted, among), asked.rerank is not None
        if not rerank and not asked.with_payload:
            return written("hamming", near, None)
        pairs, payloads = Pairs.of(near), Payloads(among, self.limits.answer)
        parts = self.store.parts(pairs.ids, rerank, asked.with_payload)
        if len(parts) > 1 and not held:
            return None
        later = rerank and len(parts) > 1  # the payloads, and only those of the hits
        measured = np.empty(len(pairs))
        for part in deadline.each(parts):
            points = self.store.read(part, rerank, asked.with_payload and not later)
            here = pairs.within(part)
            if not pairs.take(here).fit(points, wanted.codes):
                return None
            if rerank:
                assert wanted.vectors is not None
                metric = self._metric(asked)
                measured[here] = pairs.take(here).measured(points, wanted.vectors, metric)
            if asked.with_payload and not later and not payloads.add(points):
                return None
        if rerank:
            kept = pairs.nearest(measured, K if asked.k is None else asked.k)
            near = pairs.take(kept).apart(measured[kept], len(near))
            if (
                later
                and asked.with_payload
                and not self._read_payloads(pairs.take(np.sort(kept)), wanted.codes, payloads)
            ):
                return None
        by = self._metric(asked) if rerank else "hamming"
        if not asked.with_payload:
            return written(by, near, None)
        payloads.check(near)
        return written(by, near, payloads.texts)

    def _read_payloads(self, pairs: Pairs, queries: Packed, payloads: Payloads) -> bool:
        """Read the payloads of hits in parts; False if the points have changed meanwhile."""
        for part in deadline.each(self.store.parts(pairs.ids, False, True)):
            points = self.store.read(part, False, True)
            if not pairs.take(pairs.within(part)).fit(points, queries) or not payloads.add(points):
                return False
        return True

    def _near(self, asked: Queries, wanted: Wanted, among: Among) -> list[Neighbours]:
        """The nearest of each query by code; all within a radius, up to the limit."""
        if asked.radius is None:
            k = max(K if asked.k is None else asked.k, asked.rerank or 0)
            found = self.store.search(wanted.codes, k, among)
            return [Neighbours(far, ids) for far, ids in zip(*found, strict=True)]
        limit = self.limits.k if asked.limit is None else asked.limit
        # One more than the limit tells whether there are more, however many there are.
        found = self.store.search(wanted.codes, limit + 1, among)
        near = []
        for far, ids in zip(*found, strict=True):
            inside = int(np.searchsorted(far, asked.radius, "right"))
            stop = min(inside, limit)
            near.append(Neighbours(far[:stop], ids[:stop], inside > limit))
        return near

    def _check_asked(self, asked: Queries) -> None:
        """Refuse what would be too much work; each number alone is within its limit."""
        given = asked.vectors or asked.codes or asked.images or asked.ids or []
        most = self.limits
        if asked.rerank is not None and not self.store.keeps_points:
            raise wrong(f"a store of {self._engine} holds codes only: it cannot re-rank")
        each = max(K if asked.k is None else asked.k, asked.rerank or 0)
        if asked.radius is not None:
            each = most.k if asked.limit is None else asked.limit
        if len(given) > 1 and len(given) * each > most.found:
            raise wrong(
                f"{len(given):,} queries for {each:,} each are too many, at most {most.found:,} "
                "together: ask for fewer, or in several requests"
            )

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
        most = self.limits.values
        names, too_many = (
            np.array(ids, np.int64),
            wrong(
                f"the vectors of the points must be at most {most:,} numbers together: "
                "ask in several requests"
            ),
        )
        if vectors and len(self.store.parts(names, True, False, 8 * most)) > 1:
            raise too_many
        points = self.store.read(names, vectors, False)
        for name in ids:
            if name not in points:
                raise RefusedError(404, f"there is no point {name}")
            if vectors and points[name].vector is None:
                raise RefusedError(409, f"point {name} was put in as a code: it has no vector")
        codes = np.stack([points[name].code for name in ids])
        given = [vector for name in ids if (vector := points[name].vector) is not None]
        if len({len(vector) for vector in given}) > 1:
            raise RefusedError(409, "the points have vectors of different lengths")
        if sum(map(len, given)) > most:
            raise too_many
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
